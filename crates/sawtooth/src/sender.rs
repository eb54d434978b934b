use futures_core::future::BoxFuture;
use grid_batch_core::{GlobalScopeId, Submission, SubmissionAnswer, SubmissionSender};
use grid_batch_protocol::list_of_one;

use crate::{caller::Caller, outcome::submission_answer};

/// Sends batches to a Sawtooth REST API, each in a list of its own: a list is taken or refused as a
/// whole.
#[derive(Debug, Clone)]
pub struct SawtoothSender {
    caller: Caller,
}

impl SawtoothSender {
    pub(crate) fn new(caller: Caller) -> Self {
        Self { caller }
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
            let list = list_of_one(submission.serialized_batch());
            let sent = self.caller.post(url, "batches", "application/octet-stream", list).await;
            submission_answer(sent)
        })
    }
}
