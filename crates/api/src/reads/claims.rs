use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::ServiceId;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::queries::{InstanceLease, OwnedService};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ReadContext, service_json::InstanceJson};
use crate::http::{ApiError, PageLimit, PageStart, Problems, Query};

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

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ClaimsParams {
    /// Claims of this instance
    instance_id: Option<String>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[serde(default)]
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart<ServiceId>>,
}

/// `GET /v1/claims`: all instances, and a page of services with the instances that claim them.
#[utoipa::path(
    get, path = "/v1/claims", tag = "services", operation_id = "listClaims", summary = "Instances, and a page of the services that they claim",
    params(ClaimsParams),
    responses(
        (status = 200, description = "The page", body = ClaimsJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    request: Request,
) -> Result<Json<ClaimsJson>, ApiError> {
    let params: ClaimsParams = Query::parse(request.uri().query())?.params()?;
    let instance = params.instance_id.map(InstanceId::new);
    let after = params.after.map(|PageStart(service_id)| service_id);
    let PageLimit(limit) = params.limit;
    let services = Arc::clone(&context.batches);
    let read = move || {
        let instances = services.instances().map_err(ApiError::read_failed)?;
        let claims = services.claims(instance.as_ref(), after.as_ref(), limit + 1);
        Ok((instances, claims.map_err(ApiError::read_failed)?))
    };
    let (instances, mut claims) = context.api.reads.run(read).await?;
    let next = params.limit.cut(&mut claims).map(|last| last.service_id.to_string());
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
