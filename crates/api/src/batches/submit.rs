use std::{num::NonZero, sync::Arc, thread::available_parallelism};

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, request::Parts},
    response::Response,
};
use grid_batch_core::batches::{
    BatchConflict, BatchFormat, BatchLabel, ClientId, FormatError, NewBatch,
};
use grid_batch_core::ledger::{KeyRefusal, Ledger};
use grid_batch_core::tokens::AccessScope;
use grid_batch_core::{GlobalScopeId, ItemId, ScopeId, ServiceId};
use grid_batch_support::BlockingWork;
use log::debug;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    access::{AccessError, Caller},
    allow_list::AllowLists,
    batches::{
        BatchRequestError,
        accepted_json::AcceptedListJson,
        label::{BatchMarks, MarkParams},
        writer::{ListAnswer, RequestBatches},
    },
    group_commit::{WriteQueue, WriteSlot},
    http::{ApiError, Bytes, Problems, Query, RequestBody, SawtoothErrors, batch_content_type},
    rate_limits::{LimitError, Rates},
    state::{ApiState, run_blocking},
};

/// Is called with the ids of batches before they are stored.
pub(crate) type ReceivedCallback = dyn Fn(&[ItemId]) + Send + Sync;

pub(crate) type ServiceRule = dyn Fn(&ServiceId) -> Result<(), String> + Send + Sync;

/// The queue of the writer of batches.
pub(crate) type BatchWriteQueue = WriteQueue<RequestBatches, ListAnswer>;

/// What `POST /batches` needs.
pub(crate) struct IntakeContext {
    api: Arc<ApiState>,
    format: Arc<dyn BatchFormat>,
    checks: Arc<ServiceChecks>,
    received: Arc<ReceivedCallback>,
    queue: BatchWriteQueue,
    /// Checks signatures, one list per core.
    verifications: BlockingWork,
}

/// Which services get batches, and from which signers.
pub(crate) struct ServiceChecks {
    pub(crate) rule: Arc<ServiceRule>,
    pub(crate) allowed: AllowLists,
    /// What is known of the ledger's services.
    pub(crate) ledger: Option<Arc<dyn Ledger>>,
}

impl IntakeContext {
    /// A list of at most this many bytes is verified by the thread that serves its connection: it has few
    /// transactions, and switching to another thread would cost more than it saves.
    const INLINE_VERIFICATION_LIMIT: usize = 4 * 1024;

    pub(crate) fn new(
        api: Arc<ApiState>,
        format: Arc<dyn BatchFormat>,
        checks: ServiceChecks,
        received: Arc<ReceivedCallback>,
        queue: BatchWriteQueue,
    ) -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let verifications = BlockingWork::new(cores);
        Self { api, format, checks: Arc::new(checks), received, queue, verifications }
    }

    /// Refuses a caller who may not read what the ledger has in this service.
    pub(crate) async fn check_reader(
        &self,
        caller: &Caller,
        service_id: &ServiceId,
    ) -> Result<(), ApiError> {
        caller.check(service_id)?;
        self.checks.check_key(caller, service_id, AccessScope::Read).await
    }

    pub(crate) async fn read_body(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<RequestBody, ApiError> {
        self.api.bodies.read(headers, body, self.api.options.body_limit).await
    }

    /// Checks and stores a list of batches for a service, with its marks. Returns their ids.
    pub(crate) async fn accept(
        &self,
        caller: &Caller,
        body: RequestBody,
        service_id: ServiceId,
        marks: BatchMarks,
    ) -> Result<Vec<ItemId>, ApiError> {
        let Self { api, format, checks, received, queue, verifications } = self;
        caller.check(&service_id)?;
        checks.check_key(caller, &service_id, AccessScope::Submit).await?;
        let is_confirmed = checks.check_service(&service_id).await?;
        checks.check_history(&service_id, marks.declared_new).await?;
        api.rates.begin_of_service(&service_id)?;

        // Checking signatures is expensive, so what refuses the request comes before that.
        api.database.check()?;
        let slot = queue.reserve_slot()?;
        let (format, checks) = (Arc::clone(format), Arc::clone(checks));
        let is_small = body.bytes.len() <= Self::INLINE_VERIFICATION_LIMIT;
        let service = service_id.clone();
        let verify = move || verify(&body.bytes, &*format, &service, &checks.allowed);
        let mut batches =
            if is_small { verify()? } else { run_blocking(verifications, verify).await? };
        let client = caller.client_id();
        for batch in &mut batches {
            batch.label.clone_from(&marks.label);
            batch.client = client;
            batch.declared_new = marks.declared_new;
            batch.trace.clone_from(&marks.trace);
            if is_confirmed {
                // A confirmed service does not count as one that its signer may have made up.
                batch.signer = None;
            }
        }
        api.rates.take_addresses(&batches).map_err(LimitError::RateOfAddresses)?;
        api.rates.charge(caller.key(), &service_id, batches.len());
        let ids: Vec<ItemId> = batches.iter().map(|batch| batch.batch_id).collect();
        received(&ids);
        let stored = store(slot, RequestBatches { batches, _reservation: body.reservation });
        let stored = api.database.run(BatchRequestError::BatchesNotStored, stored).await;
        stored.map_err(|error| with_wait(error, &api.rates, client))?;
        api.rates.stored(&service_id, client, ids.len());
        Ok(ids)
    }
}

