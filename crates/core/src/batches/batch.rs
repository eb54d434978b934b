use std::fmt;

use crate::batches::{
    BatchLabel, ClientId, Deadline, DeclaredAccess, LedgerStatus, Progress, SignerId, TraceContext,
};
use crate::polling::BatchStatus;
use crate::{ItemId, ServiceId, Timestamp};

/// A batch that was checked but is not stored yet.
#[derive(Clone, PartialEq, Eq)]
pub struct NewBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: ItemId,
    /// Who signed it, for the limits of signers. `None`: the batch has no signature, such as that of a withdrawal, or
    /// the ledger has confirmed that the service exists, so that the limits do not apply.
    pub signer: Option<SignerId>,
    /// The ids of its transactions, in order.
    pub transaction_ids: Vec<ItemId>,
    /// What its transactions declare to read, write and depend on. `None`: not known, so the batch conflicts with every
    /// other batch.
    pub declared_access: Option<DeclaredAccess>,
    /// The bytes. They are stored and sent unchanged.
    pub serialized_batch: Vec<u8>,
    /// The label that its client gave it.
    pub label: Option<BatchLabel>,
    /// Who handed it in, for the limit of open batches of a client.
    pub client: Option<ClientId>,
    /// Whether its client declares that the ledger has never committed it.
    pub declared_new: bool,
    /// When its ledger can no longer apply it, if there is such a time or height.
    pub deadline: Option<Deadline>,
    /// The trace of the request that it was sent with.
    pub trace: Option<TraceContext>,
}

impl NewBatch {
    /// A batch of one transaction with the same id as the batch, about which nothing else is known.
    ///
    /// ```
    /// use grid_batch_core::batches::{Deadline, NewBatch};
    ///
    /// let batch = NewBatch {
    ///     deadline: Some(Deadline::Height(7)),
    ///     ..NewBatch::new("alice".parse()?, "alice-1-5a5a".parse()?, b"pay bob".to_vec())
    /// };
    /// assert_eq!(batch.transaction_ids, [batch.batch_id]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(service_id: ServiceId, batch_id: ItemId, serialized_batch: Vec<u8>) -> Self {
        Self {
            service_id,
            batch_id,
            signer: None,
            transaction_ids: vec![batch_id],
            declared_access: None,
            serialized_batch,
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        }
    }
}

impl fmt::Debug for NewBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewBatch")
            .field("service_id", &self.service_id)
            .field("batch_id", &self.batch_id)
            .field("signer", &self.signer)
            .field("transactions", &self.transaction_ids.len())
            .field("bytes", &self.serialized_batch.len())
            .field("label", &self.label)
            .field("client", &self.client)
            .field("declared_new", &self.declared_new)
            .field("deadline", &self.deadline)
            .field("trace", &self.trace)
            .finish()
    }
}

/// A batch as it is stored, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: ItemId,
    /// When it was stored. Strictly increasing within a service, in the order in which batches were stored.
    pub created_at: Timestamp,
    /// Its state and number of attempts.
    pub progress: Progress,
    /// When it was last handed to a submitter. If it never was: when it was put in doubt because its database was
    /// restored.
    pub submitted_at: Option<Timestamp>,
    /// When it entered its state, if it was ever tried or put in doubt.
    pub since: Option<Timestamp>,
    /// When the ledger was last asked for its status.
    pub checked_at: Option<Timestamp>,
    /// When a delayed batch may be tried again.
    pub next_try_at: Option<Timestamp>,
    /// Whether it is delayed by a gate, such as that of the gas price, rather than by a failed attempt.
    pub parked: bool,
    /// The last error, or why the gate is closed.
    pub last_error: Option<String>,
    /// Set while the batch is held for an operator.
    pub held: Option<Hold>,
    /// When it became invalid or committed.
    pub ended_at: Option<Timestamp>,
}

impl StoredBatch {
    /// A batch that was just stored and never tried.
    ///
    /// ```
    /// use grid_batch_core::{Timestamp, batches::{BatchState, StoredBatch}};
    ///
    /// let created_at = Timestamp::from_micros(5);
    /// let new = StoredBatch::new("alice".parse()?, "alice-1-5a5a".parse()?, created_at);
    /// assert_eq!(new.progress.state, BatchState::New);
    /// let held_back = StoredBatch { next_try_at: Some(Timestamp::from_micros(9)), ..new };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(service_id: ServiceId, batch_id: ItemId, created_at: Timestamp) -> Self {
        Self {
            service_id,
            batch_id,
            created_at,
            progress: Progress::NEW,
            submitted_at: None,
            since: None,
            checked_at: None,
            next_try_at: None,
            parked: false,
            last_error: None,
            held: None,
            ended_at: None,
        }
    }
}

/// Why a batch is held: it waits for an operator's decision or for a status of the ledger that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// When the hold began.
    pub since: Timestamp,
    /// The reason, in words.
    pub reason: String,
    /// Whether only an operator's decision or release allows the batch to be sent. Otherwise evidence can end the hold
    /// and cause it to be sent again.
    pub until_decision: bool,
}

/// Why a ledger rejected a batch: one receipt for each rejected transaction, or one for the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction, if the ledger named one.
    pub transaction_id: Option<ItemId>,
    /// The ledger's message.
    pub error_message: String,
    /// The ledger's error data.
    pub error_data: Vec<u8>,
}

/// The status that a ledger reported for one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReport {
    /// The batch's id, as the ledger wrote it.
    pub batch_id: String,
    /// The status.
    pub status: LedgerStatus,
    /// Why the batch is invalid; empty unless it is.
    pub receipts: Vec<Receipt>,
}

impl BatchStatus for StatusReport {
    fn get_id(&self) -> &str {
        &self.batch_id
    }

    fn is_unknown(&self) -> bool {
        self.status == LedgerStatus::NotReported
    }

    fn is_final(&self) -> bool {
        matches!(self.status, LedgerStatus::Invalid | LedgerStatus::Committed)
    }

    fn is_valid(&self) -> bool {
        self.status == LedgerStatus::Valid
    }

    fn is_committed(&self) -> bool {
        self.status == LedgerStatus::Committed
    }
}
