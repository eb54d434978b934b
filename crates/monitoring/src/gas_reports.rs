use std::collections::HashMap;

use grid_batch_api::{GasAdminReport, GasPause, GasReport, PoolReport, Reading};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{
    GasAdminQueue, GasAdminState, GasMonitor, GasPoolState, LastFailure, LastRead, PaymentLimits,
    PoolSum,
};

/// The last known state of the gas admins. These functions read their queues and the sums of their pools from the
/// store. No node is asked.
pub fn gas_reports(
    monitor: &dyn GasMonitor,
    limits: &PaymentLimits,
    queues: impl FnOnce(&[ServiceId]) -> BatchResult<Vec<GasAdminQueue>>,
    sums: impl FnOnce(&[&str]) -> BatchResult<Vec<PoolSum>>,
) -> BatchResult<Vec<GasAdminReport>> {
    let admins = monitor.gas_admins();
    let services: Vec<ServiceId> = admins.iter().map(|admin| admin.service_id.clone()).collect();
    let queues = queues(&services)?;
    let pools = admins.iter().flat_map(|admin| &admin.pools);
    let pools: Vec<&str> = pools.map(|pool| pool.address.as_str()).collect();
    let sums = sums(&pools)?.into_iter().map(|sum| (sum.pool, sum.amount.to_string())).collect();
    let source = Source { monitor, limits, sums };
    let report = |admin: &GasAdminState| {
        let queue = queues.iter().find(|queue| queue.service_id == admin.service_id)?;
        Some(source.report(admin, queue))
    };
    Ok(admins.iter().filter_map(report).collect())
}

struct Source<'a> {
    monitor: &'a dyn GasMonitor,
    limits: &'a PaymentLimits,
    /// The sum that was scheduled from each pool in the last 24 hours.
    sums: HashMap<String, String>,
}

impl Source<'_> {
    fn report(&self, admin: &GasAdminState, queue: &GasAdminQueue) -> GasAdminReport {
        let last_failure = queue.last_failures.iter().max_by_key(|failure| failure.failed_at);
        let pools = admin.pools.iter().map(|pool| self.pool_report(pool, admin, queue));
        GasAdminReport {
            name: admin.name.clone(),
            address: admin.address.clone(),
            gas_admin: queue.service_id.to_string(),
            gas: self.gas_report(admin, queue.waiting.saturating_add(queue.parked)),
            queue: queue.into(),
            last_failure: last_failure.map(Into::into),
            pools: pools.collect(),
        }
    }

    fn gas_report(&self, admin: &GasAdminState, not_sent: u64) -> GasReport {
        GasReport {
            balance: reading(&admin.balance),
            gas_price_gwei: reading(&admin.gas_price),
            maximum_gas_price_gwei: admin.gas_price_cap.clone(),
            gas_per_withdrawal: admin.gas_per_withdrawal,
            gas_is_assumed: admin.gas_is_assumed,
            withdrawals_left: admin.withdrawals_left,
            low_balance: admin.is_low,
            estimated_cost: self.monitor.cost_of(&admin.service_id, not_sent),
        }
    }

    fn pool_report(
        &self,
        pool: &GasPoolState,
        admin: &GasAdminState,
        queue: &GasAdminQueue,
    ) -> PoolReport {
        let address = &pool.address;
        let is_own = |failure: &&LastFailure| failure.pool == *address;
        PoolReport {
            address: address.clone(),
            maximum_gas_price_gwei: pool.gas_price_cap.clone(),
            paused: paused(pool, admin),
            balance: reading(&pool.balance),
            scheduled_in_24h: self.sums.get(address).cloned().unwrap_or_else(|| "0".to_owned()),
            maximum_payment: self.limits.payment.get(address).map(ToString::to_string),
            maximum_payments_per_day: self.limits.day.get(address).map(ToString::to_string),
            last_failure: queue.last_failures.iter().find(is_own).map(Into::into),
        }
    }
}

fn paused(pool: &GasPoolState, admin: &GasAdminState) -> Option<GasPause> {
    if let (Some(price), Some(above_cap_for)) = (&admin.gas_price.value, pool.above_cap_for) {
        let cap = &pool.gas_price_cap;
        let reason = format!("the gas price is {price} gwei, not below the cap of {cap} gwei");
        let for_seconds = Some(above_cap_for.as_secs_f64().round());
        return Some(GasPause { reason, for_seconds });
    }
    let reason = format!("{} had too few coins for the gas of its last transaction", admin.name);
    (!admin.can_pay).then_some(GasPause { reason, for_seconds: None })
}

fn reading(last: &LastRead) -> Reading {
    let not_read = || "it has not been read since the start".to_owned();
    Reading {
        value: last.value.clone(),
        age_seconds: last.age.map(|age| age.as_secs_f64().round()),
        error: last.error.clone().or_else(|| last.value.is_none().then(not_read)),
    }
}
