use futures_core::future::BoxFuture;

use crate::{AttemptId, BatchState, HeaderId, ServiceId, Timestamp, monitor::BatchResult};

/// What is known about a batch after looking for proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// It was applied.
    Committed,
    /// The ledger has it, not yet applied.
    Present,
    /// The ledger certainly does not have it, and will not find it later.
    Absent,
    /// The ledger has not applied it, and would apply it once however often it is sent: the same
    /// transaction of one account, whose number is used once. To be sent again.
    Repeatable,
    /// Nothing can be proved either way.
    Inconclusive,
}

/// Looks for proof of what became of a batch.
///
/// It stands beside [`BatchStatusReader`](crate::BatchStatusReader), whose `Unknown` proves nothing.
pub trait EvidenceReader: Send {
    /// What became of the batch, as far as it can be proved. Absence is that of every attempt until
    /// the present one, whoever made them.
    fn find_evidence<'a>(
        &'a self,
        doubt: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<Evidence>>;
}

/// A batch of which the ledger said nothing that ends it, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
    /// The ids of its transactions, in order.
    pub transaction_ids: Vec<HeaderId>,
    /// The attempt that is under way.
    pub attempt_id: AttemptId,
    /// Where it stands.
    pub state: BatchState,
    /// When it was handed to a submitter.
    pub submitted_at: Timestamp,
    /// When it came to where it stands.
    pub since: Timestamp,
    /// It is held already: a person is to decide.
    pub held: bool,
}

/// What a doubt comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// To go by this evidence.
    Evidence(Evidence),
    /// To hold the batch, for this reason, until a person decides or the ledger says what became of
    /// it.
    Hold(String),
}

/// A store that knows what evidence is to be looked for, and keeps what was found.
pub trait UnresolvedBatchStore: Send {
    /// How these batches stand, of those that are still to be followed.
    fn get_unresolved_batches(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>>;

    /// Writes what doubts came to.
    fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()>;
}
