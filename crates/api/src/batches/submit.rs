use std::{num::NonZero, sync::Arc, thread::available_parallelism};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::{GlobalScopeId, HeaderId, NewBatch, ScopeId, ServiceCheck, ServiceId};
use grid_batch_protocol::{Limits, verify_list};
use serde::Serialize;

use crate::{
    batches::write_queue::WriteQueue,
    http::{ApiError, Query, link, other_content_type},
    state::{ApiState, BlockingPool},
};

pub(crate) type ServiceRule = dyn Fn(&ServiceId) -> Result<(), String> + Send + Sync;

/// What `POST /batches` needs.
pub(crate) struct IntakeContext {
    api: Arc<ApiState>,
    service_rule: Arc<ServiceRule>,
    service_check: Option<Arc<dyn ServiceCheck>>,
    queue: WriteQueue,
    /// Checks signatures, one list per core.
    verifications: BlockingPool,
}

impl IntakeContext {
    pub(crate) fn new(
        api: Arc<ApiState>,
        service_rule: Arc<ServiceRule>,
        service_check: Option<Arc<dyn ServiceCheck>>,
        queue: WriteQueue,
    ) -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let verifications = BlockingPool::new(cores);
        Self { api, service_rule, service_check, queue, verifications }
    }

    async fn check_service(&self, id: &ServiceId) -> Result<(), ApiError> {
        (self.service_rule)(id)
            .map_err(|rule| ApiError::RefusedService { id: id.clone(), rule })?;
        let Some(check) = &self.service_check else { return Ok(()) };
        check.check(id).await.map_err(|reason| ApiError::UnknownService { id: id.clone(), reason })
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AcceptedJson {
    link: String,
}

/// `POST /batches`: answers `202` after the whole list is stored.
pub(crate) async fn post(
    State(context): State<Arc<IntakeContext>>,
    request: Request,
) -> Result<(StatusCode, Json<AcceptedJson>), ApiError> {
    let IntakeContext { api, queue, verifications, .. } = &*context;
    let (request, body) = request.into_parts();
    let body = api.bodies.read(&request.headers, body, api.options.body_limit).await?;
    if let Some(other) = other_content_type(&request.headers, "application/octet-stream") {
        return Err(ApiError::BatchesContentType(other));
    }
    let named_service = Query::parse(request.uri.query())?.service_id()?;
    let service_id = named_service.as_ref().unwrap_or(GlobalScopeId.service_id()).clone();
    context.check_service(&service_id).await?;

    // Checking signatures is expensive, so what refuses the request comes before that.
    api.database.check()?;
    let slot = queue.reserve_slot()?;
    let limits = api.options.list_limits;
    let batches = verifications.run(move || verify(&body.bytes, &limits, &service_id)).await?;
    let ids: Vec<HeaderId> = batches.iter().map(|batch| batch.batch_id).collect();
    let stored = slot.store(batches, body.reservation);
    api.database.run(ApiError::BatchesNotStored, stored).await?;

    let link = link::to_batch_statuses(&request, api.local_addr, &ids, named_service.as_ref());
    Ok((StatusCode::ACCEPTED, Json(AcceptedJson { link })))
}

fn verify(body: &[u8], limits: &Limits, service_id: &ServiceId) -> Result<Vec<NewBatch>, ApiError> {
    if body.is_empty() {
        return Err(ApiError::NoBatches);
    }
    let verified = verify_list(body, limits)?;
    Ok(verified.into_iter().map(|batch| batch.into_new_batch(service_id.clone())).collect())
}
