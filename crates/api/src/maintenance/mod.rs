//! Decisions about the whole database: that it was restored, its ledger, and which gas admins pay from its pools.

mod handlers;
mod report;

use std::{sync::Arc, time::Duration};

use grid_batch_core::BatchError;
use grid_batch_core::operators::OperatorRequest;
use thiserror::Error;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::state::StoreContext;

pub use report::{
    BoundNodeReport, GasAdminMoves, InDoubtReport, LedgerBinding, LedgerIdentityReport, PoolMove,
    RetentionReport,
};

/// Carries out decisions that need the settings or the nodes, beside the store. Its methods block.
pub trait Maintenance: Send + Sync {
    /// Puts every open batch in doubt. Refused while an instance runs, unless `even_if_running`.
    fn restored(
        &self,
        even_if_running: bool,
        request: &OperatorRequest,
    ) -> Result<InDoubtReport, MaintenanceError>;

    /// Records that the database was moved with every commit. Refused while an instance runs.
    fn moved(&self, request: &OperatorRequest) -> Result<InDoubtReport, MaintenanceError>;

    /// The ledger of the database, and those of the nodes.
    fn ledger(&self) -> Result<LedgerBinding, MaintenanceError>;

    /// Binds the database to the ledger of the nodes. Refused while an instance runs.
    fn adopt_ledger(&self, request: &OperatorRequest) -> Result<LedgerBinding, MaintenanceError>;

    /// Removes batches that ended longer ago than this, by default than the settings say. A dry run counts them. It may
    /// end before all are removed.
    fn remove_ended(
        &self,
        older_than: Option<Duration>,
        dry_run: bool,
    ) -> Result<RetentionReport, MaintenanceError>;

    /// Moves open withdrawals to the present gas admins of their pools.
    fn move_withdrawals(
        &self,
        request: &OperatorRequest,
    ) -> Result<Vec<GasAdminMoves>, MaintenanceError>;
}

/// Why a decision about the database was not carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MaintenanceError {
    /// It is not possible now, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error("the database cannot be changed")]
    Failed(#[source] BatchError),
}

type MaintenanceContext = StoreContext<dyn Maintenance>;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<MaintenanceContext>> {
    OpenApiRouter::new()
        .routes(routes!(handlers::restored))
        .routes(routes!(handlers::ledger))
        .routes(routes!(handlers::adopt_ledger))
        .routes(routes!(handlers::move_withdrawals))
        .routes(routes!(handlers::remove_ended))
}
