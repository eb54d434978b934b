//! Which withdrawals the demonstration asks for.

use serde_json::{Value, json};

use crate::demo::withdrawals::chain::Chain;

/// Everything that is asked for, in order. Each has an amount that no other has: by it the chain's
/// record is compared.
pub(super) struct Plan {
    orders: Vec<Order>,
    reward_pool: String,
}

/// One withdrawal, as a client asks for it.
pub(super) struct Order {
    pub(super) pool: String,
    pub(super) beneficiary: String,
    pub(super) amount: usize,
}

impl Plan {
    /// So many members claim the reward, each in vain for a second time.
    const MEMBERS: usize = 2;

    pub(super) fn new(withdrawals: usize, chain: &Chain) -> Self {
        let pools: Vec<String> = chain.pools().map(|(pool, _)| pool.to_owned()).collect();
        let order = |number: usize| {
            let pool = pools[number % pools.len()].clone();
            let beneficiary = Chain::beneficiary(number);
            Order { pool, beneficiary, amount: 1_000 + number }
        };
        Self { orders: (0..withdrawals.max(1)).map(order).collect(), reward_pool: pools[0].clone() }
    }

    pub(super) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// How many withdrawals there are, those of rewards too.
    pub(super) fn len(&self) -> usize {
        self.orders.len() + Self::MEMBERS
    }

    /// The reward that is to be claimed.
    pub(super) fn reward(&self) -> Value {
        json!({"pool": self.reward_pool, "amount": Self::REWARD.to_string(), "once_per_member": true})
    }

    /// Who claims it.
    pub(super) fn members(&self) -> impl Iterator<Item = String> {
        (0..Self::MEMBERS).map(|member| Chain::beneficiary(1_000_000 + member))
    }

    pub(super) const REWARD: usize = 7;
}

impl Order {
    pub(super) fn body(&self) -> Value {
        json!({
            "pool": self.pool,
            "beneficiary": self.beneficiary,
            "amount": self.amount.to_string(),
            "idempotency_key": format!("demo-{}", self.amount),
        })
    }
}
