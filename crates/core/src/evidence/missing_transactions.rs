//! Transactions that waiting batches depend on, and that are in no stored batch or only in invalid ones.

use std::{collections::BTreeSet, time::Duration};

use crate::{BatchResult, ItemId, ServiceId};

/// A ledger's answer about transactions. Those that are in neither list had no clear answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionAnswers {
    /// It has applied these for good.
    pub applied: Vec<ItemId>,
    /// It has not applied these. It may do so later.
    pub absent: Vec<ItemId>,
}

/// The result of recording that a ledger does not have certain transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedDependents {
    /// How many batches ended as invalid because they depend on these transactions.
    pub ended: usize,
    /// The services that have a batch to submit now.
    pub ready: BTreeSet<ServiceId>,
}

/// How many missing transactions the ledger has not been asked about yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupLag {
    /// How many there are.
    pub waiting: u64,
    /// How long the first of them has waited.
    pub longest: Duration,
}

/// Stores which transactions are missing for waiting batches of the services that one instance claims.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait MissingTransactionStore: Send {
    /// Up to `limit` missing transactions that the ledger is to be asked about now. The signers of the waiting batches
    /// take turns; for each signer, transactions that the ledger has not been asked about yet come first. The returned
    /// transactions count as asked about from now on. They are returned again after `pause`, which grows each time up
    /// to a limit.
    fn missing_transactions(&self, pause: Duration, limit: usize) -> BatchResult<Vec<ItemId>>;

    /// Records that the ledger did not answer about these transactions: it is asked again after `pause`.
    fn look_up_again(&self, transaction_ids: &[ItemId], pause: Duration) -> BatchResult<()>;

    /// How many transactions the ledger has not been asked about yet.
    fn lookup_lag(&self) -> BatchResult<LookupLag>;

    /// Records that the ledger has applied these transactions. Batches that miss no other transaction get a position in
    /// the order of their service, unless they have one. If there are many, only some get it now, and the others after
    /// the next answer. Returns the services that have a batch to submit now.
    fn found_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<Vec<ServiceId>>;

    /// Records that the ledger does not have these transactions. If only invalid batches contain one of them, the
    /// batches that depend on it end as invalid.
    fn absent_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<EndedDependents>;

    /// Holds batches for which a transaction has been missing for longer than `limit`, until it arrives, the ledger has
    /// it, or an operator releases or decides. Returns their number.
    fn hold_missing(&self, limit: Duration) -> BatchResult<usize>;
}
