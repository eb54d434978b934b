use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::request::Parts,
};
use grid_batch_core::ServiceId;
use grid_batch_core::queries::BatchQueryStore;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::{
    ScabbardContext, ServicePath, not_found,
    protocol_version::check_version,
    status_json::{OwnStatusJson, StatusJson},
};
use crate::{
    access::Caller,
    batches::{BatchRequestError, StatusWait},
    http::{ApiError, Query, ScabbardErrors},
    scabbard::ScabbardRequestError,
};

/// The longest wait. Clients of Splinter give up a request after 30 seconds, and ask again after an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// The most ids in one request.
const MAX_IDS: usize = 1_000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ScabbardStatusParams {
    /// Batch ids, separated by commas
    #[param(value_type = String)]
    ids: Option<String>,
    /// Wait up to so many seconds until all batches have ended
    wait: Option<String>,
}

/// `GET /scabbard/CIRCUIT/SERVICE/batch_statuses`.
#[utoipa::path(
    get, path = "/scabbard/{circuit}/{service}/batch_statuses", tag = "scabbard", operation_id = "getScabbardStatuses",
    summary = "Statuses of batches, as a Splinter node shows them",
    params(
        ("circuit" = String, Path, description = "The circuit"),
        ("service" = String, Path, description = "The service of the circuit"),
        ScabbardStatusParams,
    ),
    responses(
        (status = 200, description = "The statuses", body = Vec<OwnStatusJson>),
        ScabbardErrors,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ScabbardContext>>,
    Path(path): Path<ServicePath>,
    request: Parts,
) -> Result<Json<Vec<StatusJson>>, ApiError> {
    check_version(&request.headers)?;
    let service_id = context.service_id(&path)?;
    context.intake.check_reader(Caller::of(&request)?, &service_id).await?;
    let query = Query::parse(request.uri.query())?;
    let ScabbardStatusParams { ids, wait } = query.some_params()?;
    let ids = ids.ok_or(ScabbardRequestError::MissingScabbardIds)?;
    let ids: BTreeSet<&str> = ids.split(',').collect();
    if ids.len() > MAX_IDS {
        return Err(BatchRequestError::TooManyIds { limit: MAX_IDS }.into());
    }
    let limit = context.statuses.api.options.status_wait_limit.min(LONGEST_WAIT);
    let wait = wait.filter(|wait| wait != "false");
    // Anything that is not a number stands for the limit, as on a node.
    let wait = wait.map(|wait| wait.parse().map_or(limit, Duration::from_secs).min(limit));
    let ids = ids.into_iter().map(str::to_owned).collect();
    let statuses = StatusRead { context: &context, path: &path, service_id };
    statuses.read_or_wait(ids, wait).await.map(Json)
}

struct StatusRead<'a> {
    context: &'a ScabbardContext,
    path: &'a ServicePath,
    service_id: ServiceId,
}

impl StatusRead<'_> {
    /// Waits until all batches have ended, which unknown ones have not: clients wait for a batch
    /// that is on its way.
    async fn read_or_wait(
        &self,
        ids: Vec<String>,
        wait: Option<Duration>,
    ) -> Result<Vec<StatusJson>, ApiError> {
        let context = &self.context.statuses;
        let awaited = ids.iter().filter_map(|id| id.parse().ok());
        let mut wait = wait.map(|wait| StatusWait::begin(&context.api, wait, awaited));
        let mut statuses = self.read(ids.clone()).await?;
        self.ask_node(&mut statuses).await?;
        let Some(wait) = wait.as_mut().filter(|_| !all_final(&statuses)) else {
            return Ok(statuses);
        };
        let open = ids.iter().zip(&statuses).filter(|(_, status)| !status.is_final());
        wait.goes_on_for(open.filter_map(|(id, _)| id.parse().ok()));
        while wait.until_next_read().await {
            statuses = self.read_open(ids.clone(), statuses, true).await?;
            if all_final(&statuses) {
                return Ok(statuses);
            }
        }
        statuses = self.read_open(ids, statuses, false).await?;
        self.ask_node(&mut statuses).await?;
        Ok(statuses)
    }

    /// Reads the statuses again that are not final: all, or up to the first that is still not final, which is enough
    /// for the wait to go on. The answers of the node about batches that are not stored stay.
    async fn read_open(
        &self,
        ids: Vec<String>,
        mut statuses: Vec<StatusJson>,
        to_first_open: bool,
    ) -> Result<Vec<StatusJson>, ApiError> {
        let context = &self.context.statuses;
        let (store, service_id) = (Arc::clone(&context.store), self.service_id.clone());
        let read = move || {
            let open = ids.iter().zip(&mut statuses).filter(|(_, status)| !status.is_final());
            for (id, status) in open {
                if let Some(read) = read_stored(&*store, &service_id, id)? {
                    *status = read;
                }
                if to_first_open && !status.is_final() {
                    break;
                }
            }
            Ok(statuses)
        };
        context.api.reads.run(read).await
    }

    async fn read(&self, ids: Vec<String>) -> Result<Vec<StatusJson>, ApiError> {
        let context = &self.context.statuses;
        let (store, service_id) = (Arc::clone(&context.store), self.service_id.clone());
        let now = context.api.clock.now();
        let read = move || {
            let read = |id: String| {
                let stored = read_stored(&*store, &service_id, &id)?;
                Ok(stored.unwrap_or_else(|| StatusJson::unknown(id, now)))
            };
            ids.into_iter().map(read).collect()
        };
        context.api.reads.run(read).await
    }

    /// Has a node report batches that are not stored: clients sent them before, or elsewhere.
    async fn ask_node(&self, statuses: &mut [StatusJson]) -> Result<(), ApiError> {
        let ServicePath { circuit, service } = self.path;
        let unknown = statuses.iter().filter_map(StatusJson::unknown_id);
        // Other texts are no ids, and could change the query.
        let is_id = |id: &&str| id.parse::<grid_batch_protocol::HeaderId>().is_ok();
        let ids: Vec<String> = unknown.filter(is_id).map(str::to_owned).collect();
        let path = format!("/scabbard/{circuit}/{service}/batch_statuses");
        let answer = self.context.statuses.nodes.statuses(&path, "ids", &ids).await;
        if answer.is_service_unknown && ids.len() == statuses.len() {
            return Err(not_found(circuit, service));
        }
        for status in statuses {
            let Some(id) = status.unknown_id() else { continue };
            let is_of = |report: &&Value| report.get("id").and_then(Value::as_str) == Some(id);
            let report = answer.reports.iter().find(is_of).and_then(StatusJson::of_node);
            if let Some(report) = report {
                *status = report;
            }
        }
        Ok(())
    }
}

/// Reads a status. `None`: the text is no id, or the batch is not stored.
fn read_stored(
    store: &dyn BatchQueryStore,
    service_id: &ServiceId,
    id: &str,
) -> Result<Option<StatusJson>, ApiError> {
    id.parse().map_or(Ok(None), |id| StatusJson::read(store, service_id, &id))
}

fn all_final(statuses: &[StatusJson]) -> bool {
    statuses.iter().all(StatusJson::is_final)
}
