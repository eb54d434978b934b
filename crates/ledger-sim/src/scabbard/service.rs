use std::{
    collections::{HashSet, VecDeque},
    io,
    time::Duration,
};

use grid_batch_core::{ItemId, ScopeId, ServiceScopeId, Timestamp};
use grid_batch_protocol::{Batch, Message, VerifiedBatch};

use super::{
    circuit::{CircuitNode, PeerUpdate, SharedService},
    history::{BatchInfo, BatchStatus, History, InvalidTransaction},
    state_root::StateRoot,
};
use crate::{
    Entry, ExecutionResult, Fault, Record, SentTwice, StateValues,
    common_state::{CommonState, LedgerSettings},
    events::CommitEvent,
};

/// A Scabbard service at one node: a queue whose batches are executed and committed one after the other, and the
/// batches of the circuit's other nodes.
#[derive(Debug)]
pub(super) struct ScabbardService {
    id: ServiceScopeId,
    history: History,
    queue: VecDeque<QueuedBatch>,
    head: Option<HeadBatch>,
    node: CircuitNode,
    is_open: bool,
    /// The transactions that have receipts. Committing one again is an error.
    receipts: HashSet<ItemId>,
    /// The values that batches have written since the start.
    values: StateValues,
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
    /// When it was proposed.
    proposed_at: Option<Timestamp>,
    until: Timestamp,
    stage: HeadStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadStage {
    /// Waits for its execution.
    Pending,
    /// Waits for the votes of the other nodes.
    Valid,
    /// Its commit is decided.
    Committed,
    /// Its proposal is dropped or its commit fails, and it stays Valid.
    Stuck,
}

/// The interval at which a node looks for missing votes.
const VOTE_INTERVAL: Duration = Duration::from_millis(5);

impl ScabbardService {
    /// The queue closes at this length, and opens again at half of it.
    const QUEUE_LIMIT: usize = 30;

    /// Restores the receipts. The statuses are not in the record.
    pub(super) fn from_record(id: ServiceScopeId, record: &Record, shared: &SharedService) -> Self {
        let is_own =
            |e: &&Entry| e.result == ExecutionResult::Applied && e.service_id == *id.service_id();
        let (mut receipts, mut root) = (HashSet::new(), StateRoot::default());
        let applied = record.entries().iter().filter(is_own);
        for transaction_id in applied.flat_map(|entry| &entry.transaction_ids) {
            receipts.insert(*transaction_id);
            root.apply(*transaction_id);
        }
        Self {
            id,
            history: History::default(),
            queue: VecDeque::new(),
            head: None,
            node: shared.join(root),
            is_open: true,
            receipts,
            values: StateValues::default(),
        }
    }

    pub(super) fn id(&self) -> &ServiceScopeId {
        &self.id
    }

    pub(super) fn status(&self, id: &ItemId) -> Option<&BatchInfo> {
        self.history.get(id)
    }

    pub(super) fn is_accepting(&self, settings: &LedgerSettings) -> bool {
        self.is_open || !settings.back_pressure
    }

    pub(super) fn values(&self) -> &StateValues {
        &self.values
    }

    pub(super) fn state_root(&self) -> StateRoot {
        self.node.root()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.head.is_none() && self.queue.is_empty() && !self.node.has_peers()
    }

    pub(super) fn restart(&mut self, now: Timestamp) {
        self.clear(now, false);
        self.node.start_again();
    }

    pub(super) fn stop(&mut self, common: &mut CommonState, now: Timestamp) {
        let misses_commit = self.node.is_voting() && common.faults.occurs(Fault::MissedCommit);
        if self.node.is_voting() && common.faults.occurs(Fault::WritesAlone) {
            self.node.apply_proposal_alone();
        }
        self.clear(now, misses_commit);
    }

    /// While it is frozen, the node votes on no batch of another one.
    pub(super) fn set_frozen(&self, is_frozen: bool) {
        self.node.set_frozen(is_frozen);
    }

    pub(super) fn restore_state(&self) {
        self.node.restore_state();
    }

    pub(super) fn start_again(&self) {
        self.node.start_again();
    }

    fn clear(&mut self, now: Timestamp, misses_commit: bool) {
        self.node.stop(now, misses_commit);
        self.history = History::default();
        self.queue.clear();
        self.head = None;
        self.is_open = true;
    }

    /// Queues a batch, even if it was committed before.
    pub(super) fn accept(&mut self, batch: VerifiedBatch, now: Timestamp) {
        self.history.set(batch.id(), BatchStatus::Pending, now);
        self.queue.push_back(QueuedBatch { batch, since: now });
    }

    pub(super) fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        self.follow_others(common)?;
        while self.start_next(&common.settings)
            && let Some(head) = self.head.take_if(|head| {
                head.until <= now && (head.stage != HeadStage::Pending || self.node.take_turn())
            })
        {
            self.finish_stage(head, common)?;
        }
        if self.queue.len() >= Self::QUEUE_LIMIT {
            self.is_open = false;
        }
        Ok(())
    }

    /// Applies what the other nodes of the circuit have proposed and committed.
    fn follow_others(&mut self, common: &mut CommonState) -> io::Result<()> {
        while let Some(news) = self.node.news() {
            match news {
                Some(PeerUpdate::Proposed(batch, time)) => {
                    self.history.set(batch.id(), BatchStatus::Valid(ids_of(&batch)), time);
                }
                Some(PeerUpdate::Committed(batch, time)) => self.commit(&batch, time, common)?,
                None => {}
            }
            self.node.follow();
        }
        Ok(())
    }

