use alloy_primitives::B256;
use grid_batch_core::{ScopeId, Timestamp};
use grid_batch_withdrawals::{ClosedNonce, NonceOutcome, SignedTransaction};
use log::{error, info};

use super::settlement::{MAX_AT_ONCE, SettleError};
use crate::{
    context::EvmContext,
    node::{BlockTag, NodeClient, NodeError, Receipt},
    nonce::{Confirmations, MinedTransaction, final_result, find_dispute},
    pool::PoolCall,
    scope::AccountScopeId,
};

/// An unsettled nonce that was used by the transaction that is stored for it.
pub(super) struct OwnUse {
    hash: B256,
    receipt: Receipt,
}

/// The first of these transactions that the node shows in a block.
pub(super) async fn find_mined(
    node: &NodeClient,
    hashes: &[[u8; 32]],
) -> Result<Option<OwnUse>, NodeError> {
    for hash in hashes {
        let hash = B256::from(*hash);
        if let Some(receipt) = node.receipt(hash).await? {
            return Ok(Some(OwnUse { hash, receipt }));
        }
    }
    Ok(None)
}

/// Closes the nonces of withdrawals that have ended, if their own transactions are final: also while no
/// withdrawal is next, before whose nonce they are settled.
pub(crate) async fn close_own_uses(
    context: &EvmContext,
    nodes: &[NodeClient],
    node: &NodeClient,
    scope: &AccountScopeId,
) -> Result<(), SettleError> {
    let unsettled = context.store.unsettled_nonces(scope.service_id()).await?;
    let mut stored = unsettled.stored.into_iter().filter(|it| it.undecided.is_none()).peekable();
    if stored.peek().is_none() {
        return Ok(());
    }
    let count = node.transaction_count(scope.address(), BlockTag::Latest).await?;
    let mut uses = Vec::new();
    for stored in stored.filter(|it| it.nonce < count).take(MAX_AT_ONCE) {
        uses.extend(find_mined(node, &stored.hashes).await?);
    }
    close_final(context, nodes, node, scope, uses).await
}

/// Closes nonces whose own transactions are final. Their withdrawals have ended, or they have none, so no
/// status reader closes them, and nothing is signed ahead while they are open.
pub(super) async fn close_final(
    context: &EvmContext,
    nodes: &[NodeClient],
    node: &NodeClient,
    scope: &AccountScopeId,
    uses: Vec<OwnUse>,
) -> Result<(), SettleError> {
    let mut confirmations = Confirmations::new(node, context.confirmations);
    let mut closed = Vec::new();
    for own in uses.into_iter().take(MAX_AT_ONCE) {
        let block = own.receipt.block;
        if !confirmations.is_final(block).await?
            || find_dispute(context, nodes, node, block).await.is_some()
        {
            continue;
        }
        closed.extend(read_result(node, scope, own).await?);
    }
    if closed.is_empty() {
        return Ok(());
    }
    let paid = context.store.close_nonces(scope.service_id(), &closed).await?;
    context.gas.note_paid_after_failure(paid);
    for ClosedNonce { nonce, note, outcome, .. } in &closed {
        match outcome {
            Some(NonceOutcome::Withdrawn { .. } | NonceOutcome::WithoutEvent) => error!(
                service:% = scope, nonce, note = note.as_str();
                "a transaction of a withdrawal that an operator decided about succeeded on the chain"
            ),
            _ => info!(
                service:% = scope, nonce, end = note.as_str();
                "a nonce of no open withdrawal is closed"
            ),
        }
    }
    Ok(())
}

/// How the use of the nonce ended. `None`: the node does not show the whole transaction.
async fn read_result(
    node: &NodeClient,
    scope: &AccountScopeId,
    OwnUse { hash, receipt }: OwnUse,
) -> Result<Option<ClosedNonce>, NodeError> {
    let Some(details) = node.transaction_details(hash).await? else { return Ok(None) };
    let (Some(signed), Some(pool)) = (details.signed, details.to) else { return Ok(None) };
    // When it was signed does not matter here.
    let transaction = SignedTransaction::new(signed, Timestamp::default());
    let mined = MinedTransaction { transaction: &transaction, receipt };
    let call = PoolCall { pool, data: details.input };
    Ok(Some(final_result(&mined, node, scope.address(), &call).await?))
}
