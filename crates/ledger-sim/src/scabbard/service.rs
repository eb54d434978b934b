use std::{
    collections::{HashSet, VecDeque},
    io,
};

use grid_batch_core::{HeaderId, ScopeId, ServiceScopeId, Timestamp};
use grid_batch_protocol::VerifiedBatch;

use super::history::{BatchInfo, BatchStatus, History, InvalidTransaction};
use crate::{
    ExecutionResult, Fault, Record, SentTwice,
    common_state::{CommonState, LedgerSettings},
    events::Event,
};

/// A Scabbard service: a queue whose batches are executed and committed one after the other.
#[derive(Debug)]
pub(super) struct ScabbardService {
    id: ServiceScopeId,
    history: History,
    queue: VecDeque<QueuedBatch>,
    head: Option<HeadBatch>,
    /// When the last batch was finished.
    free_since: Timestamp,
    is_open: bool,
    /// The transactions that have receipts. Committing one again is an error.
    receipts: HashSet<HeaderId>,
}

#[derive(Debug)]
struct QueuedBatch {
    batch: VerifiedBatch,
    since: Timestamp,
}

/// The batch that is executed or voted on.
#[derive(Debug)]
struct HeadBatch {
    batch: VerifiedBatch,
    until: Timestamp,
    stage: HeadStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadStage {
    /// Waits for its execution.
    Pending,
    /// Waits for its commit.
    Valid,
    /// Its proposal is dropped or its commit fails, and it stays Valid.
    Stuck,
}

impl ScabbardService {
    /// The queue closes at this length, and opens again at half of it.
    const QUEUE_LIMIT: usize = 30;

    /// Restores the receipts. The statuses are not in the record.
    pub(super) fn from_record(id: ServiceScopeId, record: &Record) -> Self {
        let receipts = record
            .entries()
            .iter()
            .filter(|e| e.result == ExecutionResult::Applied && e.service_id == *id.service_id())
            .flat_map(|entry| entry.transaction_ids.iter().copied())
            .collect();
        Self {
            id,
            history: History::default(),
            queue: VecDeque::new(),
            head: None,
            free_since: Timestamp::from_micros(i64::MIN),
            is_open: true,
            receipts,
        }
    }

    pub(super) fn id(&self) -> &ServiceScopeId {
        &self.id
    }

    pub(super) fn is(&self, circuit: &str, service: &str) -> bool {
        self.id.circuit() == circuit && self.id.service() == service
    }

    pub(super) fn status(&self, id: &HeaderId) -> Option<&BatchInfo> {
        self.history.get(id)
    }

    pub(super) fn is_accepting(&self, settings: &LedgerSettings) -> bool {
        self.is_open || !settings.back_pressure
    }

    pub(super) fn is_idle(&self) -> bool {
        self.head.is_none() && self.queue.is_empty()
    }

    pub(super) fn restart(&mut self, now: Timestamp) {
        self.history = History::default();
        self.queue.clear();
        self.head = None;
        self.free_since = now;
        self.is_open = true;
    }

    /// Queues a batch, even if it was committed before.
    pub(super) fn accept(&mut self, batch: VerifiedBatch, now: Timestamp) {
        self.history.set(batch.id(), BatchStatus::Pending, now);
        self.queue.push_back(QueuedBatch { batch, since: now });
    }

    pub(super) fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        while self.start_next(&common.settings)
            && let Some(head) = self.head.take_if(|head| head.until <= now)
        {
            self.finish_stage(head, common)?;
        }
        if self.queue.len() >= Self::QUEUE_LIMIT {
            self.is_open = false;
        }
        Ok(())
    }

    /// Moves the next batch to the head if there is none. Returns whether there is one.
    fn start_next(&mut self, settings: &LedgerSettings) -> bool {
        if self.head.is_none()
            && let Some(QueuedBatch { batch, since }) = self.queue.pop_front()
        {
            let until = since.max(self.free_since).plus(settings.pending_for);
            self.head = Some(HeadBatch { batch, until, stage: HeadStage::Pending });
            if self.queue.len() < Self::QUEUE_LIMIT / 2 {
                self.is_open = true;
            }
        }
        self.head.is_some()
    }

    /// Advances the head by one stage. Puts it back if the record cannot be written.
    fn finish_stage(&mut self, head: HeadBatch, common: &mut CommonState) -> io::Result<()> {
        let result = match head.stage {
            HeadStage::Pending => self.execute(&head, common),
            HeadStage::Valid => self.commit(&head, common).map(|()| None),
            HeadStage::Stuck => Ok(None),
        };
        match result {
            Ok(Some((stage, until))) => self.head = Some(HeadBatch { stage, until, ..head }),
            Ok(None) => self.free_since = head.until,
            Err(error) => {
                self.head = Some(head);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Executes a batch. Returns its next stage and the end of that, or `None` if it is invalid.
    fn execute(
        &mut self,
        head: &HeadBatch,
        common: &mut CommonState,
    ) -> io::Result<Option<(HeadStage, Timestamp)>> {
        let (batch, now) = (&head.batch, head.until);
        let is_repeated = batch.transactions().iter().any(|t| self.receipts.contains(&t.id()));
        let invalid_reason = match common.settings.sent_twice {
            SentTwice::Invalid if is_repeated => {
                Some("The change that this transaction makes was made already".to_owned())
            }
            _ => common.execute(batch),
        };
        if let Some(message) = invalid_reason {
            self.mark_invalid(batch, message, now, common)?;
            return Ok(None);
        }
        if is_repeated {
            // The node writes the state before it finds that the receipts exist.
            common.record_result(
                ExecutionResult::Applied,
                self.id.service_id(),
                batch,
                now,
                None,
            )?;
        }
        let ids = batch.transactions().iter().map(|t| t.id()).collect();
        self.history.set(batch.id(), BatchStatus::Valid(ids), now);
        let is_stuck = is_repeated || common.faults.occurs(Fault::DroppedValid);
        Ok(Some(if is_stuck {
            (HeadStage::Stuck, now.plus(common.settings.coordinator_timeout))
        } else {
            (HeadStage::Valid, now.plus(common.settings.valid_for))
        }))
    }

    fn mark_invalid(
        &mut self,
        batch: &VerifiedBatch,
        message: String,
        now: Timestamp,
        common: &mut CommonState,
    ) -> io::Result<()> {
        common.record_result(ExecutionResult::Invalid, self.id.service_id(), batch, now, None)?;
        if let Some(first) = batch.transactions().first() {
            let invalid = InvalidTransaction { id: first.id(), message };
            self.history.set(batch.id(), BatchStatus::Invalid(invalid), now);
        }
        Ok(())
    }

    fn commit(&mut self, head: &HeadBatch, common: &mut CommonState) -> io::Result<()> {
        let batch = &head.batch;
        common.record_result(
            ExecutionResult::Applied,
            self.id.service_id(),
            batch,
            head.until,
            None,
        )?;
        self.receipts.extend(batch.transactions().iter().map(|t| t.id()));
        self.history.commit(&batch.id());
        common.events.publish(Event {
            service_id: self.id.service_id().clone(),
            transaction_ids: batch.transactions().iter().map(|t| t.id()).collect(),
        });
        Ok(())
    }
}
