use std::fmt;

use grid_batch_core::{DeclaredAccess, ItemId, StoredBatch, Timestamp};

/// An open batch of a service as [`schedule`](crate::schedule) sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenBatch<'a> {
    /// The batch.
    pub batch: &'a StoredBatch,
    /// Its position in the order of its service. `None`: it has none before the transactions that it
    /// depends on are known.
    pub position: Option<Timestamp>,
    /// What it declares.
    pub access: &'a DeclaredAccess,
    /// It has ended as invalid, and what follows it waits until an operator decides. Other batches
    /// that have ended are left out.
    pub halts: bool,
}

/// What is known of a transaction that a batch depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// It was applied.
    Applied,
    /// It is in this open batch, or in one that ended as invalid and halts its service.
    Open(ItemId),
    /// It is only in batches that ended as invalid, and the ledger has not answered whether it has it from
    /// another one.
    Unanswered,
    /// It is only in batches that ended as invalid, and the ledger does not have it, so that it will not
    /// apply the dependent.
    Invalid,
    /// It is in no batch that is known.
    Missing,
}

/// What happens next to an open batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<'a> {
    /// It may be submitted now.
    Submit,
    /// It must wait.
    Wait(WaitsFor<'a>),
    /// It ends as invalid without being sent, because it depends on this transaction, which was not
    /// applied.
    EndAsInvalid(ItemId),
}

/// What an open batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor<'a> {
    /// Its own result: it is with a submitter, at the ledger, or may be.
    Result,
    /// An earlier batch that it conflicts with.
    Conflict(&'a StoredBatch),
    /// An earlier batch, because the strategy keeps the order.
    Earlier(&'a StoredBatch),
    /// A later batch that is with a submitter or at the ledger: this one was lost, and is sent again
    /// when the later ones cannot be applied before it.
    Later(&'a StoredBatch),
    /// A batch with a transaction that it depends on.
    DependsOn(ItemId),
    /// This transaction, which is in no batch that is known.
    Missing(ItemId),
    /// The ledger's answer whether it has this transaction, which is only in invalid batches.
    Ledger(ItemId),
    /// An operator's decision about a batch that ended as invalid.
    Halt(&'a StoredBatch),
    /// A lane: as many batches of its service are under way as are allowed.
    Lane,
    /// An operator, who holds it.
    Hold,
    /// Its next try.
    Delay(Timestamp),
}

impl OpenBatch<'_> {
    /// Whether it is with a submitter, at the ledger, or may be.
    pub fn is_in_flight(&self) -> bool {
        let state = self.batch.progress.state;
        !state.is_terminal() && !state.awaits_queuer()
    }
}

impl fmt::Display for WaitsFor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result => f.write_str("its result"),
            Self::Conflict(other) => {
                write!(f, "the batch {}, which it conflicts with", other.batch_id)
            }
            Self::Earlier(other) => write!(f, "the batch {} before it", other.batch_id),
            Self::Later(other) => {
                write!(f, "the batch {} behind it, which the ledger may have", other.batch_id)
            }
            Self::DependsOn(batch_id) => write!(f, "the batch {batch_id}, which it depends on"),
            Self::Missing(id) => write!(f, "the transaction {id}, which is not known"),
            Self::Ledger(id) => write!(f, "the ledger's answer about the transaction {id}"),
            Self::Halt(other) => {
                write!(f, "a decision about the batch {}, which is invalid", other.batch_id)
            }
            Self::Lane => f.write_str("the end of another batch of its service"),
            Self::Hold => f.write_str("an operator, who holds it"),
            Self::Delay(_) => f.write_str("its next try"),
        }
    }
}
