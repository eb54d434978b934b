//! Transactions that waiting batches depend on and that no stored batch has, or only invalid ones.

use std::{collections::BTreeSet, time::Duration};

use crate::{ItemId, ServiceId, monitor::BatchResult};

/// What a ledger says about transactions. There was no clear answer about those that are in neither list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionAnswers {
    /// It has applied these for good.
    pub applied: Vec<ItemId>,
    /// It has not applied these. It may do so later.
    pub absent: Vec<ItemId>,
}

/// What followed from an answer that a ledger does not have transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedDependents {
    /// How many batches ended as invalid, because they depend on them.
    pub ended: usize,
    /// The services that have a batch to submit now.
    pub ready: BTreeSet<ServiceId>,
}

/// For how many missing transactions the ledger was not asked yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupLag {
    /// How many there are.
    pub waiting: u64,
    /// For how long the first of them has waited.
    pub longest: Duration,
}

/// Knows which transactions waiting batches miss, of the services that one instance claims.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait MissingTransactionStore: Send {
    /// Up to `limit` missing transactions that are to be looked for at the ledger now. The signers of the batches
    /// that miss them take turns, and of each signer those come first for which the ledger was not asked yet.
    /// They count as asked about from now on: `pause` passes until the next time, and each time more, up to a
    /// limit.
    fn missing_transactions(&self, pause: Duration, limit: usize) -> BatchResult<Vec<ItemId>>;

    /// The ledger did not answer about these transactions: they are looked for again after `pause`.
    fn look_up_again(&self, transaction_ids: &[ItemId], pause: Duration) -> BatchResult<()>;

    /// For how many transactions the ledger was not asked yet.
    fn lookup_lag(&self) -> BatchResult<LookupLag>;

    /// The ledger has applied these transactions. Batches that miss no other one get a position in the order
    /// of their service, unless they have one. If there are many, only some do now, and the others after the next
    /// answer. Returns the services that have a batch to submit now.
    fn found_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<Vec<ServiceId>>;

    /// The ledger does not have these transactions. Batches end as invalid that depend on one which only
    /// invalid batches have.
    fn absent_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<EndedDependents>;

    /// Holds batches that have missed a transaction for longer than `limit`, for that reason, until it
    /// arrives, the ledger has it, or an operator releases or decides. Returns how many.
    fn hold_missing(&self, limit: Duration) -> BatchResult<usize>;
}
