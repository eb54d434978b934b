use thiserror::Error;

use crate::{HeaderId, NewBatch, ServiceId, monitor::BatchResult};

/// How a request to store something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddOutcome {
    /// It is stored now.
    Stored,
    /// It was stored before; nothing changed.
    AlreadyStored,
}

/// Why a batch cannot be stored beside the batches that its service has, or cannot be stored now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchConflict {
    /// A batch with the same id and other bytes is stored already.
    #[error("the service {service_id} has the batch {batch_id} already, with other bytes")]
    OtherBytes {
        /// The service that orders it.
        service_id: ServiceId,
        /// Its id.
        batch_id: HeaderId,
    },
    /// Another transaction of the database keeps the service locked: try again later.
    #[error(
        "the service {service_id} is locked in the database by another transaction; send the batches \
         again"
    )]
    ServiceLocked {
        /// The service.
        service_id: ServiceId,
    },
    /// Another batch of the service has one of its transactions already.
    #[error(transparent)]
    Transaction(#[from] Box<TransactionConflict>),
}

/// Another batch of the service, which is open or committed, has the same transaction. The ledger
/// would execute it twice, and its commit would not tell which of the batches was committed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the batch {batch_id} has the transaction {transaction_id}, which the batch {other_batch_id} of \
     the service {service_id} has already; sign a new transaction"
)]
pub struct TransactionConflict {
    /// The service that orders the batches.
    pub service_id: ServiceId,
    /// The batch that cannot be stored.
    pub batch_id: HeaderId,
    /// The transaction.
    pub transaction_id: HeaderId,
    /// The batch that has the transaction already.
    pub other_batch_id: HeaderId,
}

/// Stores batches durably.
pub trait IntakeStore: Send + Sync {
    /// Stores lists of batches, in one commit unless a service is locked. Each list is stored as a
    /// whole or, on a conflict, not at all.
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>>;
}
