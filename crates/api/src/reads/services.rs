use std::{collections::HashMap, sync::Arc};

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_core::queries::{ServiceOverview, ServicePause};
use grid_batch_core::{BatchResult, ServiceId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{ReadContext, service_json::ServiceJson};
use crate::{
    access::Caller,
    batches::BatchRequestError,
    http::{
        ApiError, NoParams, PageJson, PageLimit, PageStart, PathId, Problems, parse_path_id,
        read_params,
    },
};

/// Which services are paused.
pub(super) type Pauses = HashMap<ServiceId, ServicePause>;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ServicesParams {
    /// With `true`, also services without open batches
    idle: Option<bool>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart>,
}

/// `GET /v1/services`: a page of services, ordered by their ids.
#[utoipa::path(
    get, path = "/v1/services", tag = "services", operation_id = "listServices", summary = "A page of services",
    params(ServicesParams),
    responses(
        (status = 200, description = "The page", body = PageJson<ServiceJson>),
        Problems,
    ),
)]
pub(super) async fn list(
    State(context): State<Arc<ReadContext>>,
    request: Parts,
) -> Result<Json<PageJson<ServiceJson>>, ApiError> {
    let ServicesParams { idle, limit, after } = read_params(&request)?;
    let after: Option<ServiceId> = after.map(PageStart::cursor).transpose()?;
    let reading = Arc::clone(&context);
    let read = move || {
        let with_idle = idle.unwrap_or(false);
        let services = reading.batches.services(with_idle, after.as_ref(), limit.0 + 1)?;
        let pauses = reading.pauses(&services)?;
        Ok((services, pauses))
    };
    let (services, pauses) = context.api.read(read).await?;
    let links = context.api.links(&request);
    let cursor = |last: &ServiceOverview| last.service_id.to_string();
    let now = context.api.clock.now();
    let json = |service: ServiceOverview| {
        ServiceJson::new(&context, &service, pauses.get(&service.service_id), &links, now)
    };
    Ok(Json(PageJson::cut(services, limit, cursor, json)))
}

/// `GET /v1/services/{id}`.
#[utoipa::path(
    get, path = "/v1/services/{id}", tag = "services", operation_id = "getService", summary = "A service",
    params(
        ("id" = String, Path, description = "The id of the service, percent-encoded; also the name or the address of a gas admin"),
    ),
    responses(
        (status = 200, description = "The service", body = ServiceJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<ServiceJson>, ApiError> {
    let NoParams {} = read_params(&request)?;
    let service_id = context.named_service(path, &request).await?;
    let reading = Arc::clone(&context);
    let read = move || reading.service(&service_id);
    let (service, pause) = context.api.reads.run(read).await?;
    let (links, now) = (context.api.links(&request), context.api.clock.now());
    Ok(Json(ServiceJson::new(&context, &service, pause.as_ref(), &links, now)))
}

impl ReadContext {
    /// The service in the path of a request, which is percent-encoded there.
    pub(super) async fn named_service(
        &self,
        path: PathId,
        request: &Parts,
    ) -> Result<ServiceId, ApiError> {
        let service_id = self.resolve(parse_path_id(path)?).await?;
        Caller::of(request)?.check(&service_id)?;
        Ok(service_id)
    }

    /// A service, and its pause.
    pub(super) fn service(
        &self,
        service_id: &ServiceId,
    ) -> Result<(ServiceOverview, Option<ServicePause>), ApiError> {
        let service = self.batches.service(service_id).map_err(ApiError::read_failed)?;
        let service =
            service.ok_or_else(|| BatchRequestError::ServiceNotFound { id: service_id.clone() })?;
        let pauses = self.pauses(std::slice::from_ref(&service)).map_err(ApiError::read_failed);
        Ok((service, pauses?.remove(service_id)))
    }

    fn pauses(&self, services: &[ServiceOverview]) -> BatchResult<Pauses> {
        let Some(pauses) = &self.sources.pauses else { return Ok(Pauses::new()) };
        let ids: Vec<ServiceId> = services.iter().map(|it| it.service_id.clone()).collect();
        pauses(&ids)
    }
}
