use std::{num::NonZero, sync::Arc, thread::available_parallelism};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::{GlobalScopeId, HeaderId, NewBatch, ScopeId, ServiceCheck, ServiceId};
use grid_batch_protocol::{Limits, verify_list};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    allow_list::AllowLists,
    batches::writer::{BatchList, ListAnswer},
    group_commit::{WriteQueue, WriteSlot},
    http::{ApiError, Query, SawtoothErrorBody, batch_content_type, link},
    state::{ApiState, BlockingPool},
};

/// Is called with the ids of batches before they are stored.
pub(crate) type ReceivedCallback = dyn Fn(&[HeaderId]) + Send + Sync;

pub(crate) type ServiceRule = dyn Fn(&ServiceId) -> Result<(), String> + Send + Sync;

/// The queue of the writer of batches.
pub(crate) type BatchQueue = WriteQueue<BatchList, ListAnswer>;

/// What `POST /batches` needs.
pub(crate) struct IntakeContext {
    api: Arc<ApiState>,
    checks: Arc<ServiceChecks>,
    received: Arc<ReceivedCallback>,
    queue: BatchQueue,
    /// Checks signatures, one list per core.
    verifications: BlockingPool,
}

/// Which services get batches, and from which signers.
pub(crate) struct ServiceChecks {
    pub(crate) rule: Arc<ServiceRule>,
    pub(crate) allowed: AllowLists,
    /// What is known of the ledger's services.
    pub(crate) ledger: Option<Arc<dyn ServiceCheck>>,
}

impl IntakeContext {
    /// A list of at most this many bytes is verified by the thread that serves its connection: it has few
    /// transactions, and switching to another thread would cost more than it saves.
    const INLINE_VERIFICATION_LIMIT: usize = 4 * 1024;

    pub(crate) fn new(
        api: Arc<ApiState>,
        checks: ServiceChecks,
        received: Arc<ReceivedCallback>,
        queue: BatchQueue,
    ) -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let verifications = BlockingPool::new(cores);
        Self { api, checks: Arc::new(checks), received, queue, verifications }
    }
}

impl ServiceChecks {
    async fn check_service(&self, id: &ServiceId) -> Result<(), ApiError> {
        (self.rule)(id).map_err(|rule| ApiError::RefusedService { id: id.clone(), rule })?;
        self.allowed.check_service(id)?;
        let Some(check) = &self.ledger else { return Ok(()) };
        check.check(id).await.map_err(|reason| ApiError::UnknownService { id: id.clone(), reason })
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedJson {
    link: String,
}

/// `POST /batches`: answers `202` after the whole list is stored.
#[utoipa::path(
    post, path = "/batches", tag = "batches", operation_id = "submitBatches", summary = "Submit batches",
    params(
        ("service_id" = Option<String>, Query, description = "The service; `global` by default"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A serialized BatchList"),
    responses(
        (status = 202, description = "All batches are stored", body = AcceptedJson),
        (status = "4XX", description = "The request is refused", body = SawtoothErrorBody),
        (status = "5XX", description = "Try again later", body = SawtoothErrorBody),
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<IntakeContext>>,
    request: Request,
) -> Result<(StatusCode, Json<AcceptedJson>), ApiError> {
    let IntakeContext { api, checks, received, queue, verifications } = &*context;
    let (request, body) = request.into_parts();
    let body = api.bodies.read(&request.headers, body, api.options.body_limit).await?;
    batch_content_type(&request.headers).map_err(ApiError::BatchesContentType)?;
    let named_service = Query::parse(request.uri.query())?.service_id()?;
    let service_id = named_service.as_ref().unwrap_or(GlobalScopeId.service_id()).clone();
    checks.check_service(&service_id).await?;

    // Checking signatures is expensive, so what refuses the request comes before that.
    api.database.check()?;
    let slot = queue.reserve_slot()?;
    let limits = api.options.list_limits;
    let checks = Arc::clone(checks);
    let is_small = body.bytes.len() <= IntakeContext::INLINE_VERIFICATION_LIMIT;
    let verify = move || verify(&body.bytes, &limits, &service_id, &checks.allowed);
    let batches = if is_small { verify()? } else { verifications.run(verify).await? };
    let ids: Vec<HeaderId> = batches.iter().map(|batch| batch.batch_id).collect();
    received(&ids);
    let stored = store(slot, BatchList { batches, _reservation: body.reservation });
    api.database.run(ApiError::BatchesNotStored, stored).await?;

    let link = link::to_batch_statuses(&request, api.local_addr, &ids, named_service.as_ref());
    Ok((StatusCode::ACCEPTED, Json(AcceptedJson { link })))
}

async fn store(slot: WriteSlot<BatchList, ListAnswer>, list: BatchList) -> Result<(), ApiError> {
    let answer = slot.store(list).await.ok_or(ApiError::BatchesNotStored)?;
    Ok(answer?)
}

fn verify(
    body: &[u8],
    limits: &Limits,
    service_id: &ServiceId,
    allowed: &AllowLists,
) -> Result<Vec<NewBatch>, ApiError> {
    if body.is_empty() {
        return Err(ApiError::NoBatches);
    }
    let verified = verify_list(body, limits)?;
    verified.iter().try_for_each(|batch| allowed.check_signer(&batch.signer().id()))?;
    Ok(verified.into_iter().map(|batch| batch.into_new_batch(service_id.clone())).collect())
}
