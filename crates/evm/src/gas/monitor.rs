use std::time::Duration;

use futures_core::future::BoxFuture;
use grid_batch_withdrawals::{GasAdminAmounts, GasHealth, GasMonitor};

use super::{account_gas::AccountGas, watch::GasWatch};

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
}

/// A look takes some time, and one may fail.
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
