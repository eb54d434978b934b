//! Checks before a batch is sent. Scabbard executes a batch again if it is sent again, and the batch may have been sent
//! before by another client, or by this program if the database has lost the record of it.

use std::sync::Arc;

use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::ledger::{AttemptId, Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchError, BatchResult, ItemId, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_protocol::transaction_ids;
use log::{debug, warn};

use crate::{
    batch_history::{BatchKey, BatchQuestion, FirstPost, Unreported},
    context::{ScabbardContext, parse_scope},
    node_reports::{CombinedStatus, NodeAnswer, StatusAtNode, no_status},
    observed_nodes::{EventSource, ObservedNode},
    sender::try_again,
    status_reader::MAX_IDS_PER_REQUEST,
};

impl ScabbardContext {
    /// Checks before a POST that the ledger does not have, and never had, the batch or a part of it. The error is the
    /// answer for a batch that must not be sent now.
    pub(crate) async fn check_not_sent_before(
        self: &Arc<Self>,
        submission: &Submission<ServiceId>,
        scope: &ServiceScopeId,
        batch: &BatchKey,
    ) -> Result<(), SubmissionAnswer> {
        self.check_memory(submission, batch)?;
        let unreported = self.check_nodes(submission, scope, batch).await?;
        // Events may have been received meanwhile.
        self.check_memory(submission, batch)?;
        self.check_replay(&batch.0)?;
        let Some(unreported) = unreported else { return Ok(()) };
        self.check_is_new(batch, unreported).await?;
        self.check_memory(submission, batch)
    }

    /// The answers of the nodes if none has the batch. `None`: it need not be proved to be new. The error is the answer
    /// for a batch that a node has, or about which the nodes cannot be asked.
    async fn check_nodes(
        &self,
        submission: &Submission<ServiceId>,
        scope: &ServiceScopeId,
        batch: &BatchKey,
    ) -> Result<Option<Unreported>, SubmissionAnswer> {
        let Some(attempt_id) = submission.attempt_id() else { return Ok(None) };
        if self.history.get(batch).is_unsent(attempt_id.attempt)
            && let Some(unreported) = self.asked_ahead(batch)
        {
            return Ok(Some(unreported));
        }
        let asked = self.ask_before_post(scope, &[batch.1]).await;
        let Asked { statuses, unreported } = asked.map_err(|error| cannot_query(&error))?;
        match statuses.into_iter().flatten().next() {
            Some(status) if self.is_earlier_submission(status, batch, attempt_id) => {
                self.history.skip_known_batch(batch, Some(attempt_id.attempt));
                let reason = format!("a node has the batch already and reports it as {status:?}");
                refuse(batch, &reason)
            }
            // An earlier attempt was sent, so the batch was proved to be new then.
            Some(_) => Ok(None),
            None => Ok(Some(unreported)),
        }
    }

    /// The answers of the nodes, if they were asked about the batch lately and another question would show no more.
    fn asked_ahead(&self, batch: &BatchKey) -> Option<Unreported> {
        let unreported = self.history.not_found(batch, self.question(&batch.0))?;
        (unreported.asks_history || self.is_history_shown(&batch.0)).then_some(unreported)
    }

    /// A question about batches of the service that is asked now.
    fn question(&self, service: &ServiceId) -> BatchQuestion {
        let (asked_at, subscription) = (self.clock.monotonic(), self.observed.caught_up(service));
        BatchQuestion { asked_at, subscription }
    }

    /// Whether a batch with this status was sent before this attempt and must not be sent again. A dropped batch stays
    /// Valid; another attempt is made when it is proved to be dropped.
    fn is_earlier_submission(
        &self,
        status: LedgerStatus,
        batch: &BatchKey,
        attempt_id: AttemptId,
    ) -> bool {
        let AttemptId { attempt, .. } = attempt_id;
        attempt == 1
            || status != LedgerStatus::Valid
            || self.history.get(batch).first_post(attempt) == FirstPost::None
    }

    /// Checks what this adapter remembers about an earlier submission of the batch or of its transactions.
    fn check_memory(
        &self,
        submission: &Submission<ServiceId>,
        batch: &BatchKey,
    ) -> Result<(), SubmissionAnswer> {
        let attempt = submission.attempt_id().map(|attempt_id| attempt_id.attempt);
        let record = self.history.get(batch);
        let transactions = transaction_ids(submission.serialized_batch()).unwrap_or_default();
        let (applied, all) = (self.applied.count(&batch.0, &transactions), transactions.len());
        let was_posted = attempt.is_some_and(|attempt| record.was_posted(attempt));
        let reason = match applied {
            _ if record.is_committed => "a node has reported the batch as committed".to_owned(),
            1.. => format!(
                "events show that the ledger has committed {applied} of its {all} transactions before"
            ),
            _ if was_posted => {
                "this attempt was sent before, but the database has lost the record of it"
                    .to_owned()
            }
            _ => return Ok(()),
        };
        // Another client may have sent all of the transactions. Then the events are evidence.
        if record.is_committed || applied == 0 || applied == all {
            self.history.skip_known_batch(batch, attempt);
        }
        refuse(batch, &reason)
    }

    /// Refuses to send a batch before earlier events were replayed.
    fn check_replay(&self, service: &ServiceId) -> Result<(), SubmissionAnswer> {
        let now = self.clock.monotonic();
        let wait = |node: &mut ObservedNode| node.replay_wait.remaining(now);
        match self.observed.update(service, EventSource::Node, wait) {
            None => Ok(()),
            Some(remaining) => {
                let message = "the node is replaying the events of earlier batches, which may include this one";
                Err(try_again(remaining, message))
            }
        }
    }

    /// Asks about batches that will be sent soon, and remembers those that no node has. If the service has a batch under
    /// way, the next request for its status asks about them as well.
    pub(crate) async fn ask_ahead(&self, service_id: &ServiceId, batch_ids: &[ItemId]) {
        let Ok(scope) = parse_scope(service_id.as_str()) else { return };
        let is_open_question = |id: &ItemId| {
            let batch = (service_id.clone(), *id);
            !self.history.get(&batch).is_committed && self.asked_ahead(&batch).is_none()
        };
        let ids: Vec<ItemId> = batch_ids.iter().copied().filter(is_open_question).collect();
        if self.has_one_node(&scope)
            && self.is_history_shown(service_id)
            && self.next_batches.set(service_id, &ids)
        {
            return;
        }
        for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
            if let Err(error) = self.ask_before_post(&scope, ids).await {
                debug!(service:% = scope, error:%; "cannot ask ahead about the next batch");
            }
        }
    }

    /// Whether the answer of a single node is that of all.
    fn has_one_node(&self, scope: &ServiceScopeId) -> bool {
        self.all_nodes(scope, "").is_ok_and(|nodes| nodes.len() == 1)
    }

    /// Takes the batches about which a status request asks as well.
    pub(crate) fn take_next_batches(&self, scope: &ServiceScopeId) -> Option<NextQuestion> {
        let service = scope.service_id();
        let ids = self.next_batches.take(service);
        let is_asked = !ids.is_empty() && self.has_one_node(scope);
        is_asked.then(|| NextQuestion { question: self.question(service), ids })
    }

    /// Remembers those of the next batches that no node has.
    pub(crate) fn record_next_batches(
        &self,
        service: &ServiceId,
        NextQuestion { question, ids }: NextQuestion,
        reports: &[StatusReport],
    ) {
        let unreported = Unreported { is_complete: true, ..Unreported::default() };
        for id in ids {
            let text = id.to_string();
            let report = reports.iter().find(|report| report.batch_id == text);
            if report.is_some_and(|report| report.status == LedgerStatus::NotReported) {
                self.history.mark_not_found(&(service.clone(), id), question, unreported);
            }
        }
    }

    /// The status of each batch that a node reports; `None` if no node that answers has the batch, which is remembered.
    /// Fails if no node answers.
    async fn ask_before_post(&self, scope: &ServiceScopeId, ids: &[ItemId]) -> BatchResult<Asked> {
        let first = ids.first().copied().unwrap_or_else(|| ItemId::from_bytes([0; 64]));
        let asks_history = !self.is_history_shown(scope.service_id());
        let anchor =
            if asks_history { self.anchor(scope.service_id(), &first).await? } else { None };
        let anchor = anchor.map(|id| id.to_string());
        let (generation, live) =
            (self.history_generation(), self.observed.at_post(scope.service_id()).node);
        let key = |id: &ItemId| (scope.service_id().clone(), *id);
        let question = self.question(scope.service_id());
        let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().chain(&anchor).map(String::as_str).collect();
        let nodes = self.all_nodes(scope, texts.first().copied().unwrap_or_default())?;
        let answers = self.ask_all(nodes, scope.service_id(), &texts, self.question_limit).await;
        let has_committed = |id: &str| {
            answers.iter().any(|answer| answer.about(id).status == Ok(LedgerStatus::Committed))
        };
        let shows_history = anchor.as_deref().is_some_and(has_committed);
        if let Some(live) = live.filter(|_| shows_history) {
            self.set_continuous(scope.service_id(), live, generation);
        }
        let is_complete = answers.iter().all(NodeAnswer::is_complete);
        let unreported = Unreported { asks_history, shows_history, is_complete };
        let mut statuses = Vec::with_capacity(ids.len());
        for (id, text) in ids.iter().zip(&texts) {
            let reports: Vec<_> = answers.iter().map(|answer| answer.about(text)).collect();
            let status = combined_status(&reports)?;
            if status.is_none() {
                self.history.mark_not_found(&key(id), question, unreported);
            }
            statuses.push(status);
        }
        Ok(Asked { statuses, unreported })
    }
}

