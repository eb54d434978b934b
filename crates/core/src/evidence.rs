use futures_core::future::BoxFuture;

use crate::monitor::BatchResult;

/// What is known about a batch after looking for proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// It was applied.
    Committed,
    /// The ledger has it, not yet applied.
    Present,
    /// The ledger certainly does not have it, and will not find it later.
    Absent,
    /// Nothing can be proved either way.
    Inconclusive,
}

/// Looks for proof of what became of a batch.
///
/// It stands beside [`BatchStatusReader`](crate::BatchStatusReader), whose `Unknown` proves nothing.
pub trait EvidenceReader: Send {
    /// What became of the batch with these transactions, as far as it can be proved.
    fn find_evidence<'a>(
        &'a self,
        service_id: &'a str,
        batch_id: &'a str,
        transaction_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Evidence>>;
}