    /// Moves the next batch to the head if there is none. Returns whether there is one.
    fn start_next(&mut self, settings: &LedgerSettings) -> bool {
        if self.head.is_none()
            && let Some(QueuedBatch { batch, since }) = self.queue.pop_front()
        {
            let until = since.max(self.node.free_since()).plus(settings.pending_for);
            self.head =
                Some(HeadBatch { batch, proposed_at: None, until, stage: HeadStage::Pending });
            if self.queue.len() < Self::QUEUE_LIMIT / 2 {
                self.is_open = true;
            }
        }
        self.head.is_some()
    }

    /// Advances the head by one stage. Puts it back if the record cannot be written.
    fn finish_stage(&mut self, mut head: HeadBatch, common: &mut CommonState) -> io::Result<()> {
        if head.stage == HeadStage::Valid && self.node.commit(head.until) {
            head.stage = HeadStage::Committed;
        }
        let result = match head.stage {
            HeadStage::Pending => self.execute(&mut head, common),
            HeadStage::Valid => Ok(Some(self.wait_for_votes(&head, &common.settings))),
            HeadStage::Committed => self.commit(&head.batch, head.until, common).map(|()| None),
            HeadStage::Stuck => Ok(None),
        };
        match result {
            Ok(Some((stage, until))) => self.head = Some(HeadBatch { stage, until, ..head }),
            Ok(None) => self.node.end_turn(head.until),
            Err(error) => {
                self.head = Some(head);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Executes a batch. Returns its next stage and when that ends, or `None` if it is invalid.
    fn execute(
        &mut self,
        head: &mut HeadBatch,
        common: &mut CommonState,
    ) -> io::Result<Option<(HeadStage, Timestamp)>> {
        // Other nodes may have committed a batch before this one's turn.
        self.follow_others(common)?;
        head.until = head.until.max(self.node.free_since());
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
        self.history.set(batch.id(), BatchStatus::Valid(ids_of(batch)), now);
        if is_repeated && common.settings.sent_twice == SentTwice::StuckValid {
            // The node writes the state before it finds that the receipts exist.
            self.record(ExecutionResult::Applied, batch, now, common)?;
            self.node.apply_alone(batch);
            return Ok(Some(self.drop_from(now, &common.settings)));
        }
        self.node.propose(batch, now);
        head.proposed_at = Some(now);
        let is_rejected = self.node.take_leftover_proposal(&batch.id())
            && common.faults.occurs(Fault::LeftoverProposal);
        Ok(Some(if is_rejected || common.faults.occurs(Fault::DroppedValid) {
            self.drop_from(now, &common.settings)
        } else {
            (HeadStage::Valid, now.plus(common.settings.valid_for))
        }))
    }

    /// The next stage of a batch for which votes are missing: a frozen node may vote until the coordinator gives the
    /// batch up.
    fn wait_for_votes(
        &self,
        head: &HeadBatch,
        settings: &LedgerSettings,
    ) -> (HeadStage, Timestamp) {
        let gives_up_at = head.proposed_at.map(|at| at.plus(settings.coordinator_timeout));
        if !self.node.waits_for_frozen_node() {
            return self.drop_from(head.until, settings);
        }
        if gives_up_at.is_some_and(|at| head.until < at) {
            return (HeadStage::Valid, head.until.plus(VOTE_INTERVAL));
        }
        self.node.drop_proposal();
        (HeadStage::Stuck, head.until)
    }

    /// The stage of a batch that the coordinator gives up after its timeout.
    fn drop_from(&self, time: Timestamp, settings: &LedgerSettings) -> (HeadStage, Timestamp) {
        self.node.drop_proposal();
        (HeadStage::Stuck, time.plus(settings.coordinator_timeout))
    }

    fn mark_invalid(
        &mut self,
        batch: &VerifiedBatch,
        message: String,
        now: Timestamp,
        common: &mut CommonState,
    ) -> io::Result<()> {
        self.record(ExecutionResult::Invalid, batch, now, common)?;
        if let Some(first) = batch.transactions().first() {
            let invalid = InvalidTransaction { id: first.id(), message };
            self.history.set(batch.id(), BatchStatus::Invalid(invalid), now);
        }
        Ok(())
    }

    fn commit(
        &mut self,
        batch: &VerifiedBatch,
        time: Timestamp,
        common: &mut CommonState,
    ) -> io::Result<()> {
        self.record(ExecutionResult::Applied, batch, time, common)?;
        self.receipts.extend(ids_of(batch));
        self.write_state(batch);
        self.history.commit(&batch.id());
        common.events.publish(CommitEvent {
            service_id: self.id.service_id().clone(),
            transaction_ids: ids_of(batch),
        });
        Ok(())
    }

    /// The transactions of other families are not executed.
    fn write_state(&mut self, batch: &VerifiedBatch) {
        if let Ok(batch) = Batch::decode(batch.bytes()) {
            // A ledger of this kind refuses no batch because of its contents.
            let _ = self.values.apply(&batch);
        }
    }

    fn record(
        &self,
        result: ExecutionResult,
        batch: &VerifiedBatch,
        time: Timestamp,
        common: &mut CommonState,
    ) -> io::Result<()> {
        common.record_result(result, self.id.service_id(), batch, time, None)
    }
}

fn ids_of(batch: &VerifiedBatch) -> Vec<ItemId> {
    batch.transactions().iter().map(|transaction| transaction.id()).collect()
}
