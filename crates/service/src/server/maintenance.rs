//! Decisions about the whole database, for the HTTP interface.

use std::time::{Duration, Instant};

use grid_batch_api::{
    BoundNodeReport, GasAdminMoves, InDoubtReport, LedgerBinding, LedgerIdentityReport,
    Maintenance, MaintenanceError, RetentionReport,
};
use grid_batch_core::{Clock, LedgerIdentity, OperatorRequest, Timestamp};
use grid_batch_store::{ClaimError, OpenBatchesInDoubt, Store, StoreError};
use grid_batch_support::ErrorChain;

use super::{LedgerInspection, StartError, ToldIdentity};
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
        Ok(binding(&self.inspect()?))
    }

    fn adopt_ledger(&self, request: &OperatorRequest) -> Result<LedgerBinding, MaintenanceError> {
        let inspection = self.inspect()?;
        if let Adoption::Adopt(ledger) = Adoption::of(&inspection) {
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
        let report = RetentionReport {
            older_than_seconds: age.as_secs(),
            batches: 0,
            bytes: None,
            first_ended_at: None,
            has_more: false,
        };
        let report = if dry_run { self.count(before, report) } else { self.remove(before, report) };
        report.map_err(of_store)
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
    fn remove(
        &self,
        before: Timestamp,
        mut report: RetentionReport,
    ) -> Result<RetentionReport, StoreError> {
        let started = Instant::now();
        let mut from = None;
        loop {
            let step = self.store.remove_ended(before, from, STEP)?;
            report.batches += step.batches;
            from = step.next;
            report.has_more = from.is_some() && started.elapsed() >= TIME_LIMIT;
            if from.is_none() || report.has_more {
                return Ok(report);
            }
        }
    }

    fn count(
        &self,
        before: Timestamp,
        mut report: RetentionReport,
    ) -> Result<RetentionReport, StoreError> {
        let (mut bytes, mut oldest, mut from) = (0, None, None);
        loop {
            let step = self.store.count_removable(before, from, STEP)?;
            report.batches += step.batches;
            bytes += step.bytes;
            oldest = oldest.into_iter().chain(step.oldest_end).min();
            from = step.next;
            if from.is_none() {
                report.bytes = Some(bytes);
                report.first_ended_at = oldest.map(Timestamp::rfc3339);
                return Ok(report);
            }
        }
    }

    fn inspect(&self) -> Result<LedgerInspection, MaintenanceError> {
        LedgerInspection::new(&self.config, &self.store).map_err(of_settings)
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
        "--older-than is {}; it must be more than ledger.late_arrival_limit and poll.give_up_after, {}, because the \
         ledger may still report younger batches",
        humantime::format_duration(age),
        humantime::format_duration(limit)
    ))
}

fn binding(inspection: &LedgerInspection) -> LedgerBinding {
    let adoption = Adoption::of(inspection);
    let refused = match adoption {
        Adoption::Refused(reason) => Some(reason.to_owned()),
        Adoption::Unchanged | Adoption::Adopt(_) => None,
    };
    LedgerBinding {
        database: inspection.recorded.as_ref().map(|recorded| identity(&recorded.identity)),
        nodes: inspection.nodes.iter().map(node).collect(),
        changed: matches!(adoption, Adoption::Adopt(_)),
        refused,
    }
}

/// What is done about the ledger of the database.
#[derive(Debug, PartialEq, Eq)]
enum Adoption<'a> {
    Unchanged,
    Refused(&'static str),
    Adopt(&'a LedgerIdentity),
}

impl<'a> Adoption<'a> {
    fn of(inspection: &'a LedgerInspection) -> Self {
        let Some(actual) = inspection.actual() else {
            return Self::Refused("every node must answer, and all must belong to one ledger");
        };
        match &inspection.recorded {
            Some(recorded) if recorded.identity.agrees_with(actual) => Self::Unchanged,
            _ => Self::Adopt(actual),
        }
    }
}

fn identity(LedgerIdentity { kind, id, name }: &LedgerIdentity) -> LedgerIdentityReport {
    LedgerIdentityReport { kind: kind.clone(), id: id.clone(), name: name.clone() }
}

fn node(ToldIdentity { url, identity: told }: &ToldIdentity) -> BoundNodeReport {
    BoundNodeReport {
        url: url.clone(),
        ledger: told.as_ref().ok().map(identity),
        error: told.as_ref().err().cloned(),
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

#[cfg(test)]
mod tests {
    use grid_batch_core::{RecordedLedger, Timestamp};

    use super::*;

    fn ledger(id: &str) -> LedgerIdentity {
        LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("sawtooth") }
    }

    fn told(identity: Result<LedgerIdentity, String>) -> ToldIdentity {
        ToldIdentity { url: "http://127.0.0.1:8008".to_owned(), identity }
    }

    #[test]
    fn only_a_certain_ledger_is_adopted() {
        let one = || told(Ok(ledger("a")));
        let recorded = |id: &str| {
            Some(RecordedLedger { identity: ledger(id), recorded_at: Timestamp::default() })
        };
        let uncertain =
            Adoption::Refused("every node must answer, and all must belong to one ledger");
        let down = told(Err("refused".to_owned()));
        for (recorded, nodes, expected) in [
            (recorded("a"), vec![one(), one()], Adoption::Unchanged),
            (recorded("b"), vec![one(), one()], Adoption::Adopt(&ledger("a"))),
            (None, vec![one(), one()], Adoption::Adopt(&ledger("a"))),
            (recorded("a"), vec![one(), told(Ok(ledger("b")))], uncertain),
            (
                recorded("a"),
                vec![one(), down],
                Adoption::Refused("every node must answer, and all must belong to one ledger"),
            ),
        ] {
            let inspection = LedgerInspection { recorded, nodes };
            assert_eq!(Adoption::of(&inspection), expected, "{inspection:?}");
        }
    }
}
