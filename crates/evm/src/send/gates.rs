use alloy_primitives::U256;
use grid_batch_support::ErrorChain;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};
use crate::price::{Bid, GasQuote, Urgency, funds_gate, price_gate};

impl SendAttempt<'_> {
    /// The bid, if the gas price is below the pool's cap; otherwise the withdrawal is parked. If the price is below the
    /// cap of another pool of the gas admin, only this pool is parked.
    pub(super) async fn pass_price_gate(&self) -> SendResult<Bid> {
        let (quote, cap) = (self.quote().await?, self.cap()?);
        price_gate(&quote, cap).map_err(|closed| {
            let highest = self.context.highest_cap(self.service_id());
            if highest.is_some_and(|cap| price_gate(&quote, cap).is_ok()) {
                self.pool_parked(closed)
            } else {
                self.parked(closed)
            }
        })
    }

    /// Parks the withdrawal if the gas admin cannot pay what is needed, with this much gas.
    pub(super) async fn pass_funds_gate(&self, gas_limit: u64, needed: U256) -> SendResult<()> {
        let balance = self.node.balance(self.admin).await.map_err(answer::node_failed)?;
        let passed = funds_gate(self.admin, balance, needed);
        let (gas, now) = (&self.context.gas, self.context.monotonic());
        gas.note_balance(self.admin, balance, now);
        // What a call transfers says nothing about the gas of withdrawals.
        if self.payment.call.is_none() {
            gas.note_need(self.admin, gas_limit, passed.is_ok());
        }
        passed.map_err(|closed| self.parked(closed))
    }

    /// Rejects the withdrawal or call if it must not be signed any more. A call, which can be too late, does not fail
    /// while a node has a pending transaction that is not stored, because that may be this call.
    pub(super) async fn check_request(&self, count: u64) -> SendResult<()> {
        let Err(reason) = self.context.check_request(self.service_id(), &self.payment) else {
            return Ok(());
        };
        if self.payment.call.is_some() {
            self.check_unknown_pending(count).await?;
        }
        Err(answer::rejected(reason))
    }

    /// The current gas price.
    pub(super) async fn quote(&self) -> SendResult<GasQuote> {
        self.quote_for(Urgency::Usual).await
    }

    /// The current gas price, with a tip for a transaction that is this urgent.
    pub(super) async fn quote_for(&self, urgency: Urgency) -> SendResult<GasQuote> {
        let quote = self.context.quote(&self.node, urgency).await;
        quote.map_err(|error| self.parked(ErrorChain(&error)))
    }
}
