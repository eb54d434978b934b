use std::collections::HashMap;

use alloy_primitives::B256;
use grid_batch_core::BatchError;
use grid_batch_withdrawals::{
    AssignedNonce, ClosedNonce, FollowingPayment, FollowingPayments, SignedTransaction,
};

use super::look::LookAhead;
use crate::{
    account::AccountError,
    action::Action,
    node::TransactionReceipt,
    nonce::{Finality, MinedTransaction, final_result},
};

/// The outcomes of the following withdrawals whose transactions are final, in order, up to the first that is not.
///
/// `count` is the account's transaction count, which was read before the receipts. If it does not cover a nonce, a
/// receipt for the nonce is outdated.
pub(super) async fn final_nonces(
    look: &LookAhead<'_>,
    following: &FollowingPayments,
    count: u64,
) -> Result<Vec<ClosedNonce>, AccountError> {
    let covered: Vec<_> = following.in_flight().filter(|(_, it)| it.nonce < count).collect();
    let hashes: Vec<B256> = covered.iter().flat_map(|(_, it)| hashes(it)).collect();
    if hashes.is_empty() {
        return Ok(Vec::new());
    }
    let receipts = look.node.receipts(&hashes).await?.into_iter().flatten();
    let mut receipts: HashMap<B256, TransactionReceipt> =
        receipts.map(|it| (it.hash, it)).collect();
    let mut blocks = look.account.finality_at(look.node);
    let mut closed = Vec::new();
    for (FollowingPayment { payment, .. }, assigned) in covered {
        let Some(mined) = mined(assigned, &mut receipts) else { break };
        if blocks.of(mined.receipt.block).await? != Finality::Final {
            break;
        }
        let action = Action::for_payment(payment).map_err(BatchError::InternalError)?;
        let (node, account) = (look.node, look.account.address());
        closed.push(final_result(&mined, node, account, &action, payment.call.as_ref()).await?);
    }
    Ok(closed)
}

fn hashes(assigned: &AssignedNonce) -> impl Iterator<Item = B256> {
    assigned.transactions.iter().map(|transaction| transaction.signed.hash.into())
}

/// The transaction of a nonce that is in a block, with the receipt.
fn mined<'a>(
    assigned: &'a AssignedNonce,
    receipts: &mut HashMap<B256, TransactionReceipt>,
) -> Option<MinedTransaction<'a>> {
    assigned.transactions.iter().find_map(|SignedTransaction { signed, .. }| {
        let receipt = receipts.remove(&B256::from(signed.hash))?;
        Some(MinedTransaction { signed, receipt })
    })
}
