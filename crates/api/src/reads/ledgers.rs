use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::BatchResult;
use serde::Serialize;
use utoipa::ToSchema;

use super::ReadContext;
use crate::http::{ApiError, NoParams, PageJson, Params, Problems};

/// What is known of the ledgers. It may use the store, and asks no node.
pub(crate) type LedgerSource = dyn Fn() -> BatchResult<Vec<LedgerReport>> + Send + Sync;

/// What `/v1/ledgers` shows about a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LedgerReport {
    /// Its kind.
    pub kind: String,
    /// What all its nodes tell and no others do; empty if there is no such thing.
    pub id: String,
    /// The name that the operator gave it; empty without one.
    pub name: String,
    /// Whether the database is bound to it.
    pub recorded: bool,
    /// Why nothing is sent to it, if that is so.
    pub problem: Option<String>,
    /// Its nodes.
    pub nodes: Vec<NodeReport>,
}

/// What `/v1/ledgers` shows about a node.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NodeReport {
    /// Its address, without a password.
    pub url: String,
    /// Whether it has confirmed that it belongs to the ledger.
    pub confirmed: bool,
    /// Whether it answers as a node of the ledger, as far as is known.
    pub answering: bool,
    /// For how long it has not answered, if it does not.
    pub unanswered_seconds: Option<f64>,
    /// What is wrong with it, if something is.
    pub problem: Option<String>,
    /// Since when it has this problem, if that is known.
    #[schema(format = DateTime)]
    pub problem_since: Option<String>,
    /// How long ago it was asked which ledger it belongs to.
    pub asked_seconds_ago: Option<f64>,
    /// How often a connection to it failed since the server started.
    pub failed_connections: u64,
}

/// `GET /v1/ledgers`.
#[utoipa::path(
    get, path = "/v1/ledgers", tag = "services", operation_id = "listLedgers", summary = "Ledgers and their nodes",
    responses(
        (status = 200, description = "The ledgers", body = PageJson<LedgerReport>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    _: Params<NoParams>,
) -> Result<Json<PageJson<LedgerReport>>, ApiError> {
    let Some(source) = context.sources.ledgers.clone() else {
        return Ok(Json(PageJson { data: Vec::new(), next: None }));
    };
    let data = context.api.read(move || source()).await?;
    Ok(Json(PageJson { data, next: None }))
}
