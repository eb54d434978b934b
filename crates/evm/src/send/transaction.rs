use alloy_consensus::{
    EthereumTypedTransaction, SignableTransaction, Transaction, TxEip1559, TxEip4844, TxEnvelope,
    TxLegacy,
};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use grid_batch_withdrawals::NewSignedTransaction;
use thiserror::Error;

use crate::{key::GasAdminKey, price::Bid};

/// A transaction without its fees. A replacement differs only in its fees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TransactionDraft {
    pub(super) chain_id: u64,
    pub(super) nonce: u64,
    pub(super) gas_limit: u64,
    pub(super) to: Address,
    pub(super) data: Bytes,
}

/// A stored transaction that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot decode the stored transaction with nonce {nonce}: {reason}")]
pub(super) struct TransactionError {
    nonce: u64,
    reason: String,
}

/// Signs a transaction that calls a contract.
pub(super) fn sign(key: &GasAdminKey, draft: &TransactionDraft, bid: &Bid) -> NewSignedTransaction {
    sign_draft(key, draft, bid, false)
}

/// Signs an earlier transaction again, with other fees.
pub(super) fn sign_replacement(
    key: &GasAdminKey,
    earlier: &NewSignedTransaction,
    bid: &Bid,
) -> Result<NewSignedTransaction, TransactionError> {
    Ok(sign_draft(key, &draft_of(earlier)?, bid, earlier.is_filler))
}

/// Signs a filler with the nonce of an earlier transaction.
pub(super) fn sign_cancellation(
    key: &GasAdminKey,
    earlier: &NewSignedTransaction,
    bid: &Bid,
) -> Result<NewSignedTransaction, TransactionError> {
    let draft = TransactionDraft { to: key.address(), data: Bytes::new(), ..draft_of(earlier)? };
    Ok(sign_draft(key, &draft, bid, true))
}

/// Signs a filler: an empty transfer from the account to itself, which only uses the nonce.
pub(super) fn sign_filler(
    key: &GasAdminKey,
    chain_id: u64,
    nonce: u64,
    gas_limit: u64,
    bid: &Bid,
) -> NewSignedTransaction {
    let draft =
        TransactionDraft { chain_id, nonce, gas_limit, to: key.address(), data: Bytes::new() };
    sign_draft(key, &draft, bid, true)
}

/// The gas limit of a stored transaction.
pub(super) fn gas_limit(earlier: &NewSignedTransaction) -> Result<u64, TransactionError> {
    Ok(draft_of(earlier)?.gas_limit)
}

fn sign_draft(
    key: &GasAdminKey,
    draft: &TransactionDraft,
    bid: &Bid,
    is_filler: bool,
) -> NewSignedTransaction {
    let transaction = with_fees(draft, bid);
    let signature = key.sign(transaction.signature_hash());
    let envelope = TxEnvelope::from(transaction.into_signed(signature));
    NewSignedTransaction {
        nonce: draft.nonce,
        hash: envelope.tx_hash().0,
        bytes: envelope.encoded_2718(),
        max_fee: bid.max_fee,
        tip: bid.tip,
        is_filler,
    }
}

fn with_fees(draft: &TransactionDraft, bid: &Bid) -> EthereumTypedTransaction<TxEip4844> {
    let TransactionDraft { chain_id, nonce, gas_limit, to, data } = draft.clone();
    let (to, value) = (TxKind::Call(to), U256::ZERO);
    if bid.is_legacy {
        let (chain_id, gas_price) = (Some(chain_id), bid.max_fee);
        return TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input: data }.into();
    }
    TxEip1559 {
        chain_id,
        nonce,
        gas_limit,
        max_fee_per_gas: bid.max_fee,
        max_priority_fee_per_gas: bid.tip,
        to,
        value,
        access_list: Default::default(),
        input: data,
    }
    .into()
}

