use alloy_primitives::Address;
use grid_batch_support::ErrorChain;

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
};
use crate::{
    price::{Bid, GasQuote, funds_gate, price_gate},
    values::GasPrice,
};

impl SendAttempt<'_> {
    /// The bid, if the gas price is below the pool's cap; otherwise the withdrawal is parked.
    pub(super) async fn pass_price_gate(&self, pool: Address) -> Step<Bid> {
        let quote = self.quote().await?;
        price_gate(&quote, self.cap(pool)).map_err(|closed| self.parked(closed))
    }

    /// Parks the withdrawal if the gas admin cannot pay for this much gas.
    pub(super) async fn pass_funds_gate(&self, gas_limit: u64, bid: &Bid) -> Step<()> {
        let balance = self.node.balance(self.admin).await.map_err(answer::node_failed)?;
        let passed = funds_gate(self.admin, balance, gas_limit, bid);
        self.context.without_funds.note(self.admin, passed.is_ok());
        passed.map_err(|closed| self.parked(closed))
    }

    /// The current gas price.
    pub(super) async fn quote(&self) -> Step<GasQuote> {
        let quote = self.context.price_source.quote(&self.node).await;
        quote.map_err(|error| self.parked(ErrorChain(&error)))
    }

    /// The cap of the gas price for this pool.
    pub(super) fn cap(&self, pool: Address) -> GasPrice {
        self.context.pool_caps.get(&pool).copied().unwrap_or(self.context.cap)
    }
}
