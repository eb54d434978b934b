use std::{collections::BTreeMap, sync::Arc};

use grid_batch_api::{GasAdminMoves, PoolMove};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{Clock, InternalError, ServiceId, SystemClock};
use grid_batch_evm::{EvmAccountCheck, PoolRules};
use grid_batch_store::Store;
use grid_batch_withdrawals::{MoveObstacle, MoveStep, OpenWithdrawals, WithdrawalRules};
use tokio::runtime::Runtime;

use super::{StartError, ledger, ledger_inspection::inspect_ledger};
use crate::Config;

/// How many withdrawals one transaction of the database examines.
const STEP: usize = 100;

/// Open withdrawals that wait for another gas admin than their pool has in the settings, and how they
/// are moved.
pub(super) struct WithdrawalMoves {
    store: Store,
    rules: PoolRules,
    check: EvmAccountCheck,
    runtime: Runtime,
}

impl WithdrawalMoves {
    /// Reads the pools and their gas admins from the settings.
    pub(super) fn new(config: &Config, store: &Store) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (rules, check) =
            ledger::EvmChain::new(&config.with_nodes(&clock))?.with_account_check(store)?;
        let failed = |error| InternalError::from_source("cannot start a runtime", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { store: store.clone(), rules, check, runtime: runtime.map_err(failed)? })
    }

    /// Moves what can be moved, or says what could be.
    pub(super) fn run(
        &self,
        config: &Config,
        request: &OperatorRequest,
    ) -> Result<Vec<GasAdminMoves>, StartError> {
        let pools = self.pools()?;
        let moves = pools.into_iter().map(|(from, pools)| {
            let examined = self.examine(&from)?;
            let refused =
                if request.dry_run { None } else { self.uncertainty(config, &from, &examined)? };
            let moved = !request.dry_run && refused.is_none();
            let step = if moved { self.move_all(&from, request)? } else { examined };
            Ok(GasAdminMoves {
                gas_admin: from.to_string(),
                pools,
                moved,
                withdrawals: step.moved.iter().map(|it| it.id.to_string()).collect(),
                kept: kept(&step),
                refused,
            })
        });
        moves.collect()
    }

    /// The pools with open withdrawals at other gas admins, by gas admin.
    fn pools(&self) -> Result<BTreeMap<ServiceId, Vec<PoolMove>>, StartError> {
        let mut by_gas_admin: BTreeMap<ServiceId, Vec<PoolMove>> = BTreeMap::new();
        for OpenWithdrawals { service_id: from, pool, open } in
            self.store.open_withdrawals().map_err(StartError::part)?
        {
            let to = self.gas_admin_of(&pool);
            if to.as_ref() != Some(&from) {
                let to = to.map(|to| to.to_string());
                by_gas_admin.entry(from).or_default().push(PoolMove { pool, to, open });
            }
        }
        Ok(by_gas_admin)
    }

    fn gas_admin_of(&self, pool: &str) -> Option<ServiceId> {
        self.rules.pool(pool).ok().map(|(_, service_id)| service_id)
    }

    /// Which withdrawals of a gas admin can be moved, and why others cannot.
    fn examine(&self, from: &ServiceId) -> Result<MoveStep, StartError> {
        let to = |pool: &str| self.gas_admin_of(pool);
        MoveStep::all(|after| self.store.withdrawals_to_move(from, &to, after, STEP))
            .map_err(StartError::part)
    }

    /// Moves the withdrawals of a gas admin that can be moved.
    fn move_all(
        &self,
        from: &ServiceId,
        request: &OperatorRequest,
    ) -> Result<MoveStep, StartError> {
        let to = |pool: &str| self.gas_admin_of(pool);
        MoveStep::all(|after| self.store.move_withdrawals(from, &to, after, STEP, request))
            .map_err(StartError::part)
    }

    /// Why withdrawals must not be moved from this gas admin now: it is not certain that everything that it
    /// has sent is stored. `examined` is what [`examine`](Self::examine) has found.
    fn uncertainty(
        &self,
        config: &Config,
        from: &ServiceId,
        examined: &MoveStep,
    ) -> Result<Option<String>, StartError> {
        let Some(first) = examined.moved.first() else { return Ok(None) };
        let inspection = inspect_ledger(config, &self.store)?;
        if !inspection.is_certain() {
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

/// How many withdrawals stay, by reason.
fn kept(step: &MoveStep) -> BTreeMap<&'static str, usize> {
    let count = |obstacle| step.kept.iter().filter(|(_, why)| *why == obstacle).count();
    MoveObstacle::ALL.into_iter().map(|obstacle| (obstacle.as_str(), count(obstacle))).collect()
}
