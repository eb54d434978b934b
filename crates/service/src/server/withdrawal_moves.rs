use std::{collections::BTreeMap, fmt, sync::Arc};

use grid_batch_core::{Clock, InternalError, ServiceId, SystemClock, Timestamp};
use grid_batch_evm::{EvmAccountCheck, PoolRules};
use grid_batch_store::Store;
use grid_batch_withdrawals::{MoveObstacle, MoveStep, OpenWithdrawals, WithdrawalRules};
use tokio::runtime::Runtime;

use super::{LedgerInspection, StartError, ledger};
use crate::Config;

/// How many withdrawals one transaction of the database examines.
const STEP: usize = 100;

/// Open withdrawals that wait for another gas admin than their pool has in the settings, and how they
/// are moved.
pub struct WithdrawalMoves {
    store: Store,
    rules: PoolRules,
    check: EvmAccountCheck,
    runtime: Runtime,
}

/// A pool with open withdrawals at a gas admin that is not its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolMove {
    /// The pool.
    pub pool: String,
    /// The gas admin that they have.
    pub from: ServiceId,
    /// The gas admin of the pool. `None`: the pool is not configured.
    pub to: Option<ServiceId>,
    /// How many are open.
    pub open: u64,
}

impl WithdrawalMoves {
    /// Reads the pools and their gas admins from the settings.
    pub fn new(config: &Config, store: &Store) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (rules, check) =
            ledger::EvmChain::new(&config.with_nodes(&clock))?.with_account_check(store)?;
        let failed = |error| InternalError::from_source("cannot start a runtime", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { store: store.clone(), rules, check, runtime: runtime.map_err(failed)? })
    }

    /// The pools with open withdrawals at other gas admins, by gas admin.
    pub fn pools(&self) -> Result<BTreeMap<ServiceId, Vec<PoolMove>>, StartError> {
        let mut by_gas_admin: BTreeMap<ServiceId, Vec<PoolMove>> = BTreeMap::new();
        for OpenWithdrawals { service_id: from, pool, open } in
            self.store.open_withdrawals().map_err(StartError::part)?
        {
            let to = self.gas_admin_of(&pool);
            if to.as_ref() != Some(&from) {
                let moves = by_gas_admin.entry(from.clone()).or_default();
                moves.push(PoolMove { pool, from, to, open });
            }
        }
        Ok(by_gas_admin)
    }

    fn gas_admin_of(&self, pool: &str) -> Option<ServiceId> {
        self.rules.pool(pool).ok().map(|(_, service_id)| service_id)
    }

    /// Which withdrawals of a gas admin can be moved, and why others cannot.
    pub fn examine(&self, from: &ServiceId) -> Result<MoveStep, StartError> {
        self.all_steps(|after| {
            self.store.withdrawals_to_move(from, &|pool| self.gas_admin_of(pool), after, STEP)
        })
    }

    /// Moves the withdrawals of a gas admin that can be moved.
    pub fn run(&self, from: &ServiceId) -> Result<MoveStep, StartError> {
        self.all_steps(|after| {
            self.store.move_withdrawals(from, &|pool| self.gas_admin_of(pool), after, STEP)
        })
    }

    fn all_steps<E>(
        &self,
        step: impl Fn(Option<Timestamp>) -> Result<MoveStep, E>,
    ) -> Result<MoveStep, StartError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut all = MoveStep::default();
        loop {
            let MoveStep { moved, kept, next } = step(all.next).map_err(StartError::part)?;
            all.moved.extend(moved);
            all.kept.extend(kept);
            all.next = next;
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Why withdrawals must not be moved from this gas admin now: it is not certain that everything that it
    /// has sent is stored. `examined` is what [`examine`](Self::examine) has found.
    pub fn uncertainty(
        &self,
        config: &Config,
        from: &ServiceId,
        examined: &MoveStep,
    ) -> Result<Option<String>, StartError> {
        let Some(first) = examined.moved.first() else { return Ok(None) };
        let inspection = LedgerInspection::new(config, &self.store)?;
        let recorded = inspection.recorded.as_ref().map(|recorded| &recorded.identity);
        let actual = inspection.actual();
        if actual.is_none() || (recorded.is_some() && actual != recorded) {
            let reason = "every node of ledger.urls must answer, and belong to the ledger of the \
                          database; see `grid-batch ledger show`";
            return Ok(Some(reason.to_owned()));
        }
        let signed = examined.kept.iter().filter(|(_, why)| *why == MoveObstacle::Signed);
        let signed: Vec<_> = signed.map(|(withdrawal, _)| withdrawal.batch_id).collect();
        let uncertainty = self.check.uncertainty(from, first.batch_id, &signed);
        self.runtime.block_on(uncertainty).map_err(StartError::part)
    }
}

impl fmt::Debug for WithdrawalMoves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithdrawalMoves").field("rules", &self.rules).finish_non_exhaustive()
    }
}
