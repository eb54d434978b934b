//! What is known about a batch before it is sent. Scabbard executes a batch again that is sent again,
//! and a database that was restored from a copy may have forgotten that it was sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use grid_batch_core::{
    AttemptId, BatchError, BatchResult, LedgerStatus, Outcome, ServiceId, ServiceScopeId,
    Submission, SubmissionAnswer,
};
use grid_batch_protocol::transaction_ids;
use log::warn;

use crate::{
    batch_history::BatchKey, bounded_map::BoundedMap, context::ScabbardContext,
    sender::answer_without_response, status_response::BatchReport,
};

/// The services for which nodes were asked, before a POST, about a batch that they did not have. Then the
/// ledger has no later batch that the database has lost, either.
pub(crate) struct QueriedServices(Mutex<BoundedMap<ServiceId, u64>>);

impl QueriedServices {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Whether nodes were asked for this service in this epoch.
    fn contains(&self, service: &ServiceId, epoch: u64) -> bool {
        self.lock().get(service) == Some(&epoch)
    }

    fn add(&self, service: &ServiceId, epoch: u64) {
        *self.lock().get_or_insert_with(service, || epoch) = epoch;
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<ServiceId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScabbardContext {
    /// The answer for a batch that must not be sent now, because the ledger has it, or a part of it,
    /// or because that cannot be ruled out.
    pub(crate) async fn refuse_earlier_submission(
        &self,
        submission: &Submission<ServiceScopeId>,
        batch: &BatchKey,
    ) -> Option<SubmissionAnswer> {
        let in_memory = || {
            let reason = self.earlier_submission_in_memory(submission, batch)?;
            Some(refuse(batch, reason))
        };
        if let Some(answer) = in_memory() {
            return Some(answer);
        }
        let answer = self.refuse_known_batch(submission, batch).await;
        // Events may have been received meanwhile.
        answer.or_else(in_memory)
    }

    /// The answer for a batch that nodes have, or cannot be asked about. Nodes are not asked again
    /// about later batches once they do not have one.
    async fn refuse_known_batch(
        &self,
        submission: &Submission<ServiceScopeId>,
        batch: &BatchKey,
    ) -> Option<SubmissionAnswer> {
        let attempt_id = submission.attempt_id()?;
        if self.queried_services.contains(&batch.0, attempt_id.epoch) {
            return None;
        }
        match self.query_before_post(submission, batch).await {
            Ok(Some(status)) if is_earlier_submission(status, attempt_id) => {
                self.history.skip_known_batch(batch, Some(attempt_id.attempt));
                let reason = format!("a node has the batch already and reports it as {status:?}");
                Some(refuse(batch, reason))
            }
            Ok(Some(_)) => None,
            Ok(None) => {
                self.queried_services.add(&batch.0, attempt_id.epoch);
                None
            }
            Err(error) => Some(cannot_query(&error)),
        }
    }

    /// What this adapter remembers of an earlier submission of the batch, or of its transactions.
    fn earlier_submission_in_memory(
        &self,
        submission: &Submission<ServiceScopeId>,
        batch: &BatchKey,
    ) -> Option<String> {
        let attempt = submission.attempt_id().map(|attempt_id| attempt_id.attempt);
        if self.history.is_committed(batch) {
            self.history.skip_known_batch(batch, attempt);
            return Some("a node has reported the batch as committed".to_owned());
        }
        let transactions = transaction_ids(submission.serialized_batch()).unwrap_or_default();
        let (applied, all) = (self.applied.count(&batch.0, &transactions), transactions.len());
        if applied > 0 {
            self.history.skip_post(batch, attempt);
            return Some(format!(
                "the ledger was heard to have committed {applied} of its {all} transactions before"
            ));
        }
        if attempt.is_some_and(|attempt| self.history.was_posted(batch, attempt)) {
            self.history.skip_known_batch(batch, attempt);
            return Some("this attempt was sent before, and the database has lost that".to_owned());
        }
        None
    }

    /// The status that a node reports, before the POST; `None` if no node that answers has the batch.
    /// It is an error if no node answers.
    async fn query_before_post(
        &self,
        submission: &Submission<ServiceScopeId>,
        batch: &BatchKey,
    ) -> BatchResult<Option<LedgerStatus>> {
        let (scope, id) = (submission.scope_id(), batch.1.to_string());
        let nodes = self.nodes_of_batch(scope, &id)?;
        let ids = [id.as_str()];
        let queries = nodes.iter().map(|node| self.query_statuses(node, scope, &ids));
        let results = join_all(queries).await;
        let reported = |status: &LedgerStatus| {
            let is_reported = |batches: &Vec<BatchReport>| {
                batches.iter().any(|batch| batch.report.status == *status)
            };
            results.iter().flatten().any(is_reported)
        };
        use LedgerStatus::{Committed, Invalid, Pending, Valid};
        if let Some(status) = [Committed, Invalid, Pending, Valid].into_iter().find(reported) {
            return Ok(Some(status));
        }
        match results.into_iter().reduce(|first, next| if first.is_ok() { first } else { next }) {
            Some(Err(error)) => Err(error),
            _ => Ok(None),
        }
    }
}

/// Whether a batch with this status was sent before this attempt and must not be sent again. A batch
/// that was dropped stays Valid, and another attempt is made when that is proved.
fn is_earlier_submission(status: LedgerStatus, attempt_id: AttemptId) -> bool {
    attempt_id.attempt == 1 || status == LedgerStatus::Committed
}

/// The answer is ambiguous: then evidence, the ledger's status or an operator decides.
fn refuse((service, batch_id): &BatchKey, reason: String) -> SubmissionAnswer {
    warn!(
        batch_id:% = batch_id, service:% = service, reason = reason.as_str();
        "the batch was not sent, because the ledger may have it already"
    );
    answer_without_response(Outcome::Ambiguous, format!("not sent: {reason}"))
}

fn cannot_query(error: &BatchError) -> SubmissionAnswer {
    let outcome = match error {
        BatchError::InternalError(_) => Outcome::Refused,
        _ => Outcome::NotSent,
    };
    let message = format!("cannot ask whether the ledger has the batch already: {error}");
    answer_without_response(outcome, message)
}