fn draft_of(earlier: &NewSignedTransaction) -> Result<TransactionDraft, TransactionError> {
    let error = |reason: String| TransactionError { nonce: earlier.nonce, reason };
    let envelope = TxEnvelope::decode_2718_exact(&earlier.bytes)
        .map_err(|reason| error(reason.to_string()))?;
    Ok(TransactionDraft {
        chain_id: envelope.chain_id().ok_or_else(|| error("it has no chain id".to_owned()))?,
        nonce: envelope.nonce(),
        gas_limit: envelope.gas_limit(),
        to: envelope.to().ok_or_else(|| error("it has no recipient".to_owned()))?,
        data: envelope.input().clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::{key, signer};
    use alloy_primitives::{B256, keccak256};
    use proptest::prelude::*;

    fn drafts() -> impl Strategy<Value = TransactionDraft> {
        let data = prop::collection::vec(any::<u8>(), 0..100);
        (1..=u64::MAX / 2 - 18, 0..u64::MAX, any::<u64>(), any::<[u8; 20]>(), data).prop_map(
            |(chain_id, nonce, gas_limit, to, data)| TransactionDraft {
                chain_id,
                nonce,
                gas_limit,
                to: to.into(),
                data: data.into(),
            },
        )
    }

    fn bids() -> impl Strategy<Value = Bid> {
        (any::<u128>(), any::<u128>(), any::<bool>()).prop_map(|(a, b, is_legacy)| {
            let (max_fee, tip) = if is_legacy { (a, a) } else { (a.max(b), a.min(b)) };
            Bid { max_fee, tip, is_legacy }
        })
    }

    /// Decodes the transaction as a node does.
    fn decode(signed: &NewSignedTransaction) -> TxEnvelope {
        TxEnvelope::decode_2718_exact(&signed.bytes).unwrap()
    }

    fn assert_signed_with(signed: &NewSignedTransaction, bid: Bid) {
        assert_eq!(B256::from(signed.hash), keccak256(&signed.bytes));
        let envelope = decode(signed);
        assert_eq!(signer(envelope.signature(), envelope.signature_hash()), key().address());
        assert_eq!(
            (signed.nonce, signed.max_fee, signed.tip),
            (envelope.nonce(), bid.max_fee, bid.tip)
        );
        assert_eq!(
            (envelope.max_fee_per_gas(), envelope.is_legacy()),
            (bid.max_fee, bid.is_legacy)
        );
        assert_eq!(envelope.max_priority_fee_per_gas(), (!bid.is_legacy).then_some(bid.tip));
        assert_eq!(envelope.value(), U256::ZERO);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn signed_transaction_decodes_to_its_draft(draft in drafts(), bid in bids()) {
            let signed = sign(&key(), &draft, &bid);
            assert_signed_with(&signed, bid);
            prop_assert_eq!(draft_of(&signed).unwrap(), draft.clone());
            prop_assert!(!signed.is_filler);
            prop_assert_eq!(sign(&key(), &draft, &bid), signed);
        }

        #[test]
        fn replacement_differs_only_in_its_fees(
            draft in drafts(), first in bids(), second in bids(),
        ) {
            let earlier = sign(&key(), &draft, &first);
            let replacement = sign_replacement(&key(), &earlier, &second).unwrap();
            assert_signed_with(&replacement, second);
            prop_assert_eq!(draft_of(&replacement).unwrap(), draft);
        }

        #[test]
        fn cancellation_only_uses_the_nonce(
            draft in drafts(), first in bids(), second in bids(),
        ) {
            let filler = sign_cancellation(&key(), &sign(&key(), &draft, &first), &second).unwrap();
            assert_signed_with(&filler, second);
            let to_itself = TransactionDraft { to: key().address(), data: Bytes::new(), ..draft };
            prop_assert_eq!(draft_of(&filler).unwrap(), to_itself);
            prop_assert!(filler.is_filler && sign_replacement(&key(), &filler, &first).unwrap().is_filler);
        }

        #[test]
        fn other_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            let bid = Bid { max_fee: 1, tip: 1, is_legacy: false };
            let draft = TransactionDraft { chain_id: 1, nonce: 7, gas_limit: 1, to: Address::ZERO, data: Bytes::new() };
            let earlier = NewSignedTransaction { bytes, ..sign(&key(), &draft, &bid) };
            let error = sign_replacement(&key(), &earlier, &bid).unwrap_err().to_string();
            prop_assert!(error.starts_with("cannot decode the stored transaction with nonce 7"));
        }
    }
}