/// A question about the next batches of a service that is part of a status request.
pub(crate) struct NextQuestion {
    question: BatchQuestion,
    pub(crate) ids: Vec<ItemId>,
}

/// The answers of nodes about batches.
struct Asked {
    /// The status of each batch that a node reports.
    statuses: Vec<Option<LedgerStatus>>,
    /// What the answers prove about the batches that no node has.
    unreported: Unreported,
}

/// The strongest status of a batch; `None` if no node has it. The answers of peers alone are not enough, because the
/// node that gets the POST may have the batch.
fn combined_status(reports: &[StatusAtNode]) -> BatchResult<Option<LedgerStatus>> {
    match CombinedStatus::new(reports.iter()).status {
        LedgerStatus::NotReported => {
            let at_nodes = reports.iter().filter(|report| !report.is_peer());
            no_status(at_nodes).map_or(Ok(None), Err)
        }
        status => Ok(Some(status)),
    }
}

/// The answer is ambiguous, so that evidence, the ledger's status or an operator decides.
fn refuse<T>(batch: &BatchKey, reason: &str) -> Result<T, SubmissionAnswer> {
    let (service, batch_id) = batch;
    warn!(
        batch_id:%, service:%, reason;
        "the batch was not sent, because the ledger may have it already"
    );
    let message = format!("not sent: {reason}");
    Err(SubmissionAnswer::without_response(Outcome::Ambiguous, message))
}

fn cannot_query(error: &BatchError) -> SubmissionAnswer {
    let outcome = match error {
        BatchError::InternalError(_) => Outcome::Refused,
        _ => Outcome::NotSent,
    };
    let message = format!("cannot ask whether the ledger has the batch already: {error}");
    SubmissionAnswer::without_response(outcome, message)
}
