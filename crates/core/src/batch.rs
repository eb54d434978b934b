use std::fmt;

use crate::{HeaderId, LedgerStatus, Progress, ServiceId, Timestamp, monitor};

/// A batch as it is handed in: checked, not yet stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
    /// The ids of its transactions, in order.
    pub transaction_ids: Vec<HeaderId>,
    /// The bytes, to be kept and sent exactly as they are.
    pub serialized_batch: Vec<u8>,
}

impl fmt::Debug for NewBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewBatch")
            .field("service_id", &self.service_id)
            .field("batch_id", &self.batch_id)
            .field("transactions", &self.transaction_ids.len())
            .field("bytes", &self.serialized_batch.len())
            .finish()
    }
}

/// A batch as it is stored, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
    /// When it was stored: increasing within the service, in the order of commits.
    pub created_at: Timestamp,
    /// How far it has come.
    pub progress: Progress,
    /// When it was last handed to a submitter.
    pub submitted_at: Option<Timestamp>,
    /// When the ledger was last asked for it.
    pub checked_at: Option<Timestamp>,
    /// Not to be tried again before this.
    pub next_try_at: Option<Timestamp>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Where it waits for a person: since when, and why.
    pub held: Option<Hold>,
    /// When it became invalid or committed.
    pub ended_at: Option<Timestamp>,
}

/// A batch of which nothing proves what became of it: it waits for a person to decide, or for the
/// ledger to say so after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Since when.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
}

/// Why a ledger refused a batch: one for each transaction it complained about, or one for the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction, where the ledger named one.
    pub transaction_id: Option<HeaderId>,
    /// The ledger's message.
    pub error_message: String,
    /// The ledger's data, as bytes.
    pub error_data: Vec<u8>,
}

/// One ledger's answer about one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReport {
    /// The batch's id, as the ledger wrote it.
    pub batch_id: String,
    /// What the ledger says.
    pub status: LedgerStatus,
    /// Why it is invalid, where it is.
    pub receipts: Vec<Receipt>,
}

impl monitor::BatchStatus for StatusReport {
    fn get_id(&self) -> &str {
        &self.batch_id
    }

    fn is_unknown(&self) -> bool {
        self.status == LedgerStatus::NotReported
    }
}
