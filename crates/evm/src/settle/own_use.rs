use grid_batch_withdrawals::{Call, ClosedNonce, NonceOutcome};
use log::{error, info};

use super::settlement::MAX_AT_ONCE;
use crate::{
    account::{Account, AccountError},
    node::{BlockTag, NodeClient, NodeError, TransactionReceipt},
    nonce::{Finality, MinedTransaction, final_result},
    pool::read_call,
};

/// The receipt of the first of these transactions that the node shows in a block.
pub(super) async fn find_mined(
    node: &NodeClient,
    hashes: &[[u8; 32]],
) -> Result<Option<TransactionReceipt>, NodeError> {
    for hash in hashes {
        if let Some(receipt) = node.receipt(hash.into()).await? {
            return Ok(Some(receipt));
        }
    }
    Ok(None)
}

impl<'a> Account<'a> {
    /// Closes the nonces of ended withdrawals whose own transactions are final. This is also done while no withdrawal
    /// is next; otherwise they are settled before the next one gets its nonce.
    pub(crate) async fn close_own_uses(&self, node: &'a NodeClient) -> Result<(), AccountError> {
        let unsettled = self.context.store.unsettled_nonces(self.service_id()).await?;
        let stored = unsettled.stored.into_iter().filter(|it| it.undecided.is_none());
        let mut stored = stored.peekable();
        if stored.peek().is_none() {
            return Ok(());
        }
        let count = node.transaction_count(self.address(), BlockTag::Latest).await?;
        let mut receipts = Vec::new();
        for stored in stored.filter(|it| it.nonce < count).take(MAX_AT_ONCE) {
            receipts.extend(find_mined(node, &stored.hashes).await?);
        }
        self.close_final(node, receipts).await
    }

    /// Closes nonces whose own transactions are final. Because their withdrawals have ended, or they have none, no
    /// status reader closes them, and nothing is signed ahead while they are open.
    pub(super) async fn close_final(
        &self,
        node: &'a NodeClient,
        receipts: Vec<TransactionReceipt>,
    ) -> Result<(), AccountError> {
        let mut blocks = self.finality_at(node);
        let mut closed = Vec::new();
        for receipt in receipts.into_iter().take(MAX_AT_ONCE) {
            if blocks.of(receipt.block).await? == Finality::Final {
                closed.extend(self.read_result(node, receipt).await?);
            }
        }
        if closed.is_empty() {
            return Ok(());
        }
        let paid = self.context.store.close_nonces(self.service_id(), &closed).await?;
        self.context.gas.note_paid_after_failure(paid);
        for ClosedNonce { nonce, note, outcome, .. } in &closed {
            match outcome {
                Some(
                    NonceOutcome::Withdrawn { .. }
                    | NonceOutcome::Executed { .. }
                    | NonceOutcome::WithoutEvent,
                ) => error!(
                    service:% = self.scope, nonce, note = note.as_str();
                    "a transaction of a withdrawal that an operator decided about succeeded on the chain"
                ),
                _ => info!(
                    service:% = self.scope, nonce, end = note.as_str();
                    "a nonce of no open withdrawal is closed"
                ),
            }
        }
        Ok(())
    }

    /// How the use of the nonce ended. `None`: the node does not show the whole transaction.
    async fn read_result(
        &self,
        node: &NodeClient,
        receipt: TransactionReceipt,
    ) -> Result<Option<ClosedNonce>, NodeError> {
        let Some(details) = node.transaction(receipt.hash).await? else { return Ok(None) };
        let Some(signed) = &details.signed else { return Ok(None) };
        let mined = MinedTransaction { signed, receipt };
        let action = &details.action;
        // Its row is not read: a call is one that a pool would not understand.
        let call = read_call(&action.data).is_none().then(Call::default);
        Ok(Some(final_result(&mined, node, self.address(), action, call.as_ref()).await?))
    }
}
