use std::{
    collections::{HashSet, VecDeque},
    io,
};

use grid_batch_core::{HeaderId, ScopeId, ServiceScopeId, Timestamp};
use grid_batch_protocol::VerifiedBatch;

use super::history::{History, Info, InvalidTransaction, Status};
use crate::{
    Fault, Record, SentTwice, Verdict,
    common::{Common, Settings},
    events::Event,
};

/// One Scabbard service: a queue whose batches are executed and committed one after the other.
#[derive(Debug)]
pub(super) struct Service {
    id: ServiceScopeId,
    history: History,
    queue: VecDeque<Queued>,
    head: Option<Head>,
    /// When the last batch was done with.
    free_since: Timestamp,
    is_open: bool,
    /// The transactions that have receipts: executing one again is an error.
    receipts: HashSet<HeaderId>,
}

#[derive(Debug)]
struct Queued {
    batch: VerifiedBatch,
    since: Timestamp,
}

/// The batch that is executed or voted on.
#[derive(Debug)]
struct Head {
    batch: VerifiedBatch,
    until: Timestamp,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// To be executed.
    Pending,
    /// To be committed.
    Valid,
    /// Its proposal is never agreed on, or its commit fails: it stays Valid.
    Stuck,
}

impl Service {
    /// The queue is closed when it has so many, and open again when it has half of them.
    const QUEUE_LIMIT: usize = 30;

    /// The state survives a restart, and so do the receipts; the history does not.
    pub(super) fn from_record(id: ServiceScopeId, record: &Record) -> Self {
        let receipts = record
            .entries()
            .iter()
            .filter(|e| e.verdict == Verdict::Applied && e.service_id == *id.service_id())
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

    pub(super) fn status(&self, id: &HeaderId) -> Option<&Info> {
        self.history.get(id)
    }

    pub(super) fn is_accepting(&self, settings: &Settings) -> bool {
        self.is_open || !settings.back_pressure
    }

    pub(super) fn is_idle(&self) -> bool {
        self.head.is_none() && self.queue.is_empty()
    }

    pub(super) fn forget(&mut self, now: Timestamp) {
        self.history = History::default();
        self.queue.clear();
        self.head = None;
        self.free_since = now;
        self.is_open = true;
    }

    /// Queues a batch. Nobody looks whether it was here before.
    pub(super) fn accept(&mut self, batch: VerifiedBatch, now: Timestamp) {
        self.history.set(batch.id(), Status::Pending, now);
        self.queue.push_back(Queued { batch, since: now });
    }

    pub(super) fn advance(&mut self, common: &mut Common, now: Timestamp) -> io::Result<()> {
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

    /// Whether there is a batch at the head now.
    fn start_next(&mut self, settings: &Settings) -> bool {
        if self.head.is_none()
            && let Some(Queued { batch, since }) = self.queue.pop_front()
        {
            let until = since.max(self.free_since).plus(settings.pending_for);
            self.head = Some(Head { batch, until, stage: Stage::Pending });
            if self.queue.len() < Self::QUEUE_LIMIT / 2 {
                self.is_open = true;
            }
        }
        self.head.is_some()
    }

    /// Takes the head one step further, or puts it back when the step cannot be written down.
    fn finish_stage(&mut self, head: Head, common: &mut Common) -> io::Result<()> {
        let done = match head.stage {
            Stage::Pending => self.execute(&head, common),
            Stage::Valid => self.commit(&head, common).map(|()| None),
            Stage::Stuck => Ok(None),
        };
        match done {
            Ok(Some((stage, until))) => self.head = Some(Head { stage, until, ..head }),
            Ok(None) => self.free_since = head.until,
            Err(error) => {
                self.head = Some(head);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Executes a batch: the stage that follows and its end, unless the batch is invalid.
    fn execute(
        &mut self,
        head: &Head,
        common: &mut Common,
    ) -> io::Result<Option<(Stage, Timestamp)>> {
        let (batch, now) = (&head.batch, head.until);
        let is_again = batch.transactions().iter().any(|t| self.receipts.contains(&t.id()));
        let refused = match common.settings.sent_twice {
            SentTwice::Invalid if is_again => {
                Some("The change that this transaction makes was made already".to_owned())
            }
            _ => common.execute(batch),
        };
        if let Some(message) = refused {
            self.refuse(batch, message, now, common)?;
            return Ok(None);
        }
        if is_again {
            // The state is written before the receipts are found to be there already.
            common.note(Verdict::Applied, self.id.service_id(), batch, now, None)?;
        }
        let ids = batch.transactions().iter().map(|t| t.id()).collect();
        self.history.set(batch.id(), Status::Valid(ids), now);
        let is_stuck = is_again || common.faults.strikes(Fault::DroppedValid);
        Ok(Some(if is_stuck {
            (Stage::Stuck, now.plus(common.settings.coordinator_timeout))
        } else {
            (Stage::Valid, now.plus(common.settings.valid_for))
        }))
    }

    fn refuse(
        &mut self,
        batch: &VerifiedBatch,
        message: String,
        now: Timestamp,
        common: &mut Common,
    ) -> io::Result<()> {
        common.note(Verdict::Invalid, self.id.service_id(), batch, now, None)?;
        if let Some(first) = batch.transactions().first() {
            let invalid = InvalidTransaction { id: first.id(), message };
            self.history.set(batch.id(), Status::Invalid(invalid), now);
        }
        Ok(())
    }

    fn commit(&mut self, head: &Head, common: &mut Common) -> io::Result<()> {
        let batch = &head.batch;
        common.note(Verdict::Applied, self.id.service_id(), batch, head.until, None)?;
        self.receipts.extend(batch.transactions().iter().map(|t| t.id()));
        self.history.commit(&batch.id());
        common.events.publish(Event {
            service_id: self.id.service_id().clone(),
            transaction_ids: batch.transactions().iter().map(|t| t.id()).collect(),
        });
        Ok(())
    }
}
