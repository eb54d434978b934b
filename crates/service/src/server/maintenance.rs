//! Decisions about the whole database, for the HTTP interface.

use std::time::{Duration, Instant};

use grid_batch_api::{
    BoundNodeReport, GasAdminMoves, InDoubtReport, LedgerBinding, Maintenance, MaintenanceError,
    RetentionReport,
};
use grid_batch_core::batches::{Removable, Removed};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{Clock, Timestamp};
use grid_batch_ledger_check::{Adoption, LedgerInspection, NodeIdentity};
use grid_batch_store::{ClaimError, OpenBatchesInDoubt, Store, StoreError};
use grid_batch_support::ErrorChain;

use super::{StartError, ledger_inspection::inspect_ledger};
use crate::Config;

/// How many batches one transaction examines.
const STEP: usize = 200;
/// Batches that are not removed in this time are left to the next request.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Carries them out on the database of a configuration, with its nodes.
pub(super) struct DatabaseMaintenance {
    pub(super) config: Config,
    pub(super) store: Store,
}

impl Maintenance for DatabaseMaintenance {
    fn restored(
        &self,
        even_if_running: bool,
        request: &OperatorRequest,
    ) -> Result<InDoubtReport, MaintenanceError> {
        let in_doubt = self.store.mark_restored(even_if_running, request).map_err(of_store)?;
        let OpenBatchesInDoubt { batches, services } = in_doubt;
        Ok(InDoubtReport { batches, services })
    }

    fn moved(&self, request: &OperatorRequest) -> Result<InDoubtReport, MaintenanceError> {
        self.store.mark_moved(request).map_err(of_store)?;
        Ok(InDoubtReport { batches: 0, services: 0 })
    }

    fn ledger(&self) -> Result<LedgerBinding, MaintenanceError> {
        Ok(binding(&inspect_ledger(&self.config, &self.store).map_err(of_settings)?))
    }

    fn adopt_ledger(&self, request: &OperatorRequest) -> Result<LedgerBinding, MaintenanceError> {
        let inspection = inspect_ledger(&self.config, &self.store).map_err(of_settings)?;
        if let Adoption::Adopt(ledger) = inspection.adoption() {
            self.store.rebind_ledger(ledger, request).map_err(of_store)?;
        }
        Ok(binding(&inspection))
    }

    fn remove_ended(
        &self,
        older_than: Option<Duration>,
        dry_run: bool,
    ) -> Result<RetentionReport, MaintenanceError> {
        let age = retention_age(&self.config, older_than).map_err(MaintenanceError::Refused)?;
        let before = self.store.clock().now().minus(age);
        let report = if dry_run { self.count(before) } else { self.remove(before) };
        let report = report.map_err(of_store)?;
        Ok(RetentionReport { older_than_seconds: age.as_secs(), ..report })
    }

    #[cfg(feature = "evm")]
    fn move_withdrawals(
        &self,
        request: &OperatorRequest,
    ) -> Result<Vec<GasAdminMoves>, MaintenanceError> {
        let moves = super::WithdrawalMoves::new(&self.config, &self.store);
        moves.and_then(|moves| moves.run(&self.config, request)).map_err(of_settings)
    }

    #[cfg(not(feature = "evm"))]
    fn move_withdrawals(
        &self,
        _request: &OperatorRequest,
    ) -> Result<Vec<GasAdminMoves>, MaintenanceError> {
        Err(MaintenanceError::Refused("this build has no withdrawals".to_owned()))
    }
}

impl DatabaseMaintenance {
    /// Removes batches for up to [`TIME_LIMIT`].
    fn remove(&self, before: Timestamp) -> Result<RetentionReport, StoreError> {
        let started = Instant::now();
        let has_time = || started.elapsed() < TIME_LIMIT;
        let Removed { batches, next } = self.store.remove_all_ended(before, STEP, has_time)?;
        Ok(RetentionReport { batches, has_more: next.is_some(), ..RetentionReport::default() })
    }

    fn count(&self, before: Timestamp) -> Result<RetentionReport, StoreError> {
        let Removable { batches, bytes, oldest_end, .. } =
            self.store.count_all_removable(before, STEP)?;
        let first_ended_at = oldest_end.map(Timestamp::rfc3339);
        let bytes = Some(bytes);
        Ok(RetentionReport { batches, bytes, first_ended_at, ..RetentionReport::default() })
    }
}

/// How long ago the batches must have ended.
fn retention_age(config: &Config, older_than: Option<Duration>) -> Result<Duration, String> {
    let Some(age) = older_than else {
        return config.retention.after.ok_or_else(|| {
            "retention.after is not set; say how old with --older-than, such as 30d".to_owned()
        });
    };
    let limit = config.retention_limit();
    if age > limit {
        return Ok(age);
    }
    Err(format!(
        "--older-than is {age:?}; it must be more than ledger.late_arrival_limit and poll.give_up_after, {limit:?}, \
         because the ledger may still report younger batches"
    ))
}

fn binding(inspection: &LedgerInspection) -> LedgerBinding {
    let adoption = inspection.adoption();
    LedgerBinding {
        database: inspection.recorded.as_ref().map(|recorded| (&recorded.identity).into()),
        nodes: inspection.nodes.iter().map(node).collect(),
        changed: matches!(adoption, Adoption::Adopt(_)),
        refused: adoption.refused().map(str::to_owned),
    }
}

fn node(NodeIdentity { url, identity: reported }: &NodeIdentity) -> BoundNodeReport {
    BoundNodeReport {
        url: url.clone(),
        ledger: reported.as_ref().ok().map(Into::into),
        error: reported.as_ref().err().cloned(),
    }
}

fn of_store(error: StoreError) -> MaintenanceError {
    match error {
        StoreError::Claims(
            running @ (ClaimError::InstancesRunning { .. } | ClaimError::FileInUse { .. }),
        ) => MaintenanceError::Refused(running.to_string()),
        error => MaintenanceError::Failed(error.into()),
    }
}

fn of_settings(error: StartError) -> MaintenanceError {
    MaintenanceError::Refused(ErrorChain(&error).to_string())
}
