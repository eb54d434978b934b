use std::fmt;

use grid_batch_core::{Hex, Timestamp};

/// A signed transaction that is to be stored before it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSignedTransaction {
    /// Its nonce.
    pub nonce: u64,
    /// Its hash on the chain.
    pub hash: [u8; 32],
    /// The signed bytes, to be sent unchanged.
    pub bytes: Vec<u8>,
    /// The highest price that it pays per unit of gas, in wei.
    pub max_fee: u128,
    /// The part of that price that goes to the block producer, in wei.
    pub tip: u128,
    /// Whether it is a filler: it pays nothing and only uses the nonce.
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

/// A signed transaction that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTransaction {
    /// The transaction.
    pub signed: NewSignedTransaction,
    /// When it was signed.
    pub signed_at: Timestamp,
    /// When it was last sent. `None`: never.
    pub sent_at: Option<Timestamp>,
    /// The node's error when it was last sent, if there was one.
    pub last_error: Option<String>,
    /// Whether it was found on the chain and adopted, because it was missing in the store.
    pub adopted: bool,
}

impl SignedTransaction {
    /// A transaction that was signed here at this time and has not been sent yet.
    pub fn new(signed: NewSignedTransaction, signed_at: Timestamp) -> Self {
        Self { signed, signed_at, sent_at: None, last_error: None, adopted: false }
    }
}
