use std::{collections::HashMap, sync::Arc};

use grid_batch_api::{GasAdminReport, GasPause, GasReport, PoolReport, Reading};
use grid_batch_core::{BatchResult, ScopeId, ServiceId};
use grid_batch_evm::{AccountGas, AccountScopeId, GasLimit, GasPrice, GasWatch, PoolGas, Seen};
use grid_batch_store::Store;
use grid_batch_withdrawals::{GasAdminQueue, LastFailure, PaymentLimits};

/// Reports what is known of the gas admins of a chain.
#[derive(Debug)]
pub(in crate::server) struct GasReports {
    pub(super) watch: Arc<GasWatch>,
    pub(super) chain_id: u64,
    pub(super) limits: PaymentLimits,
}

impl GasReports {
    /// What was seen last, with what is stored. It asks no node.
    pub(in crate::server) fn of(&self, store: &Store) -> BatchResult<Vec<GasAdminReport>> {
        let accounts = self.watch.accounts();
        let services: Vec<ServiceId> =
            accounts.iter().map(|account| self.service_id(account)).collect();
        let queues = store.gas_admin_queues(&services)?;
        let queues: HashMap<&ServiceId, &GasAdminQueue> =
            queues.iter().map(|queue| (&queue.service_id, queue)).collect();
        let sums = self.scheduled_sums(store, &accounts)?;
        let reports = accounts.iter().zip(&services).filter_map(|(account, service_id)| {
            let queue = queues.get(service_id)?;
            Some(self.report(account, queue, &sums))
        });
        Ok(reports.collect())
    }
}

/// What was scheduled from each pool in the last 24 hours.
type Sums = HashMap<String, String>;

impl GasReports {
    fn service_id(&self, account: &AccountGas) -> ServiceId {
        AccountScopeId::new(self.chain_id, account.address).service_id().clone()
    }

    fn scheduled_sums(&self, store: &Store, accounts: &[AccountGas]) -> BatchResult<Sums> {
        let pools: Vec<String> = accounts
            .iter()
            .flat_map(|account| &account.pools)
            .map(|pool| pool.address.to_string())
            .collect();
        let pools: Vec<&str> = pools.iter().map(String::as_str).collect();
        let sums = store.pool_sums(&pools)?;
        Ok(sums.into_iter().map(|sum| (sum.pool, sum.amount.to_string())).collect())
    }

    fn report(&self, account: &AccountGas, queue: &GasAdminQueue, sums: &Sums) -> GasAdminReport {
        let last_failure = queue.last_failures.iter().max_by_key(|failure| failure.failed_at);
        let pools = account.pools.iter().map(|pool| self.pool_report(pool, account, queue, sums));
        GasAdminReport {
            name: account.name.clone(),
            address: account.address.to_string(),
            gas_admin: queue.service_id.to_string(),
            gas: gas_report(account, queue.waiting.saturating_add(queue.parked)),
            queue: queue.into(),
            last_failure: last_failure.map(Into::into),
            pools: pools.collect(),
        }
    }

    fn pool_report(
        &self,
        pool: &PoolGas,
        account: &AccountGas,
        queue: &GasAdminQueue,
        sums: &Sums,
    ) -> PoolReport {
        let address = pool.address.to_string();
        let is_own = |failure: &&LastFailure| failure.pool == address;
        PoolReport {
            maximum_gas_price_gwei: gwei(pool.cap),
            paused: paused(pool, account),
            balance: reading(&pool.balance, ToString::to_string),
            scheduled_in_24h: sums.get(&address).cloned().unwrap_or_else(|| "0".to_owned()),
            maximum_payment: self.limits.payment.get(&address).map(ToString::to_string),
            maximum_payments_per_day: self.limits.day.get(&address).map(ToString::to_string),
            last_failure: queue.last_failures.iter().find(is_own).map(Into::into),
            address,
        }
    }
}

fn gas_report(account: &AccountGas, not_sent: u64) -> GasReport {
    GasReport {
        balance: reading(&account.balance, ToString::to_string),
        gas_price_gwei: reading(&account.price, |price| gwei(*price)),
        maximum_gas_price_gwei: gwei(account.cap),
        gas_per_withdrawal: account.gas_limit.gas(),
        gas_is_assumed: matches!(account.gas_limit, GasLimit::Assumed(_)),
        withdrawals_left: account.withdrawals_left,
        low_balance: account.is_low,
        estimated_cost: account.cost_of(not_sent).map(|wei| wei.to_string()),
    }
}

fn paused(pool: &PoolGas, account: &AccountGas) -> Option<GasPause> {
    if let (Some(price), Some(above_cap_for)) = (account.price.value, pool.above_cap_for) {
        let reason = format!("the gas price is {price}, not below the cap of {}", pool.cap);
        let for_seconds = Some(above_cap_for.as_secs_f64().round());
        return Some(GasPause { reason, for_seconds });
    }
    let reason = format!("{} had too few coins for the gas of its last withdrawal", account.name);
    (!account.can_pay).then_some(GasPause { reason, for_seconds: None })
}

fn reading<T>(seen: &Seen<T>, text: impl Fn(&T) -> String) -> Reading {
    let not_read = || "it has not been read since the start".to_owned();
    Reading {
        value: seen.value.as_ref().map(text),
        age_seconds: seen.age.map(|age| age.as_secs_f64().round()),
        error: seen.error.clone().or_else(|| seen.value.is_none().then(not_read)),
    }
}

/// The price without its unit.
fn gwei(price: GasPrice) -> String {
    price.to_string().trim_end_matches(" gwei").to_owned()
}
