use alloy_consensus::{
    EthereumTypedTransaction, SignableTransaction, Transaction, TxEip1559, TxEip4844, TxEnvelope,
    TxLegacy,
};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::U256;
use grid_batch_withdrawals::NewSignedTransaction;
use thiserror::Error;

use crate::{
    action::Action,
    price::Bid,
    signer::{AccountSigner, SignerError},
};

/// A transaction without its fees. A replacement differs only in its fees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransactionDraft {
    pub(crate) chain_id: u64,
    pub(crate) nonce: u64,
    pub(crate) gas_limit: u64,
    pub(crate) action: Action,
}

/// A stored transaction that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot decode the stored transaction with nonce {nonce}: {reason}")]
pub(crate) struct TransactionError {
    nonce: u64,
    reason: String,
}

/// Why a transaction was not signed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SigningError {
    #[error(transparent)]
    Stored(#[from] TransactionError),
    #[error("cannot sign with the key of the gas admin: {0}")]
    Signer(#[from] SignerError),
}

/// Signs a transaction.
pub(crate) async fn sign(
    signer: &AccountSigner,
    draft: &TransactionDraft,
    bid: &Bid,
) -> Result<NewSignedTransaction, SigningError> {
    let transaction = with_fees(draft, bid);
    let signature = signer.sign(&transaction.encoded_for_signing()).await?;
    let envelope = TxEnvelope::from(transaction.into_signed(signature));
    Ok(NewSignedTransaction {
        nonce: draft.nonce,
        hash: envelope.tx_hash().0,
        bytes: envelope.encoded_2718(),
        max_fee: bid.max_fee,
        tip: bid.tip,
        is_filler: draft.action == Action::filler(signer.address()),
    })
}

/// Signs an earlier transaction again, with another gas limit and other fees.
pub(crate) async fn sign_replacement(
    signer: &AccountSigner,
    earlier: &NewSignedTransaction,
    gas_limit: u64,
    bid: &Bid,
) -> Result<NewSignedTransaction, SigningError> {
    let draft = TransactionDraft { gas_limit, ..draft_of(earlier)? };
    sign(signer, &draft, bid).await
}

/// The gas limit of a stored transaction.
pub(crate) fn gas_limit(earlier: &NewSignedTransaction) -> Result<u64, TransactionError> {
    Ok(draft_of(earlier)?.gas_limit)
}

/// The most that a stored transaction costs if it pays up to this price: its gas and what it transfers. One that cannot
/// be decoded cannot be sent either.
pub(crate) fn highest_cost(signed: &NewSignedTransaction, max_fee: u128) -> U256 {
    let Ok(TransactionDraft { gas_limit, action, .. }) = draft_of(signed) else {
        return U256::ZERO;
    };
    let gas = U256::from(gas_limit) * U256::from(max_fee);
    gas.saturating_add(action.value)
}

/// Whether a stored transaction has a single price, as before EIP-1559.
pub(super) fn is_legacy(earlier: &NewSignedTransaction) -> Result<bool, TransactionError> {
    Ok(decode(earlier)?.is_legacy())
}

fn with_fees(draft: &TransactionDraft, bid: &Bid) -> EthereumTypedTransaction<TxEip4844> {
    let TransactionDraft { chain_id, nonce, gas_limit, action } = draft.clone();
    let Action { to, value, data } = action;
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
    let error = |reason: &str| TransactionError { nonce: earlier.nonce, reason: reason.to_owned() };
    let envelope = decode(earlier)?;
    Ok(TransactionDraft {
        chain_id: envelope.chain_id().ok_or_else(|| error("it has no chain id"))?,
        nonce: envelope.nonce(),
        gas_limit: envelope.gas_limit(),
        action: Action {
            to: envelope.kind(),
            value: envelope.value(),
            data: envelope.input().clone(),
        },
    })
}

fn decode(earlier: &NewSignedTransaction) -> Result<TxEnvelope, TransactionError> {
    TxEnvelope::decode_2718_exact(&earlier.bytes)
        .map_err(|reason| TransactionError { nonce: earlier.nonce, reason: reason.to_string() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy_primitives::{Address, B256, Bytes, TxKind, keccak256};
    use proptest::prelude::*;

    use super::*;
    use crate::signer::test_key::{key, recover};

    fn drafts() -> impl Strategy<Value = TransactionDraft> {
        let data = prop::collection::vec(any::<u8>(), 0..100);
        let to = prop::option::of(any::<[u8; 20]>());
        let to = to.prop_map(|to| to.map_or(TxKind::Create, |to| TxKind::Call(to.into())));
        let action = (to, any::<[u8; 32]>(), data).prop_map(|(to, value, data)| Action {
            to,
            value: U256::from_be_bytes(value),
            data: data.into(),
        });
        (1..=u64::MAX / 2 - 18, 0..u64::MAX, any::<u64>(), action).prop_map(
            |(chain_id, nonce, gas_limit, action)| TransactionDraft {
                chain_id,
                nonce,
                gas_limit,
                action,
            },
        )
    }

    fn bids() -> impl Strategy<Value = Bid> {
        (any::<u128>(), any::<u128>(), any::<bool>()).prop_map(|(a, b, is_legacy)| {
            let (max_fee, tip) = if is_legacy { (a, a) } else { (a.max(b), a.min(b)) };
            Bid { max_fee, tip, is_legacy }
        })
    }

    fn signer() -> AccountSigner {
        AccountSigner::new(Arc::new(key()))
    }

    /// A local key signs at once.
    fn ready<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    /// The transaction signed with the test key.
    fn signed(draft: &TransactionDraft, bid: &Bid) -> NewSignedTransaction {
        ready(sign(&signer(), draft, bid)).unwrap()
    }

    fn assert_signed_with(signed: &NewSignedTransaction, bid: Bid) {
        assert_eq!(B256::from(signed.hash), keccak256(&signed.bytes));
        let envelope = decode(signed).unwrap();
        assert_eq!(recover(envelope.signature(), envelope.signature_hash()), Ok(key().address()));
        assert_eq!(
            (signed.nonce, signed.max_fee, signed.tip),
            (envelope.nonce(), bid.max_fee, bid.tip)
        );
        assert_eq!(
            (envelope.max_fee_per_gas(), envelope.is_legacy()),
            (bid.max_fee, bid.is_legacy)
        );
        assert_eq!(envelope.max_priority_fee_per_gas(), (!bid.is_legacy).then_some(bid.tip));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn signed_transaction_decodes_to_its_draft(draft in drafts(), bid in bids()) {
            let first = signed(&draft, &bid);
            assert_signed_with(&first, bid);
            prop_assert_eq!(draft_of(&first).unwrap(), draft.clone());
            prop_assert!(!first.is_filler);
            prop_assert_eq!(signed(&draft, &bid), first);
        }

        #[test]
        fn replacement_differs_only_in_gas_limit_and_fees(
            draft in drafts(), first in bids(), second in bids(), gas_limit in any::<u64>(),
        ) {
            let earlier = signed(&draft, &first);
            let replacement =
                ready(sign_replacement(&signer(), &earlier, gas_limit, &second)).unwrap();
            assert_signed_with(&replacement, second);
            prop_assert_eq!(is_legacy(&replacement).unwrap(), second.is_legacy);
            prop_assert_eq!(draft_of(&replacement).unwrap(), TransactionDraft { gas_limit, ..draft });
        }

        #[test]
        fn filler_only_uses_the_nonce(
            draft in drafts(), first in bids(), second in bids(),
        ) {
            let draft = TransactionDraft { action: Action::filler(key().address()), ..draft };
            let filler = signed(&draft, &second);
            assert_signed_with(&filler, second);
            prop_assert_eq!(draft_of(&filler).unwrap(), draft);
            let raised = ready(sign_replacement(&signer(), &filler, 21_000, &first)).unwrap();
            prop_assert!(filler.is_filler && raised.is_filler);
        }

        #[test]
        fn other_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            let bid = Bid { max_fee: 1, tip: 1, is_legacy: false };
            let action = Action::without_value(Address::ZERO, Bytes::new());
            let draft = TransactionDraft { chain_id: 1, nonce: 7, gas_limit: 1, action };
            let earlier = NewSignedTransaction { bytes, ..signed(&draft, &bid) };
            let error = ready(sign_replacement(&signer(), &earlier, 1, &bid)).unwrap_err().to_string();
            prop_assert!(error.starts_with("cannot decode the stored transaction with nonce 7"));
        }
    }
}
