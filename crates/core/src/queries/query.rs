use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::batches::{BatchLabel, BatchState, Deadline, Receipt, StoredBatch};
use crate::claims::InstanceId;
use crate::queries::{
    BatchPage, BatchSelection, InstanceLease, ItemIdPrefix, ListCursor, OwnedService, PageOrder,
    ServiceOverview,
};
use crate::queue::{Ahead, Wait};
use crate::{BatchResult, ItemId, ServiceId, Timestamp};

/// Everything that is stored about one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchDetails {
    /// The batch.
    pub batch: StoredBatch,
    /// The label that its client gave it.
    pub label: Option<BatchLabel>,
    /// Whether it is an attempt to execute a withdrawal.
    pub of_withdrawal: bool,
    /// When its ledger can no longer apply it.
    pub deadline: Option<Deadline>,
    /// The open batches of its service that come before it. `None`: it is the first or has ended.
    pub ahead: Option<Ahead>,
    /// The ids of its transactions, in order.
    pub transaction_ids: Vec<ItemId>,
    /// The latest failed attempts, in order.
    pub failed_attempts: Vec<FailedAttempt>,
    /// Why the batch is invalid; empty unless it is.
    pub receipts: Vec<Receipt>,
    /// Set if the batch ended as invalid and was reported as committed later.
    pub commit_after_invalid: Option<CommitAfterInvalid>,
}

impl BatchDetails {
    /// Why the batch waits. `None`: it has ended.
    pub fn wait(&self) -> Option<Wait<'_>> {
        Wait::of(&self.batch, self.ahead.as_ref())
    }
}

/// The first report that a ledger has applied a batch that had ended as invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitAfterInvalid {
    /// When it was recorded.
    pub reported_at: Timestamp,
    /// The source of the report, in words: the ledger's status or evidence.
    pub source: String,
}

/// An attempt that the ledger did not accept, that proved to be absent, or that an operator decided
/// about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// When the batch was handed to a submitter.
    pub submitted_at: Option<Timestamp>,
    /// When the attempt ended.
    pub ended_at: Timestamp,
    /// How it ended, in words.
    pub outcome: String,
    /// What went wrong.
    pub error: Option<String>,
    /// Until when the batch was delayed.
    pub next_try_at: Option<Timestamp>,
}

/// Selects batches. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchFilter {
    /// Only batches of this service.
    pub service_id: Option<ServiceId>,
    /// Only batches in this state.
    pub state: Option<BatchState>,
}

/// The position after which the next page of batches starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor {
    /// The service of the last batch of the page before.
    pub service_id: ServiceId,
    /// When that batch was stored.
    pub created_at: Timestamp,
}

impl PageCursor {
    /// The page that follows `batch`.
    pub fn after(batch: &StoredBatch) -> Self {
        Self { service_id: batch.service_id.clone(), created_at: batch.created_at }
    }
}

/// An invalid batch that stops others until an operator decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// The batch.
    pub batch: StoredBatch,
    /// Its position in the order of its service.
    pub position: Timestamp,
    /// Since when.
    pub since: Timestamp,
    /// Whether an operator has ended the batches that follow it, and this is not completed yet.
    pub is_ending: bool,
}

/// The position after which the next page of halts starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaltCursor {
    /// The position of the last halt of the page before.
    pub position: Timestamp,
    /// Its service.
    pub service_id: ServiceId,
}

impl HaltCursor {
    /// The page that follows a halt.
    pub fn after(halt: &Halt) -> Self {
        Self { position: halt.position, service_id: halt.batch.service_id.clone() }
    }
}

/// The form that requests use: the position in hex digits, and the service.
impl fmt::Display for HaltCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.position.as_micros(), self.service_id)
    }
}

/// A text that is not a [`HaltCursor`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("it is not the position of a halt")]
pub struct HaltCursorError;

impl FromStr for HaltCursor {
    type Err = HaltCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (position, service_id) = text.split_once('-').ok_or(HaltCursorError)?;
        let position = i64::from_str_radix(position, 16).map_err(|_| HaltCursorError)?;
        let service_id = service_id.parse().map_err(|_| HaltCursorError)?;
        Ok(Self { position: Timestamp::from_micros(position), service_id })
    }
}

/// The number of open batches of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDepth {
    /// The service.
    pub service_id: ServiceId,
    /// How many of its batches are open, in any state.
    pub open: u64,
}

/// Reads what is stored, for programs and people: batches, their services, and who works on them.
pub trait BatchQueryStore: Send + Sync {
    /// The batches with this id: at most one for each service.
    fn find(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>>;

    /// Up to `limit` batches of one service or of all whose ids begin with these characters, ordered by id.
    fn find_by_prefix(
        &self,
        prefix: &ItemIdPrefix,
        service_id: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<StoredBatch>>;

    /// The batches with this transaction: at most one for each service, except for transactions that clients
    /// signed into several batches.
    fn find_by_transaction(&self, transaction_id: &ItemId) -> BatchResult<Vec<StoredBatch>>;

    /// Everything that is stored about one batch.
    fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<BatchDetails>>;

    /// The bytes of a batch, exactly as they were added.
    fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<u8>>>;

    /// What is ahead of the batches of a service that were stored at these times; `None` for a batch that is the first
    /// or has ended. Counts up to [`Ahead::MAX_COUNTED`].
    fn ahead(
        &self,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> BatchResult<Vec<Option<Ahead>>>;

    /// One page: up to `limit` of the selected batches that come after `after` in this order.
    fn batch_page(
        &self,
        selection: &BatchSelection,
        order: PageOrder,
        after: Option<ListCursor>,
        limit: usize,
    ) -> BatchResult<BatchPage>;

    /// One page of services after `after`, ordered by id: those with open batches, or all with `with_idle`.
    fn services(
        &self,
        with_idle: bool,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceOverview>>;

    /// One service. `None`: it never had a batch.
    fn service(&self, service_id: &ServiceId) -> BatchResult<Option<ServiceOverview>>;

    /// The instances, ordered by their ids.
    fn instances(&self) -> BatchResult<Vec<InstanceLease>>;

    /// One page of claims after `after`, ordered by service: those of one instance, or of all.
    fn claims(
        &self,
        instance: Option<&InstanceId>,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<OwnedService>>;
}
