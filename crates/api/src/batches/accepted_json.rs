//! The answer of `POST /v1/batches`.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{batches::submit::AcceptedBatches, state::ApiState};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedListJson {
    data: Vec<AcceptedBatchJson>,
}

#[derive(Debug, Serialize, ToSchema)]
struct AcceptedBatchJson {
    id: String,
    service_id: String,
    label: Option<String>,
    link: String,
}

impl AcceptedBatches {
    /// `202`, with a link to each batch, and the `Location` if there is one batch.
    pub(super) fn into_response(self, api: &ApiState) -> Response {
        let Self { request, ids, service_id, label, .. } = self;
        let label = label.map(|label| label.to_string());
        let links = api.links(&request);
        let data: Vec<AcceptedBatchJson> = ids
            .iter()
            .map(|id| AcceptedBatchJson {
                id: id.to_string(),
                service_id: service_id.to_string(),
                label: label.clone(),
                link: links.batch(id, "", &service_id),
            })
            .collect();
        let location = match &data[..] {
            [one] => HeaderValue::try_from(one.link.as_str()).ok(),
            _ => None,
        };
        let mut response = (StatusCode::ACCEPTED, Json(AcceptedListJson { data })).into_response();
        if let Some(location) = location {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }
}
