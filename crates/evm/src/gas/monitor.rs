use std::time::Duration;

use futures_core::future::BoxFuture;
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{
    GasAdminAmounts, GasAdminState, GasHealth, GasMonitor, GasPoolState, LastRead,
};

use super::{
    account_gas::{AccountGas, GasLimit, PoolGas, Seen},
    watch::GasWatch,
};
use crate::values::GasPrice;

impl GasMonitor for GasWatch {
    fn look(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.look())
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn health(&self) -> GasHealth {
        let accounts = self.accounts();
        let without_funds = accounts.iter().filter(|account| !account.can_pay).count();
        let low = accounts.iter().filter(|account| account.can_pay && account.is_low);
        let above: Vec<Duration> = accounts
            .iter()
            .flat_map(|account| &account.pools)
            .filter_map(|pool| pool.above_cap_for)
            .collect();
        let ages = accounts.iter().filter_map(|account| account.balance.age);
        GasHealth {
            without_funds: number(without_funds),
            low_balances: low.map(|account| account.name.clone()).collect(),
            paid_after_failure: self.paid_after_failure(),
            pools_above_cap: number(above.len()),
            above_cap_for: above.into_iter().max().unwrap_or_default(),
            overdue: ages.max().filter(|age| *age > overdue_after(self.interval)),
            gas_admins: accounts.iter().map(amounts).collect(),
        }
    }

    fn gas_admins(&self) -> Vec<GasAdminState> {
        let accounts = self.accounts();
        self.service_ids().zip(&accounts).map(|(id, account)| state(id, account)).collect()
    }

    fn cost_of(&self, gas_admin: &ServiceId, withdrawals: u64) -> Option<String> {
        let at = self.service_ids().position(|service_id| service_id == gas_admin)?;
        let cost = self.accounts().get(at)?.cost_of(withdrawals)?;
        Some(cost.to_string())
    }
}

fn state(service_id: &ServiceId, account: &AccountGas) -> GasAdminState {
    GasAdminState {
        service_id: service_id.clone(),
        name: account.name.clone(),
        address: account.address.to_string(),
        balance: last_read(&account.balance, ToString::to_string),
        gas_price: last_read(&account.price, |price| gwei(*price)),
        gas_price_cap: gwei(account.cap),
        gas_per_withdrawal: account.gas_limit.gas(),
        gas_is_assumed: matches!(account.gas_limit, GasLimit::Assumed(_)),
        can_pay: account.can_pay,
        withdrawals_left: account.withdrawals_left,
        is_low: account.is_low,
        pools: account.pools.iter().map(pool_state).collect(),
    }
}

fn pool_state(pool: &PoolGas) -> GasPoolState {
    GasPoolState {
        address: pool.address.to_string(),
        gas_price_cap: gwei(pool.cap),
        above_cap_for: pool.above_cap_for,
        balance: last_read(&pool.balance, ToString::to_string),
    }
}

fn last_read<T>(seen: &Seen<T>, text: impl Fn(&T) -> String) -> LastRead {
    LastRead { value: seen.value.as_ref().map(text), age: seen.age, error: seen.error.clone() }
}

/// The price without its unit.
fn gwei(price: GasPrice) -> String {
    price.to_string().trim_end_matches(" gwei").to_owned()
}

/// Longer than one interval, because a look takes some time and one of them may fail.
fn overdue_after(interval: Duration) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(30);
    (interval * 4).max(SHORTEST)
}

fn amounts(account: &AccountGas) -> GasAdminAmounts {
    GasAdminAmounts {
        name: account.name.clone(),
        balance: account.balance.value.map(sample),
        gas_price: account.price.value.map(|price| sample(price.wei())),
        gas_price_cap: sample(account.cap.wei()),
    }
}

/// A decimal number, rounded.
fn sample(number: impl ToString) -> f64 {
    number.to_string().parse().unwrap_or(f64::NAN)
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