impl ServiceChecks {
    /// Whether the ledger has confirmed that it has the service.
    async fn check_service(&self, id: &ServiceId) -> Result<bool, ApiError> {
        (self.rule)(id)
            .map_err(|rule| BatchRequestError::RefusedService { id: id.clone(), rule })?;
        self.allowed.check_service(id)?;
        let Some(check) = &self.ledger else { return Ok(false) };
        let unknown = |reason| BatchRequestError::UnknownService { id: id.clone(), reason };
        Ok(check.has_service(id).await.map_err(unknown)?)
    }

    async fn check_history(&self, id: &ServiceId, declared_new: bool) -> Result<(), ApiError> {
        let Some(check) = &self.ledger else { return Ok(()) };
        Ok(check.check_history(id, declared_new).await.map_err(BatchRequestError::NotProvedNew)?)
    }

    /// Refuses a caller whose key a node of the ledger must accept, and does not.
    pub(crate) async fn check_key(
        &self,
        caller: &Caller,
        id: &ServiceId,
        scope: AccessScope,
    ) -> Result<(), ApiError> {
        let Some(key) = caller.ledger_key() else { return Ok(()) };
        let check = self.ledger.as_ref().ok_or(AccessError::KeyRefused)?;
        let checked = check.check_key(id, key, scope).await.map_err(|refusal| match refusal {
            KeyRefusal::Refused => AccessError::KeyRefused,
            KeyRefusal::NotAsked(reason) => {
                debug!(service:% = id, reason:%; "a key cannot be checked");
                AccessError::KeyNotChecked
            }
        });
        Ok(checked?)
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedJson {
    pub(crate) link: String,
}

/// The parameters of a request that stores batches.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct IntakeParams {
    /// The service that gets them; without it `global`, the only one of a ledger without services
    service_id: Option<String>,
}

/// `POST /batches`: answers `202` after the whole list is stored.
#[utoipa::path(
    post, path = "/batches", tag = "batches", operation_id = "submitBatches", summary = "Submit batches",
    params(
        IntakeParams,
        MarkParams,
        ("traceparent" = Option<String>, Header, description = "The trace that the request belongs to"),
    ),
    request_body(content = inline(Bytes), content_type = "application/octet-stream", description = "A serialized BatchList"),
    responses(
        (status = 202, description = "All batches are stored", body = AcceptedJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<IntakeContext>>,
    request: Request,
) -> Result<(StatusCode, Json<AcceptedJson>), ApiError> {
    let AcceptedBatches { request, ids, named_service, .. } =
        submit(&context, request, false).await?;
    let link = context.api.links(&request).batch_statuses(&ids, named_service.as_ref());
    Ok((StatusCode::ACCEPTED, Json(AcceptedJson { link })))
}

/// `POST /v1/batches`: the same, with a link to each batch.
#[utoipa::path(
    post, path = "/v1/batches", tag = "batches", operation_id = "submitOwnBatches", summary = "Submit batches",
    params(
        IntakeParams,
        MarkParams,
        ("Grid-Batch-Label" = Option<String>, Header, description = "The label, as a header"),
        ("traceparent" = Option<String>, Header, description = "The trace that the request belongs to"),
    ),
    request_body(content = inline(Bytes), content_type = "application/octet-stream", description = "A serialized list of batches"),
    responses(
        (status = 202, description = "All batches are stored", body = AcceptedListJson),
        Problems,
    ),
)]
pub(crate) async fn post_own(
    State(context): State<Arc<IntakeContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let accepted = submit(&context, request, true).await?;
    Ok(accepted.into_response(&context.api))
}

