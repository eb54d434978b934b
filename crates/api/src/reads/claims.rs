use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::ServiceId;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::queries::OwnedService;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ReadContext, service_json::InstanceJson};
use crate::http::{ApiError, PageJson, PageLimit, PageStart, Params, Problems, json_types};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimsJson {
    instances: Vec<InstanceJson>,
    #[serde(flatten)]
    page: PageJson<ClaimJson>,
}

json_types! {
    struct ClaimJson(claim: OwnedService) {
        service_id: String = claim.service_id.to_string(),
        instance_id: Option<String> = claim.instance_id.map(|id| id.to_string()),
        epoch: u64 = claim.epoch,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ClaimsParams {
    /// Claims of this instance
    instance_id: Option<String>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart>,
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
    Params(ClaimsParams { instance_id, limit, after }): Params<ClaimsParams>,
) -> Result<Json<ClaimsJson>, ApiError> {
    let instance = instance_id.map(InstanceId::new);
    let after: Option<ServiceId> = after.map(PageStart::cursor).transpose()?;
    let services = Arc::clone(&context.batches);
    let read = move || {
        let instances = services.instances()?;
        let claims = services.claims(instance.as_ref(), after.as_ref(), limit.0 + 1)?;
        Ok((instances, claims))
    };
    let (instances, claims) = context.api.read(read).await?;
    let now = context.api.clock.now();
    let instances = instances.iter().map(|instance| InstanceJson::new(instance, now));
    let cursor = |last: &OwnedService| last.service_id.to_string();
    let page = PageJson::cut(claims, limit, cursor, ClaimJson::new);
    Ok(Json(ClaimsJson { instances: instances.collect(), page }))
}
