use alloy_primitives::Address;

use crate::{
    GasPrice,
    bid::Bid,
    gate::{funds_gate, gate},
    price::Quote,
    sender::{
        answer::{self, Step},
        task::Task,
    },
};

/// What must be open before a nonce is taken.
impl Task<'_> {
    /// What to bid, where gas costs less than the pool's cap.
    pub(crate) async fn pass_price_gate(&self, pool: Address) -> Step<Bid> {
        let quote = self.quote().await?;
        gate(&quote, self.cap(pool)).map_err(|closed| self.parked(closed))
    }

    /// Whether the gas admin can pay for so much gas.
    pub(crate) async fn pass_funds_gate(&self, gas_limit: u64, bid: &Bid) -> Step<()> {
        let balance = self.node.balance(self.admin).await.map_err(answer::without_node)?;
        funds_gate(self.admin, balance, gas_limit, bid).map_err(|closed| self.parked(closed))
    }

    /// What gas costs now.
    pub(crate) async fn quote(&self) -> Step<Quote> {
        self.shared.prices.quote(&self.node).await.map_err(|error| self.parked(error))
    }

    /// From which price on the pool pays nothing.
    pub(crate) fn cap(&self, pool: Address) -> GasPrice {
        self.shared.pool_caps.get(&pool).copied().unwrap_or(self.shared.cap)
    }
}
