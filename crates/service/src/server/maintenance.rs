//! Decisions about the whole database, for the HTTP interface.

use grid_batch_api::{
    BoundNodeReport, GasAdminMoves, InDoubtReport, LedgerBinding, LedgerIdentityReport,
    Maintenance, MaintenanceError,
};
use grid_batch_core::{LedgerIdentity, OperatorRequest};
use grid_batch_store::{ClaimError, OpenBatchesInDoubt, Store, StoreError};
use grid_batch_support::ErrorChain;

use super::{LedgerInspection, StartError, ToldIdentity};
use crate::Config;

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
    fn inspect(&self) -> Result<LedgerInspection, MaintenanceError> {
        LedgerInspection::new(&self.config, &self.store).map_err(of_settings)
    }
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
