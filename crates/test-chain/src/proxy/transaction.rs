use alloy_consensus::{Transaction, TxEnvelope, transaction::SignerRecoverable};
use alloy_eips::Decodable2718;
use alloy_primitives::{Bytes, hex};

/// A transaction that was sent to the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentTransaction {
    /// Its hash: `0x` and 64 lower-case hex digits.
    pub hash: String,
    /// Its signer: `0x` and 40 lower-case hex digits.
    pub sender: String,
    /// The sender's nonce.
    pub nonce: u64,
    /// The max fee for a unit of gas, in wei; the gas price of a legacy transaction.
    pub max_fee: u128,
    /// The tip, in wei; the gas price of a legacy transaction.
    pub tip: u128,
    /// The signed bytes, as they were sent.
    pub raw: String,
}

impl SentTransaction {
    /// Decodes signed bytes; `None` if they are not a transaction.
    pub(super) fn decode(raw: &str) -> Option<Self> {
        let bytes: Bytes = raw.parse().ok()?;
        let envelope = TxEnvelope::decode_2718_exact(&bytes).ok()?;
        let max_fee = envelope.max_fee_per_gas();
        Some(Self {
            hash: hex::encode_prefixed(envelope.tx_hash()),
            sender: hex::encode_prefixed(envelope.recover_signer().ok()?),
            nonce: envelope.nonce(),
            max_fee,
            tip: envelope.max_priority_fee_per_gas().unwrap_or(max_fee),
            raw: raw.to_owned(),
        })
    }

    /// Whether it has the same sender and nonce as another transaction.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        self.sender == other.sender && self.nonce == other.nonce && self.hash != other.hash
    }

    /// Whether both fees are higher than the other's by this many percent.
    pub(super) fn raises(&self, other: &Self, percent: u32) -> bool {
        let is_raised = |new: u128, old: u128| {
            new > old && new.saturating_mul(100) >= old.saturating_mul(100 + u128::from(percent))
        };
        is_raised(self.max_fee, other.max_fee) && is_raised(self.tip, other.tip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fees_must_be_raised() {
        let with = |max_fee, tip| SentTransaction {
            hash: String::new(),
            sender: String::new(),
            nonce: 0,
            max_fee,
            tip,
            raw: String::new(),
        };
        let old = with(1_000, 10);
        assert!(with(1_100, 11).raises(&old, 10));
        assert!(!with(1_099, 11).raises(&old, 10));
        assert!(!with(2_000, 10).raises(&old, 10));
        assert!(!with(1_000, 10).raises(&old, 0));
    }

    #[test]
    fn other_bytes_are_no_transaction() {
        for raw in ["", "0x", "0x02c0", "rubbish"] {
            assert_eq!(SentTransaction::decode(raw), None);
        }
    }
}
