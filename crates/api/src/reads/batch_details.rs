use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::operators::{ActionFilter, RecordedAction};
use grid_batch_core::queries::BatchDetails;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    ReadContext,
    batch_history::{HistoryEntry, stored_history},
    details_json::DetailsJson,
    wait::find_or_wait,
};
use crate::{
    access::Caller,
    batches::{BatchRequestError, NamedBatch},
    http::{ApiError, PathId, Problems, WaitSeconds, read_params},
};

/// How many actions of operators are shown.
const MOST_ACTIONS: usize = 100;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DetailsParams {
    /// The service, if the batch is stored for several
    service_id: Option<String>,
    /// Wait up to so many seconds until the batch has ended
    #[param(value_type = Option<u32>)]
    wait: Option<WaitSeconds>,
}

/// `GET /v1/batches/{id}`: everything that is stored about a batch. With `wait`, answers when it has ended.
#[utoipa::path(
    get, path = "/v1/batches/{id}", tag = "batches", operation_id = "getBatch", summary = "A batch and its history",
    params(
        ("id" = String, Path, description = "The id of the batch, or at least its first 8 characters"),
        DetailsParams,
    ),
    responses(
        (status = 200, description = "The batch", body = DetailsJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<DetailsJson>, ApiError> {
    let params: DetailsParams = read_params(&request)?;
    let named = NamedBatch::parse(path, params.service_id.as_deref(), &request)?;
    let wait = params.wait.map(|wait| wait.at_most(context.api.options.status_wait_limit));
    let batch = find_or_wait(&context, &named, wait).await?;
    let reading = Arc::clone(&context);
    let read = move || read_details(&reading, &named.caller, &batch);
    let read = context.api.reads.run(read).await?;
    Ok(Json(DetailsJson::new(&context, &request, read)))
}

/// What is read about a batch.
pub(super) struct ReadDetails {
    pub(super) details: BatchDetails,
    pub(super) history: Vec<HistoryEntry>,
    /// What operators did, the latest first.
    pub(super) actions: Vec<RecordedAction>,
}

fn read_details(
    context: &ReadContext,
    caller: &Caller,
    batch: &StoredBatch,
) -> Result<ReadDetails, ApiError> {
    let (service_id, batch_id) = (&batch.service_id, &batch.batch_id);
    let details = context.details(caller, service_id, batch_id)?;
    // Retention may have removed it since it was found.
    let details = details.ok_or(BatchRequestError::BatchNotFound(batch_id.to_string()))?;
    let events = match &context.events {
        Some(events) => events.history(service_id, batch_id).map_err(ApiError::read_failed)?,
        None => None,
    };
    let events = events.filter(|events| !events.is_empty());
    let history = match events {
        Some(events) => events.into_iter().map(HistoryEntry::from).collect(),
        None => stored_history(&details),
    };
    let filter = ActionFilter {
        service_id: Some(service_id.clone()),
        batch_id: Some(*batch_id),
        ..ActionFilter::default()
    };
    let actions = match &context.operators {
        Some(log) => log.actions(&filter, None, MOST_ACTIONS).map_err(ApiError::read_failed)?,
        None => Vec::new(),
    };
    Ok(ReadDetails { details, history, actions })
}
