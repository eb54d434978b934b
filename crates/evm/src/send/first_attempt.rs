use grid_batch_core::ledger::SubmissionAnswer;
use grid_batch_withdrawals::NewSignedTransaction;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
    gas_limit::TRANSFER_GAS,
    transaction::{TransactionDraft, sign},
};
use crate::{
    account::AccountError,
    action::Action,
    price::Bid,
    settle::Settled,
    sync::{PoolRefusal, RefusalOutcome, simulate},
};

/// With how many nonces an attempt signs before it gives up finding one that is still free.
const MAX_SIGNATURES: usize = 4;

impl SendAttempt<'_> {
    /// Assigns a nonce, signs and sends. Nothing is stored unless every gate is open.
    ///
    /// `count` is the number of the account's transactions in blocks, all of which are settled, so it is the lowest
    /// nonce that may be free.
    pub(super) async fn send_with_new_nonce(&self, count: u64) -> SendResult<SubmissionAnswer> {
        self.signer()?;
        self.check_gap_before_next(count).await?;
        self.check_open_payments(count, None).await?;
        let action = self.action()?;
        self.check_request(count).await?;
        let bid = self.pass_price_gate().await?;
        let needed = |gas_limit| bid.cost(gas_limit).saturating_add(action.value);
        if !action.value.is_zero() {
            // Nodes do not simulate a transfer that the account cannot pay.
            self.pass_funds_gate(TRANSFER_GAS, needed(TRANSFER_GAS)).await?;
        }
        let gas_limit = self.simulate(&action).await?;
        self.pass_funds_gate(gas_limit, needed(gas_limit)).await?;
        self.check_unknown_pending(count).await?;
        let signed = self.assign_nonce(count, bid, gas_limit, action).await?;
        self.send_lower_nonces(count, signed.nonce).await?;
        Ok(self.broadcast(&signed).await)
    }

    /// Simulates the action and returns the gas limit. If it would fail, no nonce is used.
    async fn simulate(&self, action: &Action) -> SendResult<u64> {
        let simulated = simulate(&self.node, self.admin, &self.payment, action).await;
        match simulated.map_err(answer::node_failed)? {
            Ok(estimate) => {
                self.context.pool_refusals.forget(self.admin, &self.payment);
                match self.payment.own_gas_limit() {
                    Some(limit) => self.check_own_gas_limit(limit).await,
                    None => self.gas_limit(estimate).await,
                }
            }
            Err(refusal) => Err(self.refused_by_node(action, &refusal).await?),
        }
    }

    /// The answer if the node reports that the withdrawal or call would fail.
    async fn refused_by_node(
        &self,
        action: &Action,
        refusal: &PoolRefusal,
    ) -> SendResult<SubmissionAnswer> {
        let outcome = self.account().resolve_refusal(&self.payment, action, refusal).await;
        Ok(match outcome.map_err(answer::store_failed)? {
            RefusalOutcome::Final(refusal) => answer::rejected(refusal),
            RefusalOutcome::OtherNode(reason) => answer::not_sent(reason),
            // Later transactions of the account may need what a call does.
            RefusalOutcome::Wait(reason) if self.payment.call.is_some() => self.parked(reason),
            RefusalOutcome::Wait(reason) => self.pool_parked(reason),
        })
    }

    /// Settles the nonces that the chain has used, and returns the number of the account's transactions
    /// in blocks.
    ///
    /// A count above the nonces that were signed here must be final. Otherwise, a transaction that the chain drops
    /// would leave a gap, and a single wrong response of a node would block the account.
    pub(super) async fn settle_nonces(&self) -> SendResult<u64> {
        match self.account().settle_nonces().await {
            Ok(Settled::All { count }) => Ok(count),
            Ok(Settled::NotYet(reason)) => Err(self.parked(reason)),
            Ok(Settled::Undecided { note }) => Err(answer::ambiguous(note)),
            Err(AccountError::Node(error)) => Err(answer::node_failed(error)),
            Err(AccountError::Store(error)) => Err(answer::store_failed(error)),
        }
    }

    /// Signs with the next nonce, and stores both in one commit.
    ///
    /// A signer may be on another machine, so the transaction is signed before the database transaction begins. If
    /// another attempt takes the nonce meanwhile, the signature is dropped and the next nonce is tried.
    async fn assign_nonce(
        &self,
        at_least: u64,
        bid: Bid,
        gas_limit: u64,
        action: Action,
    ) -> SendResult<NewSignedTransaction> {
        let (signer, store) = (self.signer()?, &self.context.store);
        let next = store.next_nonce(self.service_id()).await.map_err(answer::store_failed)?;
        let mut nonce = next.map_or(at_least, |next| next.max(at_least));
        let mut draft =
            TransactionDraft { chain_id: self.context.options.chain_id, nonce, gas_limit, action };
        for _ in 0..MAX_SIGNATURES {
            draft.nonce = nonce;
            let signed = sign(signer, &draft, &bid).await;
            let signed = signed.map_err(|error| self.not_signed(error))?;
            match store.assign_nonce(&self.batch, at_least, signed).await {
                Ok(Err(next)) => nonce = next,
                Ok(Ok(stored)) => return self.stored(Ok(stored)),
                Err(error) => return self.stored(Err(error)),
            }
        }
        Err(self.parked("others took the nonces that it was signed with"))
    }
}
