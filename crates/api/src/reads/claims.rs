use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{InstanceId, InstanceLease, OwnedService, ServiceId};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ReadContext, service_json::InstanceJson};
use crate::http::{
    ApiError, Problems, Query,
    page_query::{after, limit},
};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimsJson {
    instances: Vec<InstanceJson>,
    data: Vec<ClaimJson>,
    next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ClaimJson {
    service_id: String,
    instance_id: Option<String>,
    epoch: u64,
}

/// `GET /v1/claims`: all instances, and a page of services with the instances that claim them.
#[utoipa::path(
    get, path = "/v1/claims", tag = "services", operation_id = "listClaims", summary = "Instances, and a page of the services that they claim",
    params(
        ("instance_id" = Option<String>, Query, description = "Claims of this instance"),
        ("limit" = Option<usize>, Query, description = "The most items of the page: 1 to 1,000, by default 100"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "The page", body = ClaimsJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    request: Request,
) -> Result<Json<ClaimsJson>, ApiError> {
    let query = Query::parse(request.uri().query())?;
    query.check_names(&["instance_id", "limit", "after"])?;
    let instance = query.text("instance_id")?.map(InstanceId::new);
    let (after, limit) = (after::<ServiceId>(&query)?, limit(&query)?);
    let services = Arc::clone(&context.batches);
    let read = move || {
        let instances = services.instances().map_err(ApiError::read_failed)?;
        let claims = services.claims(instance.as_ref(), after.as_ref(), limit + 1);
        Ok((instances, claims.map_err(ApiError::read_failed)?))
    };
    let (instances, mut claims) = context.api.reads.run(read).await?;
    let has_next = claims.len() > limit;
    claims.truncate(limit);
    let next = claims.last().filter(|_| has_next).map(|claim| claim.service_id.to_string());
    let now = context.api.clock.now();
    let instance_json = |instance: InstanceLease| InstanceJson::new(instance, now);
    let instances = instances.into_iter().map(instance_json).collect();
    Ok(Json(ClaimsJson { instances, data: claims.into_iter().map(ClaimJson::new).collect(), next }))
}

impl ClaimJson {
    fn new(claim: OwnedService) -> Self {
        let OwnedService { service_id, instance_id, epoch } = claim;
        let instance_id = instance_id.map(|instance_id| instance_id.to_string());
        Self { service_id: service_id.to_string(), instance_id, epoch }
    }
}