/// What a request stored.
pub(crate) struct AcceptedBatches {
    pub(crate) request: Parts,
    pub(crate) ids: Vec<ItemId>,
    pub(crate) service_id: ServiceId,
    pub(crate) named_service: Option<ServiceId>,
    pub(crate) label: Option<BatchLabel>,
}

/// Stores the list of a request. Our own interface refuses unknown parameters.
async fn submit(
    context: &IntakeContext,
    request: Request,
    is_own: bool,
) -> Result<AcceptedBatches, ApiError> {
    let (request, body) = request.into_parts();
    let body = context.read_body(&request.headers, body).await?;
    batch_content_type(&request.headers).map_err(BatchRequestError::BatchesContentType)?;
    let query = Query::parse(request.uri.query())?;
    if is_own {
        query.check_names(&["service_id", "label", "new"])?;
    }
    let IntakeParams { service_id } = query.some_params()?;
    let named_service: Option<ServiceId> = service_id.as_deref().map(str::parse).transpose()?;
    if named_service.is_none() {
        (context.checks.rule)(GlobalScopeId.service_id())
            .map_err(BatchRequestError::MissingService)?;
    }
    let marks = BatchMarks::read(&request.headers, &query)?;
    let service_id = named_service.as_ref().unwrap_or(GlobalScopeId.service_id()).clone();
    let caller = Caller::of(&request)?;
    let label = marks.label.clone();
    let ids = context.accept(caller, body, service_id.clone(), marks).await?;
    Ok(AcceptedBatches { request, ids, service_id, named_service, label })
}

async fn store(
    slot: WriteSlot<RequestBatches, ListAnswer>,
    list: RequestBatches,
) -> Result<(), ApiError> {
    let answer = slot.store(list).await.ok_or(BatchRequestError::BatchesNotStored)?;
    Ok(answer?)
}

/// Says after how long there will be a place, if a queue is full.
fn with_wait(error: ApiError, rates: &Rates, client: Option<ClientId>) -> ApiError {
    let Some(conflict) = error.get::<BatchConflict>() else { return error };
    let wait = match (conflict, client) {
        (BatchConflict::QueueFull { service_id, .. }, _) => rates.wait_for_place(service_id),
        (BatchConflict::QueueOfClientFull { .. }, Some(client)) => {
            rates.wait_for_place_of_client(&client)
        }
        _ => return error,
    };
    LimitError::QueueFull { conflict: conflict.clone(), wait }.into()
}

fn verify(
    body: &[u8],
    format: &dyn BatchFormat,
    service_id: &ServiceId,
    allowed: &AllowLists,
) -> Result<Vec<NewBatch>, ApiError> {
    if body.is_empty() {
        return Err(FormatError::Empty.into());
    }
    let batches = format.read(service_id, body)?;
    batches.iter().try_for_each(|batch| allowed.check_signer(batch.signer.as_ref()))?;
    Ok(batches)
}
