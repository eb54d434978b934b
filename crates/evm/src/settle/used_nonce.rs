use alloy_primitives::{Address, B256};
use grid_batch_core::{BatchError, BatchResult, ScopeId, Timestamp};
use grid_batch_withdrawals::{AssignedNonce, NonceUse, Payment};
use log::info;

use super::{
    found_use::{FoundUse, UseKind, makes_call},
    matching::{Candidates, match_uses},
};
use crate::{
    context::EvmContext,
    node::{NodeClient, TransactionDetails},
    nonce::{find_at_any, is_foreign_use_final},
    pool::PoolCall,
    scope::AccountScopeId,
    values::parse_address,
};

/// What a transaction that is not stored is to the withdrawal whose nonce it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsedNonce {
    /// The transaction is the withdrawal's own, and was adopted.
    Own,
    /// The transaction was adopted by another withdrawal, which has the nonce. This withdrawal has none.
    Moved,
    /// The transaction is not known to be final at enough nodes.
    NotFinal,
    /// The transaction is final, and it cannot be decided whether it belongs to a withdrawal.
    Undecided,
    /// The transaction is final, and belongs to no stored withdrawal: with this nonce, the withdrawal can never be
    /// paid.
    Foreign,
}

/// What a final transaction did, as far as this withdrawal is concerned.
enum ForeignUse {
    OfAnother(NonceUse),
    OfNone,
    Undecided,
}

/// Finds out whether the transaction that used the nonce of a withdrawal pays this or another one,
/// and adopts it.
///
/// After [`UsedNonce::Foreign`] the withdrawal is signed with another nonce. So enough nodes have to show the foreign
/// transaction. What that transaction did does not matter if a retry was requested.
pub(crate) async fn explain_used_nonce(
    context: &EvmContext,
    nodes: &[NodeClient],
    scope: &AccountScopeId,
    payment: &Payment,
    assigned: &AssignedNonce,
    hash: B256,
) -> BatchResult<UsedNonce> {
    let Some(details) = find_at_any(nodes, |node| node.transaction_details(hash)).await? else {
        return Ok(UsedNonce::NotFinal);
    };
    if let Some(transaction) = details.signed.clone().filter(|_| is_own(&details, payment)) {
        let own = NonceUse::Withdrawal { id: payment.withdrawal_id, transaction };
        return adopt(context, scope, assigned, own, UsedNonce::Own).await;
    }
    let used = (assigned.nonce, hash);
    let is_final_at =
        |agreeing| is_foreign_use_final(nodes, context, scope.address(), used, agreeing);
    if !is_final_at(1).await? {
        return Ok(UsedNonce::NotFinal);
    }
    let foreign_use = foreign_use(context, nodes, scope, &details).await?;
    let is_retry = assigned.generation < payment.generation;
    match foreign_use {
        Some(ForeignUse::OfAnother(other)) => {
            adopt(context, scope, assigned, other, UsedNonce::Moved).await
        }
        Some(ForeignUse::Undecided) if !is_retry => Ok(UsedNonce::Undecided),
        None if !is_retry => Ok(UsedNonce::NotFinal),
        _ if is_final_at(context.agreeing_nodes).await? => Ok(UsedNonce::Foreign),
        _ => Ok(UsedNonce::NotFinal),
    }
}

/// Whether it is a replacement of the withdrawal's transaction, or the filler that cancels it.
fn is_own(details: &TransactionDetails, payment: &Payment) -> bool {
    let makes_call = PoolCall::for_payment(payment).is_ok_and(|call| makes_call(details, &call));
    makes_call || (payment.cancel_requested && details.is_filler())
}

/// What a final transaction did. `None`: no node shows its receipt.
async fn foreign_use(
    context: &EvmContext,
    nodes: &[NodeClient],
    scope: &AccountScopeId,
    details: &TransactionDetails,
) -> BatchResult<Option<ForeignUse>> {
    let (store, service_id) = (&context.store, scope.service_id());
    let pools = store.pools(service_id).await?;
    let pools: Vec<Address> = pools.iter().filter_map(|pool| parse_address(pool).ok()).collect();
    let found = find_at_any(nodes, |node| FoundUse::read(node, details, &pools)).await?;
    let Some(found) = found else { return Ok(None) };
    // The withdrawal was scheduled before its nonce was used.
    let next_scheduled_at = Some(Timestamp::default());
    let mut candidates = Candidates { next_scheduled_at, ..Candidates::default() };
    if let UseKind::Call { terms, .. } = &found.kind {
        let withdrawals = store.unpaid_withdrawals(service_id, terms).await?;
        candidates.by_terms.insert(terms.clone(), withdrawals);
    }
    let uses = match_uses(std::slice::from_ref(&found), &candidates);
    Ok(uses.into_iter().next().map(|(_, nonce_use)| match nonce_use {
        other @ NonceUse::Withdrawal { .. } => ForeignUse::OfAnother(other),
        NonceUse::Elsewhere { .. } => ForeignUse::OfNone,
        NonceUse::Undecided { .. } => ForeignUse::Undecided,
    }))
}

async fn adopt(
    context: &EvmContext,
    scope: &AccountScopeId,
    assigned: &AssignedNonce,
    nonce_use: NonceUse,
    adopted: UsedNonce,
) -> BatchResult<UsedNonce> {
    let (nonce, service_id) = (assigned.nonce, scope.service_id());
    if let NonceUse::Withdrawal { id, transaction } = &nonce_use {
        info!(
            service:% = service_id, withdrawal:% = id, nonce,
            hash:% = B256::from(transaction.hash);
            "adopted a transaction that is on the chain and was not stored"
        );
    }
    let stored = context.store.settle_nonce(service_id, nonce, assigned.assigned_at, nonce_use);
    match stored.await? {
        true => Ok(adopted),
        false => Err(BatchError::Unavailable(format!("nonce {nonce} was changed meanwhile"))),
    }
}
