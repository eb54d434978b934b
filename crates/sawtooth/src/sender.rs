use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchError, ServiceId};
use grid_batch_http::origin;
use grid_batch_protocol::list_of_one;
use log::{debug, info};

use crate::{Sawtooth, nodes::get_node_reports, outcome::read_answer};

const PATH: &str = "batches";
const CONTENT_TYPE: &str = "application/octet-stream";

/// Submits batches to a Sawtooth REST API, usually each in its own list, because a list is accepted or rejected as a
/// whole.
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
        self.check_publisher_again(url).await;
        if let Some(answer) = self.prepare_post(url, id).await {
            return answer;
        }
        self.client.outages().sending(url, id);
        let list = list_of_one(submission.serialized_batch());
        let answer = read_answer(self.client.post(url, PATH, CONTENT_TYPE, list).await);
        if matches!(answer.outcome, Outcome::Busy | Outcome::NotSent | Outcome::Refused) {
            self.before_post.set_posted(url, id, false);
        }
        answer
    }

    /// Posts batches in one list, in their order, if this node publishes alone. The first one that must not be posted now
    /// ends the list.
    ///
    /// A list arrives as a whole: a validator adds its batches to the queue in their order, or was stopped before. Of
    /// several requests, a restarted validator could get only later ones.
    pub(crate) async fn post_list(
        &self,
        url: &str,
        list: &[Submission<ServiceId>],
    ) -> Vec<SubmissionAnswer> {
        let Some(first) = list.first() else { return Vec::new() };
        let ready =
            if self.publishes_alone(url).await { self.prepare_list(url, list).await } else { 0 };
        if ready < 2 {
            return vec![self.post(url, first).await];
        }
        let list = &list[..ready];
        let ids = || list.iter().map(Submission::batch_header);
        ids().for_each(|id| self.client.outages().sending(url, id));
        let body: Vec<u8> =
            list.iter().flat_map(|batch| list_of_one(batch.serialized_batch())).collect();
        let answer = read_answer(self.client.post(url, PATH, CONTENT_TYPE, body).await);
        match answer.outcome {
            Outcome::Accepted | Outcome::Ambiguous => vec![answer; ready],
            outcome => {
                ids().for_each(|id| self.before_post.set_posted(url, id, false));
                // One batch may be the reason for refusing all.
                match outcome {
                    Outcome::Busy | Outcome::NotSent => vec![answer],
                    _ => vec![self.post(url, first).await],
                }
            }
        }
    }

    /// How many of the first batches may be posted now. The node must not have one behind the first in its queue, where
    /// it would come before the others.
    async fn prepare_list(&self, url: &str, list: &[Submission<ServiceId>]) -> usize {
        let ids: Vec<String> = list.iter().map(|batch| batch.batch_header().to_owned()).collect();
        if ids.iter().any(|id| id.parse::<grid_batch_protocol::HeaderId>().is_err()) {
            return 0;
        }
        let Ok(statuses) = self.ask_all(url, &ids).await else { return 0 };
        let is_new = |status: &&LedgerStatus| {
            matches!(status, LedgerStatus::NotReported | LedgerStatus::Invalid)
        };
        let ready = statuses.iter().take_while(is_new).count();
        ids.iter().take(ready).for_each(|id| self.before_post.set_posted(url, id, true));
        ready
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
        Ok(self.ask_all(url, &[id.to_owned()]).await?.into_iter().next())
    }

    async fn ask_all(&self, url: &str, ids: &[String]) -> Result<Vec<LedgerStatus>, BatchError> {
        let asked_at = self.before_post.monotonic();
        let reports = get_node_reports(url, &self.question_client, ids).await;
        if self.before_post.monotonic().since(asked_at) > self.question_limit {
            let reason = "the answer came too late; this process may have been stopped";
            return Err(BatchError::Unavailable(reason.to_owned()));
        }
        let reports = reports.map_err(|error| error.at(&origin(url)))?;
        let remembered = reports.into_iter().map(|report| {
            self.before_post.set(url, &report, asked_at);
            report.report.status
        });
        Ok(remembered.collect())
    }
}
