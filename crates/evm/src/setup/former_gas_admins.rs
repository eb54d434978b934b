use grid_batch_withdrawals::{OpenWithdrawals, WithdrawalRules};
use log::warn;

/// Logs warnings about open withdrawals that wait for a former gas admin of their pool.
pub fn warn_of_former_gas_admins(found: &[OpenWithdrawals], rules: &dyn WithdrawalRules) {
    for OpenWithdrawals { service_id, pool, open } in found {
        match rules.pool(pool) {
            Ok((_, present)) if present == *service_id => {}
            Ok((_, present)) => warn!(
                pool = pool.as_str(), gas_admin:% = service_id, present:%, open;
                "the pool has another gas admin than these open withdrawals; \
                 `grid-batch move-withdrawals --reason TEXT` shows and moves them"
            ),
            Err(_) => warn!(
                pool = pool.as_str(), gas_admin:% = service_id, open;
                "the pool of these open withdrawals is not configured; add it to pools.*.gas_admin, with its \
                 former gas admin, or with another one and `grid-batch move-withdrawals --reason TEXT`"
            ),
        }
    }
}
