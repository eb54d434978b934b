use std::fmt;

use grid_batch_core::{Hex, Timestamp};

/// A transaction that was just signed, to be stored before it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSignedTransaction {
    /// Its nonce.
    pub nonce: u64,
    /// Its hash, by which the chain knows it.
    pub hash: [u8; 32],
    /// The bytes, to be sent exactly as they are.
    pub bytes: Vec<u8>,
    /// The most that it pays for a unit of gas, in wei.
    pub max_fee: u128,
    /// What of that is for whoever mines it.
    pub tip: u128,
    /// It pays nothing, and only uses the nonce up.
    pub is_filler: bool,
}

impl fmt::Debug for NewSignedTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSignedTransaction")
            .field("nonce", &self.nonce)
            .field("hash", &format_args!("0x{}", Hex(&self.hash)))
            .field("bytes", &self.bytes.len())
            .field("max_fee", &self.max_fee)
            .field("tip", &self.tip)
            .field("is_filler", &self.is_filler)
            .finish()
    }
}

/// A transaction that was signed and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTransaction {
    /// The transaction.
    pub signed: NewSignedTransaction,
    /// When it was signed.
    pub signed_at: Timestamp,
    /// When it was last sent, if it ever was.
    pub sent_at: Option<Timestamp>,
    /// What the node said against it last.
    pub last_error: Option<String>,
}
