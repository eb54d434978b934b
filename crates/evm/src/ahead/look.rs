use std::time::Duration;

use grid_batch_core::{BatchResult, ItemId};
use grid_batch_withdrawals::{AssignedNonce, ClosedNonce, FollowingPayments, Payment};
use log::debug;
use tokio::time::timeout;

use super::follow::final_nonces;
use crate::{
    account::{Account, AccountError},
    node::{AccountState, NodeClient},
    price::Urgency,
};

/// How long each part of a look may last. Transactions that were stored but not sent by then are sent by the next look.
const LIMIT: Duration = Duration::from_secs(10);

/// A look at the withdrawals that follow the one under way.
pub(crate) struct LookAhead<'a> {
    pub(crate) account: Account<'a>,
    /// The node that answered about the withdrawal that is under way.
    pub(crate) node: &'a NodeClient,
    /// The withdrawal under way.
    pub(crate) payment: &'a Payment,
    /// Its nonce.
    pub(crate) head: &'a AssignedNonce,
}

/// The data that a look has read.
pub(crate) struct Following {
    payments: FollowingPayments,
    account: AccountState,
}

impl LookAhead<'_> {
    /// Reads the withdrawals that follow. A look begins with this.
    ///
    /// Failures, here and in the other parts of a look, only cost time, because each withdrawal is examined again when
    /// its turn comes.
    pub(crate) async fn start(&self, batch_id: ItemId) -> Option<Following> {
        self.limited(self.read(batch_id)).await.flatten()
    }

    /// Which of the following withdrawals are final as well, given that the head's transaction is final.
    pub(crate) async fn final_nonces(&self, following: &Following) -> Vec<ClosedNonce> {
        let Following { payments, account } = following;
        self.limited(final_nonces(self, payments, account.mined)).await.unwrap_or_default()
    }

    /// Raises fees that are too low, sends transactions again that the node has lost, and signs and sends further ones
    /// up to the limit.
    pub(crate) async fn sign_and_send(&self, following: &Following) {
        let Following { payments, account } = following;
        if !payments.is_under_way {
            return;
        }
        let work = async {
            let is_mined = self.head.nonce < account.mined;
            if is_mined && payments.payments.is_empty() {
                return Ok(());
            }
            let Ok(quote) = self.account.context.quote(self.node, Urgency::Usual).await else {
                return self.send_missing(payments, *account).await;
            };
            if !self.raise_fees(payments, *account, &quote).await? {
                self.send_missing(payments, *account).await?;
            }
            self.sign_more(payments, *account, &quote).await
        };
        self.limited(work).await;
    }

    async fn limited<T>(&self, work: impl Future<Output = Result<T, AccountError>>) -> Option<T> {
        match timeout(LIMIT, work).await {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                debug!(service:% = self.account.scope, error:%; "a look at the following transactions has ended early");
                None
            }
            Err(_) => None,
        }
    }

    async fn read(&self, batch_id: ItemId) -> Result<Option<Following>, AccountError> {
        let Some(payments) = self.following(batch_id).await? else { return Ok(None) };
        let account = self.node.account_state(self.account.address()).await?;
        Ok(Some(Following { payments, account }))
    }

    async fn following(&self, batch_id: ItemId) -> BatchResult<Option<FollowingPayments>> {
        let must_speed_up = self.head.best().is_some_and(|best| self.payment.must_speed_up(best));
        if self.account.context.options.in_flight <= 1 && !must_speed_up {
            return Ok(None);
        }
        let count = self.account.context.following_limit();
        self.account
            .context
            .store
            .following_payments(self.account.service_id(), &batch_id, count)
            .await
    }

    /// Whether the node has every stored transaction, mined or pending, and no node shows a transaction that is not
    /// stored.
    pub(super) async fn has_all(
        &self,
        following: &FollowingPayments,
        account: AccountState,
    ) -> bool {
        // The withdrawals wait for this look, so its limit is short; their own attempts wait longer for the nodes.
        const NODE_LIMIT: Duration = Duration::from_secs(5);
        let (node, next) = (self.node, following.next_nonce);
        account.count() == next
            && self.account.highest_count_at_others(node, NODE_LIMIT).await <= next
    }
}
