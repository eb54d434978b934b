use alloy_primitives::B256;
use grid_batch_core::{BatchResult, Timestamp};
use grid_batch_withdrawals::{AssignedNonce, NonceUse, Payment};

use super::{found_use::FoundUse, matching::match_uses};
use crate::{account::Account, action::Action, node::TransactionDetails};

/// How a transaction that is not stored relates to the withdrawal whose nonce it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsedNonce {
    /// The transaction belongs to the withdrawal and was adopted.
    Own,
    /// The transaction was adopted by another withdrawal, which now has the nonce. This withdrawal has none.
    Moved,
    /// The transaction is not known to be final at enough nodes.
    NotFinal,
    /// The transaction is final, but it cannot be decided whether it belongs to a withdrawal.
    Undecided,
    /// The transaction is final and belongs to no stored withdrawal, so the withdrawal can never be paid with this
    /// nonce.
    Foreign,
}

impl<'a> Account<'a> {
    /// Finds out whether the transaction that used the nonce of a withdrawal pays this or another withdrawal, and
    /// adopts it.
    ///
    /// After [`UsedNonce::Foreign`] the withdrawal is signed with another nonce, so enough nodes must show the foreign
    /// transaction. If a retry was requested, it does not matter what that transaction did.
    pub(crate) async fn explain_used_nonce(
        &self,
        payment: &Payment,
        assigned: &AssignedNonce,
        hash: B256,
    ) -> BatchResult<UsedNonce> {
        let details = self.find(|node| node.transaction(hash)).await?;
        let Some(details) = details else { return Ok(UsedNonce::NotFinal) };
        if let Some(transaction) = details.signed.clone().filter(|_| is_own(&details, payment)) {
            let own = NonceUse::Withdrawal { id: payment.withdrawal_id, transaction };
            return self.adopt(assigned, own, UsedNonce::Own).await;
        }
        let is_foreign = |agreeing| self.is_foreign_use_final(assigned.nonce, hash, agreeing);
        if !is_foreign(1).await? {
            return Ok(UsedNonce::NotFinal);
        }
        let is_retry = assigned.generation < payment.generation;
        match self.foreign_use(&details).await? {
            Some(other @ NonceUse::Withdrawal { .. }) => {
                self.adopt(assigned, other, UsedNonce::Moved).await
            }
            Some(NonceUse::Undecided { .. }) if !is_retry => Ok(UsedNonce::Undecided),
            None if !is_retry => Ok(UsedNonce::NotFinal),
            _ if is_foreign(self.context.options.agreeing_nodes).await? => Ok(UsedNonce::Foreign),
            _ => Ok(UsedNonce::NotFinal),
        }
    }

    /// What a final transaction did. `None`: no node shows its receipt.
    async fn foreign_use(&self, details: &TransactionDetails) -> BatchResult<Option<NonceUse>> {
        let pools = &self.pools().await?;
        let found = self.find(|node| FoundUse::read(node, details, pools)).await?;
        let mut found: Vec<FoundUse> = found.into_iter().collect();
        // The withdrawal was scheduled before its nonce was used.
        let candidates = self.candidates(&mut found, Some(Timestamp::default())).await?;
        Ok(match_uses(&found, &candidates).pop().map(|(_, nonce_use)| nonce_use))
    }

    async fn adopt(
        &self,
        assigned: &AssignedNonce,
        nonce_use: NonceUse,
        adopted: UsedNonce,
    ) -> BatchResult<UsedNonce> {
        self.log_use(assigned.nonce, &nonce_use);
        self.store_use(assigned.nonce, assigned.assigned_at, nonce_use).await?;
        Ok(adopted)
    }
}

/// Whether it is a replacement of the withdrawal's transaction, or the filler that cancels it.
fn is_own(details: &TransactionDetails, payment: &Payment) -> bool {
    let is_same = Action::for_payment(payment).is_ok_and(|action| details.action == action);
    is_same || (payment.cancel_requested && details.is_filler())
}
