use thiserror::Error;

use crate::batches::{NewBatch, SignerId};
use crate::{BatchResult, ItemId, ServiceId};

/// How a request to store something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddOutcome {
    /// It is stored now.
    Stored,
    /// It was stored before; nothing changed.
    AlreadyStored,
}

/// Why a batch conflicts with stored batches, or cannot be stored now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchConflict {
    /// A batch with the same id and other bytes is stored already.
    #[error("the service {service_id} has the batch {batch_id} already, with other bytes")]
    OtherBytes {
        /// The service that orders it.
        service_id: ServiceId,
        /// Its id.
        batch_id: ItemId,
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
    /// The ledger has applied one of its transactions with a batch that is not stored.
    #[error(
        "the service {service_id} has applied the transaction {transaction_id} of the batch {batch_id} before, \
         with a batch that is not stored; sign a new transaction if it is to be applied once more"
    )]
    AppliedBefore {
        /// The service that orders the batches.
        service_id: ServiceId,
        /// The batch that cannot be stored.
        batch_id: ItemId,
        /// The transaction.
        transaction_id: Box<ItemId>,
    },
    /// The service has reached its limit of open batches.
    #[error(
        "the service {service_id} has {open} open batches, and may have {limit}; send the batches again \
         when some of them have ended"
    )]
    QueueFull {
        /// The service that orders the batches.
        service_id: ServiceId,
        /// The number of its open batches, including those of the same list.
        open: u64,
        /// How many it may have.
        limit: u64,
    },
    /// The client has reached its limit of open batches.
    #[error(
        "this client has {open} open batches, and may have {limit}; send the batches again when some of \
         them have ended"
    )]
    QueueOfClientFull {
        /// The number of its open batches, including those of the same list.
        open: u64,
        /// How many it may have.
        limit: u64,
    },
    /// Batches of the signer have reached the limit of missing transactions.
    #[error(
        "batches of the key {signer} wait for {missing} transactions that have not arrived, and may wait \
         for {limit}; send the batches first that they depend on, or send these again when those have arrived"
    )]
    TooManyMissing {
        /// Who signed the batch.
        signer: Box<SignerId>,
        /// The number of missing transactions, each counted with every batch that depends on it.
        missing: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The service has reached its limit of batches that depend on missing transactions.
    #[error(
        "{incomplete} batches of the service {service_id} wait for transactions that have not arrived, and \
         {limit} may; send the batches first that they depend on, or send these again when those have arrived"
    )]
    TooManyIncomplete {
        /// The service that orders the batches.
        service_id: ServiceId,
        /// The number of batches that depend on missing transactions.
        incomplete: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The signer has reached its limit of opened services in which no batch has ended.
    #[error(
        "the service {service_id} has no batches yet, and the key {signer} has opened {limit} other \
         services in which no batch has ended; check the service id, or send the batches again when \
         batches of the other services have ended"
    )]
    TooManyServicesOfSigner {
        /// The service that would be opened.
        service_id: ServiceId,
        /// Who signed the batch.
        signer: Box<SignerId>,
        /// How many it may have opened.
        limit: u64,
    },
    /// The limit of services in which no batch has ended is reached.
    #[error(
        "the service {service_id} has no batches yet, and there are {limit} other services in which no \
         batch has ended; check the service id, or send the batches again when batches of the other \
         services have ended"
    )]
    TooManyNewServices {
        /// The service that would be opened.
        service_id: ServiceId,
        /// How many there may be.
        limit: u64,
    },
}

/// Another batch of the service, which is open or committed, has the same transaction. The ledger would execute it
/// twice, and its commit would not show which of the batches was committed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the batch {batch_id} has the transaction {transaction_id}, which the batch {other_batch_id} of \
     the service {service_id} has already; sign a new transaction"
)]
pub struct TransactionConflict {
    /// The service that orders the batches.
    pub service_id: ServiceId,
    /// The batch that cannot be stored.
    pub batch_id: ItemId,
    /// The transaction.
    pub transaction_id: ItemId,
    /// The batch that has the transaction already.
    pub other_batch_id: ItemId,
}

/// Stores batches durably.
pub trait IntakeStore: Send + Sync {
    /// Stores lists of batches, in one commit unless a service is locked. Each list is stored as a whole
    /// or, on a conflict or at a limit, not at all.
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>>;
}
