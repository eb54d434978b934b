use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchError, ServiceId};
use grid_batch_http::origin;
use grid_batch_protocol::list_of_one;
use log::{debug, info};

use crate::{Sawtooth, nodes::get_node_reports, outcome::read_answer};

/// Submits batches to a Sawtooth REST API, each in its own list, because a list is accepted or rejected as a whole.
///
/// Before a POST, it must be known what the node reports about the batch; if it is not known, the node is asked. An
/// INVALID from before the POST says nothing about the POST, and a batch that is committed already is not sent.
impl Sawtooth {
    pub(crate) async fn post(
        &self,
        url: &str,
        submission: &Submission<ServiceId>,
    ) -> SubmissionAnswer {
        let id = submission.batch_header();
        // The id becomes a part of a URL. Every node would reject a batch with an invalid one.
        if let Err(error) = id.parse::<grid_batch_protocol::HeaderId>() {
            return SubmissionAnswer::without_response(Outcome::Rejected, error.to_string());
        }
        if let Some(answer) = self.prepare_post(url, id).await {
            return answer;
        }
        self.client.outages().sending(url, id);
        let list = list_of_one(submission.serialized_batch());
        let result = self.client.post(url, "batches", "application/octet-stream", list).await;
        let answer = read_answer(result);
        if matches!(answer.outcome, Outcome::Busy | Outcome::NotSent | Outcome::Refused) {
            self.before_post.set_posted(url, id, false);
        }
        answer
    }

    /// The answer for a batch that must not be posted now.
    async fn prepare_post(&self, url: &str, id: &str) -> Option<SubmissionAnswer> {
        let status = match self.before_post.fresh_status(url, id) {
            Some(status) => Ok(Some(status)),
            None => self.ask(url, id).await,
        };
        match status {
            Ok(Some(LedgerStatus::Committed)) => {
                info!(batch_id = id; "the batch was not sent, because it is committed already");
                let reason = "not sent: the node reports the batch as committed already";
                Some(SubmissionAnswer::without_response(Outcome::Ambiguous, reason.to_owned()))
            }
            Ok(_) => {
                self.before_post.set_posted(url, id, true);
                None
            }
            Err(error @ BatchError::Unavailable(_)) => {
                let reason = format!("cannot ask what the node has of the batch: {error}");
                Some(SubmissionAnswer::without_response(Outcome::NotSent, reason))
            }
            // The response to the POST shows what is wrong with the node.
            Err(error) => {
                debug!(batch_id = id, error:%; "the node gives no usable status before a POST");
                self.before_post.start_blind_post(url, id);
                None
            }
        }
    }

    async fn ask(&self, url: &str, id: &str) -> Result<Option<LedgerStatus>, BatchError> {
        let asked_at = self.before_post.monotonic();
        let reports = get_node_reports(url, &self.question_client, &[id.to_owned()]).await;
        if self.before_post.monotonic().since(asked_at) > self.question_limit {
            let reason = "the answer came too late; this process may have been stopped";
            return Err(BatchError::Unavailable(reason.to_owned()));
        }
        let report = reports.map_err(|error| error.at(&origin(url)))?.into_iter().next();
        Ok(report.map(|report| {
            self.before_post.set(url, &report, asked_at);
            report.report.status
        }))
    }
}
