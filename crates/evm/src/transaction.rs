use alloy_consensus::{
    EthereumTypedTransaction, SignableTransaction, Transaction, TxEip1559, TxEip4844, TxEnvelope,
    TxLegacy,
};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use grid_batch_withdrawals::NewSignedTransaction;
use thiserror::Error;

use crate::{GasAdminKey, bid::Bid};

/// A transaction but for its price: what replaces it is the same but for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) chain_id: u64,
    pub(crate) nonce: u64,
    pub(crate) gas_limit: u64,
    pub(crate) to: Address,
    pub(crate) data: Bytes,
}

/// A stored transaction that none was signed here as.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the stored transaction with nonce {nonce} cannot be read: {reason}")]
pub(crate) struct TransactionError {
    nonce: u64,
    reason: String,
}

/// Signs a transaction that calls a contract.
pub(crate) fn sign(key: &GasAdminKey, draft: &Draft, bid: &Bid) -> NewSignedTransaction {
    signed(key, draft, bid, false)
}

/// Signs an earlier transaction again, at another price.
pub(crate) fn resign(
    key: &GasAdminKey,
    earlier: &NewSignedTransaction,
    bid: &Bid,
) -> Result<NewSignedTransaction, TransactionError> {
    Ok(signed(key, &draft_of(earlier)?, bid, earlier.is_filler))
}

/// Signs one that only uses up the nonce of an earlier one: it sends nothing to its own account.
pub(crate) fn cancel(
    key: &GasAdminKey,
    earlier: &NewSignedTransaction,
    bid: &Bid,
) -> Result<NewSignedTransaction, TransactionError> {
    let draft = Draft { to: key.address(), data: Bytes::new(), ..draft_of(earlier)? };
    Ok(signed(key, &draft, bid, true))
}

/// Signs one that only uses up a nonce that has none.
pub(crate) fn fill(
    key: &GasAdminKey,
    chain_id: u64,
    nonce: u64,
    gas_limit: u64,
    bid: &Bid,
) -> NewSignedTransaction {
    let draft = Draft { chain_id, nonce, gas_limit, to: key.address(), data: Bytes::new() };
    signed(key, &draft, bid, true)
}

/// The gas that a stored transaction may use.
pub(crate) fn gas_limit(earlier: &NewSignedTransaction) -> Result<u64, TransactionError> {
    Ok(draft_of(earlier)?.gas_limit)
}

fn signed(key: &GasAdminKey, draft: &Draft, bid: &Bid, is_filler: bool) -> NewSignedTransaction {
    let transaction = priced(draft, bid);
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

fn priced(draft: &Draft, bid: &Bid) -> EthereumTypedTransaction<TxEip4844> {
    let Draft { chain_id, nonce, gas_limit, to, data } = draft.clone();
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

fn draft_of(earlier: &NewSignedTransaction) -> Result<Draft, TransactionError> {
    let error = |reason: String| TransactionError { nonce: earlier.nonce, reason };
    let envelope = TxEnvelope::decode_2718_exact(&earlier.bytes)
        .map_err(|reason| error(reason.to_string()))?;
    Ok(Draft {
        chain_id: envelope.chain_id().ok_or_else(|| error("it names no chain".to_owned()))?,
        nonce: envelope.nonce(),
        gas_limit: envelope.gas_limit(),
        to: envelope.to().ok_or_else(|| error("it calls nobody".to_owned()))?,
        data: envelope.input().clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::{key, signer};
    use alloy_primitives::{B256, keccak256};
    use proptest::prelude::*;

    fn drafts() -> impl Strategy<Value = Draft> {
        let data = prop::collection::vec(any::<u8>(), 0..100);
        (1..=u64::MAX / 2 - 18, 0..u64::MAX, any::<u64>(), any::<[u8; 20]>(), data).prop_map(
            |(chain_id, nonce, gas_limit, to, data)| Draft {
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

    /// The transaction as a chain reads it.
    fn read(signed: &NewSignedTransaction) -> TxEnvelope {
        TxEnvelope::decode_2718_exact(&signed.bytes).unwrap()
    }

    fn assert_is_signed_and_pays(signed: &NewSignedTransaction, bid: Bid) {
        assert_eq!(B256::from(signed.hash), keccak256(&signed.bytes));
        let envelope = read(signed);
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
        fn what_is_signed_is_read_as_it_was_drafted(draft in drafts(), bid in bids()) {
            let signed = sign(&key(), &draft, &bid);
            assert_is_signed_and_pays(&signed, bid);
            prop_assert_eq!(draft_of(&signed).unwrap(), draft.clone());
            prop_assert!(!signed.is_filler);
            prop_assert_eq!(sign(&key(), &draft, &bid), signed);
        }

        #[test]
        fn a_replacement_is_the_same_but_for_its_price(
            draft in drafts(), first in bids(), second in bids(),
        ) {
            let earlier = sign(&key(), &draft, &first);
            let replacement = resign(&key(), &earlier, &second).unwrap();
            assert_is_signed_and_pays(&replacement, second);
            prop_assert_eq!(draft_of(&replacement).unwrap(), draft);
        }

        #[test]
        fn a_cancelling_one_only_uses_up_the_nonce(
            draft in drafts(), first in bids(), second in bids(),
        ) {
            let cancelling = cancel(&key(), &sign(&key(), &draft, &first), &second).unwrap();
            assert_is_signed_and_pays(&cancelling, second);
            let to_itself = Draft { to: key().address(), data: Bytes::new(), ..draft };
            prop_assert_eq!(draft_of(&cancelling).unwrap(), to_itself);
            prop_assert!(cancelling.is_filler && resign(&key(), &cancelling, &first).unwrap().is_filler);
        }

        #[test]
        fn any_bytes_are_a_transaction_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            let bid = Bid { max_fee: 1, tip: 1, is_legacy: false };
            let draft = Draft { chain_id: 1, nonce: 7, gas_limit: 1, to: Address::ZERO, data: Bytes::new() };
            let earlier = NewSignedTransaction { bytes, ..sign(&key(), &draft, &bid) };
            let error = resign(&key(), &earlier, &bid).unwrap_err().to_string();
            prop_assert!(error.starts_with("the stored transaction with nonce 7 cannot be read"));
        }
    }
}
