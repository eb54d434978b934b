use futures_core::future::BoxFuture;
use grid_batch_core::{GlobalScopeId, Submission, SubmissionAnswer, SubmissionSender};
use grid_batch_protocol::list_of_one;

use crate::{outcome::submission_answer, rest_client::RestClient};

/// Submits batches to a Sawtooth REST API, each in a list of its own, because a list is accepted or
/// rejected as a whole.
#[derive(Debug, Clone)]
pub struct SawtoothSender {
    client: RestClient,
}

impl SawtoothSender {
    pub(crate) fn new(client: RestClient) -> Self {
        Self { client }
    }
}

impl SubmissionSender for SawtoothSender {
    type Id = GlobalScopeId;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<GlobalScopeId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(async move {
            self.client.outages().sending(url, submission.batch_header());
            let list = list_of_one(submission.serialized_batch());
            let result = self.client.post(url, "batches", "application/octet-stream", list).await;
            submission_answer(result)
        })
    }
}
