//! The withdrawals that the client requests.

use serde_json::{Value, json};

use super::chain::DemoChain;

/// All requests, in order. Each has a unique amount, by which it is found in the chain's record.
pub(super) struct WithdrawalPlan {
    requests: Vec<WithdrawalRequest>,
    reward_pool: String,
}

/// A request for one withdrawal.
pub(super) struct WithdrawalRequest {
    pub(super) pool: String,
    pub(super) beneficiary: String,
    pub(super) amount: usize,
}

impl WithdrawalPlan {
    /// The amount of the reward.
    const REWARD: usize = 7;
    /// The number of members who claim the reward.
    const MEMBERS: usize = 2;

    pub(super) fn new(withdrawals: usize, chain: &DemoChain) -> Self {
        let pools: Vec<String> = chain.pools().map(|(pool, _)| pool.to_owned()).collect();
        let request = |number: usize| {
            let pool = pools[number % pools.len()].clone();
            let beneficiary = DemoChain::beneficiary(number);
            WithdrawalRequest { pool, beneficiary, amount: 1_000 + number }
        };
        let requests = (0..withdrawals.max(1)).map(request).collect();
        Self { requests, reward_pool: pools[0].clone() }
    }

    pub(super) fn requests(&self) -> &[WithdrawalRequest] {
        &self.requests
    }

    /// The number of withdrawals, including those of the reward.
    pub(super) fn len(&self) -> usize {
        self.requests.len() + Self::MEMBERS
    }

    /// The request body of the reward.
    pub(super) fn reward(&self) -> Value {
        json!({"pool": self.reward_pool, "amount": Self::REWARD.to_string(), "once_per_member": true})
    }

    /// The members who claim the reward.
    pub(super) fn members(&self) -> impl Iterator<Item = String> {
        (0..Self::MEMBERS).map(|member| DemoChain::beneficiary(1_000_000 + member))
    }
}

impl WithdrawalRequest {
    pub(super) fn body(&self) -> Value {
        json!({
            "pool": self.pool,
            "beneficiary": self.beneficiary,
            "amount": self.amount.to_string(),
            "idempotency_key": format!("demo-{}", self.amount),
        })
    }
}
