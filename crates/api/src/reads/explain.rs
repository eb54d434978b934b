use std::{collections::BTreeSet, sync::Arc};

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::{
    BatchDetails, BatchExplanation, BatchSelection, PageOrder, ServiceExplanation, ServiceFacts,
    ServiceOverview, ServicePause, WaitReason,
};
use grid_batch_core::{ServiceId, Timestamp};

use super::{
    ReadContext,
    explain_json::{BatchExplanationJson, GasJson, ServiceExplanationJson},
    explain_queued::ExplainedQueued,
};
use crate::{
    access::Caller,
    batches::{BatchParams, BatchRequestError, NamedBatch},
    http::{ApiError, NoParams, PathId, Problems, read_params},
};

/// What is read to explain a batch or a service.
pub(super) struct Explained {
    pub(super) details: Option<BatchDetails>,
    pub(super) service: ServiceOverview,
    pub(super) pause: Option<ServicePause>,
    pub(super) gas: Option<GasJson>,
    /// What only this process knows.
    pub(super) waits: Vec<WaitReason>,
    /// The withdrawal or transaction of the batch, and that of the batch that it waits for.
    pub(super) queued: Option<ExplainedQueued>,
    pub(super) queued_ahead: Option<ExplainedQueued>,
}

/// `GET /v1/batches/{id}/explain`: why a batch waits, and what an operator could do.
#[utoipa::path(
    get, path = "/v1/batches/{id}/explain", tag = "batches", operation_id = "explainBatch", summary = "Why a batch waits",
    params(
        ("id" = String, Path, description = "The id of the batch, or at least its first 8 characters"),
        BatchParams,
    ),
    responses(
        (status = 200, description = "The explanation", body = BatchExplanationJson),
        Problems,
    ),
)]
pub(super) async fn batch(
    State(context): State<Arc<ReadContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<BatchExplanationJson>, ApiError> {
    let params: BatchParams = read_params(&request)?;
    let named = NamedBatch::parse(path, params.service_id.as_deref(), &request)?;
    let batch = context.find(&named).await?;
    let reading = Arc::clone(&context);
    let service_id = batch.service_id.clone();
    let caller = named.caller.clone();
    let read = move || reading.read_explained(&caller, &service_id, Some(batch));
    let explained = context.api.reads.run(read).await?;
    let now = context.api.clock.now();
    let Explained { details: Some(details), .. } = &explained else {
        return Err(BatchRequestError::BatchNotFound(named.id.to_string()).into());
    };
    let facts = context.facts(&explained, now);
    let explanation = BatchExplanation::new(details, Some(facts));
    let links = context.api.links(&request);
    let json = BatchExplanationJson::new(&context, &explained, details, &explanation, &links, now);
    Ok(Json(json))
}

/// `GET /v1/services/{id}/explain`: why a service waits: its oldest open batch, and what stops all.
#[utoipa::path(
    get, path = "/v1/services/{id}/explain", tag = "services", operation_id = "explainService", summary = "Why a service waits",
    params(
        ("id" = String, Path, description = "The id of the service, percent-encoded; also the name or the address of a gas admin"),
    ),
    responses(
        (status = 200, description = "The explanation", body = ServiceExplanationJson),
        Problems,
    ),
)]
pub(super) async fn service(
    State(context): State<Arc<ReadContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<ServiceExplanationJson>, ApiError> {
    let NoParams {} = read_params(&request)?;
    let service_id = context.named_service(path, &request).await?;
    let caller = Caller::of(&request)?.clone();
    let reading = Arc::clone(&context);
    let read = move || {
        let oldest = reading.oldest_open(&service_id)?;
        reading.read_explained(&caller, &service_id, oldest)
    };
    let explained = context.api.reads.run(read).await?;
    let now = context.api.clock.now();
    let facts = context.facts(&explained, now);
    let explanation = ServiceExplanation::new(facts, explained.details.as_ref());
    let links = context.api.links(&request);
    Ok(Json(ServiceExplanationJson::new(&context, &explained, &explanation, &links, now)))
}

impl ReadContext {
    fn oldest_open(&self, service_id: &ServiceId) -> Result<Option<StoredBatch>, ApiError> {
        let open = BatchState::ALL.into_iter().filter(|state| !state.is_terminal());
        let selection = BatchSelection {
            service_id: Some(service_id.clone()),
            states: open.collect(),
            ..BatchSelection::default()
        };
        let page = self.batches.batch_page(&selection, PageOrder::OldestFirst, None, 1);
        let page = page.map_err(ApiError::read_failed)?;
        Ok(page.batches.into_iter().next().map(|listed| listed.batch))
    }

    fn read_explained(
        &self,
        caller: &Caller,
        service_id: &ServiceId,
        batch: Option<StoredBatch>,
    ) -> Result<Explained, ApiError> {
        let (service, pause) = self.service(service_id)?;
        let read = |batch: StoredBatch| self.details(caller, &batch.service_id, &batch.batch_id);
        let details = batch.map(read).transpose()?.flatten();
        let gas = self.gas_of(service_id)?;
        let waits = self.waits_of(service_id, details.as_ref());
        let queued = self.queued(details.as_ref().map(|details| &details.batch))?;
        let ahead = details.as_ref().and_then(|details| details.ahead.as_ref()?.head.as_ref());
        let queued_ahead = self.queued(ahead)?;
        Ok(Explained { details, service, pause, gas, waits, queued, queued_ahead })
    }

    fn queued(&self, batch: Option<&StoredBatch>) -> Result<Option<ExplainedQueued>, ApiError> {
        let (Some(store), Some(batch)) = (&self.withdrawals, batch) else { return Ok(None) };
        ExplainedQueued::read(&**store, batch).map_err(ApiError::read_failed)
    }

    /// Why batches of the service wait, and which nodes do not answer on which the batch depends that it waits for.
    fn waits_of(&self, service_id: &ServiceId, details: Option<&BatchDetails>) -> Vec<WaitReason> {
        let mut waits = self.sources.known_waits.of(service_id);
        let ahead = details.and_then(|details| details.ahead.as_ref());
        if let Some(head) = ahead.and_then(|ahead| ahead.head.as_ref())
            && head.service_id != *service_id
        {
            let node = |reason: &WaitReason| match reason {
                WaitReason::Node(outage) => Some(outage.node.clone()),
                _ => None,
            };
            let known: BTreeSet<_> = waits.iter().filter_map(node).collect();
            let of_head = self.sources.known_waits.of(&head.service_id).into_iter();
            waits.extend(of_head.filter(|it| node(it).is_some_and(|node| !known.contains(&node))));
        }
        waits
    }

    fn facts<'a>(&self, explained: &'a Explained, now: Timestamp) -> ServiceFacts<'a> {
        let Explained { service, pause, waits, .. } = explained;
        ServiceFacts { service, pause: pause.as_ref(), waits, search: self.sources.search, now }
    }

    /// The gas price and its caps, if the service is a gas admin.
    fn gas_of(&self, service_id: &ServiceId) -> Result<Option<GasJson>, ApiError> {
        let Some(source) = &self.gas_admins else { return Ok(None) };
        let reports = source().map_err(ApiError::read_failed)?;
        let of_service = reports.into_iter().find(|it| it.gas_admin == service_id.as_str());
        Ok(of_service.map(GasJson::new))
    }
}
