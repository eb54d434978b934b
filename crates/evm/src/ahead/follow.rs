use std::collections::HashMap;

use alloy_primitives::B256;
use grid_batch_core::BatchError;
use grid_batch_withdrawals::{ClosedNonce, FollowingPayment, FollowingPayments, SignedTransaction};

use super::look::{Look, LookError};
use crate::{
    node::Receipt,
    nonce::{Confirmations, FinalResult, MinedTransaction, find_dispute},
    pool::PoolCall,
};

/// The outcomes of those following withdrawals whose transactions are final, in order up to the first
/// that is not.
///
/// `mined` is the account's transaction count, which was read before the receipts: a receipt of a nonce
/// that it does not cover is outdated.
pub(super) async fn final_nonces(
    look: &Look<'_>,
    following: &FollowingPayments,
    mined: u64,
) -> Result<Vec<ClosedNonce>, LookError> {
    let covered: Vec<Candidate<'_>> = following.in_flight().filter_map(Candidate::new).collect();
    let covered: Vec<Candidate<'_>> = covered.into_iter().filter(|it| it.nonce < mined).collect();
    let hashes: Vec<B256> = covered.iter().flat_map(Candidate::hashes).collect();
    if hashes.is_empty() {
        return Ok(Vec::new());
    }
    let receipts = look.node.receipts(&hashes).await?;
    let mut receipts: HashMap<B256, Receipt> =
        hashes.into_iter().zip(receipts).filter_map(|(hash, it)| Some((hash, it?))).collect();
    let mut confirmations = Confirmations::new(look.node, look.context.confirmations);
    let (mut closed, mut agreed) = (Vec::new(), None);
    for candidate in &covered {
        let Some(mined) = candidate.mined(&mut receipts) else { break };
        let block = mined.receipt.block;
        if !confirmations.is_final(block).await? {
            break;
        }
        if agreed != Some(block) {
            if find_dispute(look.context, look.nodes, look.node, block).await.is_some() {
                break;
            }
            agreed = Some(block);
        }
        let call = PoolCall::for_payment(&candidate.following.payment)
            .map_err(BatchError::InternalError)?;
        let result = FinalResult::read(&mined, look.node, look.scope.address(), &call).await?;
        closed.push(result.into_closed(candidate.nonce));
    }
    Ok(closed)
}

/// A following withdrawal whose nonce is open.
struct Candidate<'a> {
    following: &'a FollowingPayment,
    nonce: u64,
    transactions: &'a [SignedTransaction],
}

impl<'a> Candidate<'a> {
    fn new(following: &'a FollowingPayment) -> Option<Self> {
        let assigned = following.payment.nonce.as_ref()?;
        Some(Self { following, nonce: assigned.nonce, transactions: &assigned.transactions })
    }

    fn hashes(&self) -> impl Iterator<Item = B256> {
        self.transactions.iter().map(|transaction| transaction.signed.hash.into())
    }

    /// Its transaction that is in a block, with the receipt.
    fn mined(&self, receipts: &mut HashMap<B256, Receipt>) -> Option<MinedTransaction<'a>> {
        self.transactions.iter().find_map(|transaction| {
            let receipt = receipts.remove(&B256::from(transaction.signed.hash))?;
            Some(MinedTransaction { transaction, receipt })
        })
    }
}
