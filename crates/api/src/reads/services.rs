use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{Path, Request, State},
    http::request::Parts,
};
use grid_batch_core::ServiceId;
use grid_batch_core::queries::{ServiceOverview, ServicePause};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{ReadContext, batch_list::PageJson, service_json::ServiceJson};
use crate::{
    access::Caller,
    batches::{BatchRequestError, PathText},
    http::{ApiError, PageLimit, PageStart, Problems, Query, RequestError},
};

/// Which services are paused.
pub(super) type Pauses = HashMap<ServiceId, ServicePause>;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ServicesParams {
    /// With `true`, also services without open batches
    idle: Option<bool>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[serde(default)]
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart<ServiceId>>,
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
    request: Request,
) -> Result<Json<PageJson<ServiceJson>>, ApiError> {
    let (request, _) = request.into_parts();
    let params: ServicesParams = Query::parse(request.uri.query())?.params()?;
    let (with_idle, limit) = (params.idle.unwrap_or(false), params.limit);
    let after = params.after.map(|PageStart(service_id)| service_id);
    let reading = Arc::clone(&context);
    let read = move || {
        let services = reading.batches.services(with_idle, after.as_ref(), limit.0 + 1);
        let mut services = services.map_err(ApiError::read_failed)?;
        let next = limit.cut(&mut services).map(|last| last.service_id.to_string());
        let pauses = reading.pauses(&services)?;
        Ok((services, next, pauses))
    };
    let (services, next, pauses) = context.api.reads.run(read).await?;
    let json = |service: &ServiceOverview| {
        ServiceJson::new(&context, &request, service, pauses.get(&service.service_id))
    };
    Ok(Json(PageJson { data: services.iter().map(json).collect(), next }))
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
    path: PathText,
    request: Request,
) -> Result<Json<ServiceJson>, ApiError> {
    let (request, _) = request.into_parts();
    Query::parse(request.uri.query())?.refuse_all()?;
    let service_id = context.named_service(path, &request).await?;
    let reading = Arc::clone(&context);
    let read = move || reading.service(&service_id);
    let (service, pause) = context.api.reads.run(read).await?;
    Ok(Json(ServiceJson::new(&context, &request, &service, pause.as_ref())))
}

impl ReadContext {
    /// The service in the path of a request, which is percent-encoded there.
    pub(super) async fn named_service(
        &self,
        path: PathText,
        request: &Parts,
    ) -> Result<ServiceId, ApiError> {
        let Path(text) = path.map_err(|_| RequestError::NotFound)?;
        let service_id = self.resolve(text.parse()?).await?;
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
        let pause = self.pauses(std::slice::from_ref(&service))?.remove(service_id);
        Ok((service, pause))
    }

    fn pauses(&self, services: &[ServiceOverview]) -> Result<Pauses, ApiError> {
        let Some(pauses) = &self.pauses else { return Ok(Pauses::new()) };
        let ids: Vec<ServiceId> = services.iter().map(|it| it.service_id.clone()).collect();
        pauses(&ids).map_err(ApiError::read_failed)
    }
}
