//! The answer of `POST /v1/batches`.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use grid_batch_core::ItemId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    batches::submit::AcceptedBatches,
    http::{Links, json_types},
    state::ApiState,
};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedListJson {
    data: Vec<AcceptedBatchJson>,
}

json_types! {
    struct AcceptedBatchJson(batch: &ItemId, accepted: &AcceptedBatches, links: &Links<'_>) {
        id: String = batch.to_string(),
        service_id: String = accepted.service_id.to_string(),
        label: Option<String> = accepted.label.as_ref().map(ToString::to_string),
        link: String = links.batch(batch, "", &accepted.service_id),
    }
}

impl AcceptedBatches {
    /// `202`, with a link to each batch, and the `Location` if there is one batch.
    pub(super) fn into_response(self, api: &ApiState) -> Response {
        let links = api.links(&self.request);
        let json = |id: &ItemId| AcceptedBatchJson::new(id, &self, &links);
        let data: Vec<AcceptedBatchJson> = self.ids.iter().map(json).collect();
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
