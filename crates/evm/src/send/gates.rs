use alloy_primitives::Address;
use grid_batch_support::ErrorChain;
use grid_batch_withdrawals::{Payment, WithdrawalRules};

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};
use crate::price::{Bid, GasQuote, Urgency, funds_gate, price_gate};

impl SendAttempt<'_> {
    /// The bid, if the gas price is below the pool's cap; otherwise the withdrawal is parked. If the price is below the
    /// cap of another pool of the gas admin, only this pool is parked.
    pub(super) async fn pass_price_gate(&self, pool: Address) -> SendResult<Bid> {
        let quote = self.quote().await?;
        price_gate(&quote, self.context.cap_of(pool)).map_err(|closed| {
            let highest = self.context.highest_cap(self.service_id());
            if highest.is_some_and(|cap| price_gate(&quote, cap).is_ok()) {
                self.pool_parked(closed)
            } else {
                self.parked(closed)
            }
        })
    }

    /// Parks the withdrawal if the gas admin cannot pay for this much gas.
    pub(super) async fn pass_funds_gate(&self, gas_limit: u64, bid: &Bid) -> SendResult<()> {
        let balance = self.node.balance(self.admin).await.map_err(answer::node_failed)?;
        let passed = funds_gate(self.admin, balance, gas_limit, bid);
        let (gas, now) = (&self.context.gas, self.context.monotonic());
        gas.note_balance(self.admin, balance, now);
        gas.note_need(self.admin, gas_limit, passed.is_ok());
        passed.map_err(|closed| self.parked(closed))
    }

    /// Rejects the withdrawal if its beneficiary may no longer be paid.
    pub(super) fn check_beneficiary(&self) -> SendResult<()> {
        let Payment { pool, beneficiary, .. } = &self.payment;
        self.context.options.rules.may_be_paid(pool, beneficiary).map_err(answer::rejected)
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
