use std::fmt;

use grid_batch_core::batches::NewBatch;
use grid_batch_core::{ItemId, ServiceId};

use crate::{PublicKey, TransactionHeader, declared_access::declared_access};

/// A batch whose ids, keys, hashes and signatures were verified.
///
/// Only [`verify_list`](crate::verify_list) creates it.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifiedBatch {
    pub(crate) id: ItemId,
    pub(crate) signer: PublicKey,
    pub(crate) transactions: Vec<VerifiedTransaction>,
    pub(crate) bytes: Vec<u8>,
}

/// A transaction of a [`VerifiedBatch`], without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedTransaction {
    pub(crate) id: ItemId,
    pub(crate) dependencies: Vec<ItemId>,
    pub(crate) header: TransactionHeader,
}

impl VerifiedBatch {
    /// Its id: the signature of its header.
    pub fn id(&self) -> ItemId {
        self.id
    }

    /// The key that signed it.
    pub fn signer(&self) -> PublicKey {
        self.signer
    }

    /// Its transactions, in order; there is at least one.
    pub fn transactions(&self) -> &[VerifiedTransaction] {
        &self.transactions
    }

    /// The bytes of the `Batch` message, exactly as they were received.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Converts the batch to core's type, to be stored for `service_id`.
    ///
    /// `serialized_batch` has the exact bytes of the `Batch` message, not those of a list. Use
    /// [`list_of_one`](crate::list_of_one) to make a list for a ledger.
    pub fn into_new_batch(self, service_id: ServiceId) -> NewBatch {
        NewBatch {
            service_id,
            batch_id: self.id,
            signer: Some(self.signer.id()),
            transaction_ids: self.transactions.iter().map(|t| t.id).collect(),
            declared_access: Some(declared_access(&self.transactions)),
            serialized_batch: self.bytes,
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        }
    }
}

impl fmt::Debug for VerifiedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedBatch")
            .field("id", &self.id)
            .field("signer", &self.signer)
            .field("transactions", &self.transactions.len())
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

impl VerifiedTransaction {
    /// Its id: the signature of its header.
    pub fn id(&self) -> ItemId {
        self.id
    }

    /// The transactions that must be applied before it.
    pub fn dependencies(&self) -> &[ItemId] {
        &self.dependencies
    }

    /// Its header, with the family and the addresses that it reads and writes.
    pub fn header(&self) -> &TransactionHeader {
        &self.header
    }
}
