//! Scabbard's interface to batches, as a Splinter node serves it: `/scabbard/CIRCUIT/SERVICE/batches` and
//! `/batch_statuses`.

mod error;
mod protocol_version;
mod status_json;
mod statuses;
mod submit;

use std::sync::Arc;

use grid_batch_core::ServiceId;
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    batches::{IntakeContext, ServiceRule, StatusContext},
    http::ApiError,
};

pub(crate) use error::ScabbardRequestError;

/// What the handlers need.
pub(crate) struct ScabbardContext {
    pub(crate) intake: Arc<IntakeContext>,
    pub(crate) statuses: Arc<StatusContext>,
    pub(crate) rule: Arc<ServiceRule>,
}

/// The service that a path names.
#[derive(Deserialize)]
struct ServicePath {
    circuit: String,
    service: String,
}

impl ScabbardContext {
    /// The id that the service of this path has here.
    fn service_id(&self, path: &ServicePath) -> Result<ServiceId, ApiError> {
        let ServicePath { circuit, service } = path;
        let id = format!("{circuit}::{service}").parse().ok();
        id.filter(|id| (self.rule)(id).is_ok()).ok_or_else(|| not_found(circuit, service))
    }
}

fn not_found(circuit: &str, service: &str) -> ApiError {
    ScabbardRequestError::NoScabbardService {
        circuit: circuit.to_owned(),
        service: service.to_owned(),
    }
    .into()
}

/// The routes of Scabbard's interface.
pub(crate) fn routes() -> OpenApiRouter<Arc<ScabbardContext>> {
    OpenApiRouter::new().routes(routes!(submit::post)).routes(routes!(statuses::get))
}
