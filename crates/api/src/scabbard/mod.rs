//! Scabbard's interface to batches, as a Splinter node serves it: `/scabbard/CIRCUIT/SERVICE/batches` and
//! `/batch_statuses`.

mod protocol_version;
mod status_json;
mod statuses;
mod submit;

use std::sync::Arc;

use axum::{Router, routing};
use grid_batch_core::ServiceId;

use crate::{
    batches::{IntakeContext, ServiceRule, StatusContext},
    http::ApiError,
};

/// What the handlers need.
pub(crate) struct ScabbardContext {
    intake: Arc<IntakeContext>,
    statuses: Arc<StatusContext>,
    rule: Arc<ServiceRule>,
}

/// The circuit and the service of a path.
type ServicePath = (String, String);

impl ScabbardContext {
    /// The id that the service of this path has here.
    fn service_id(&self, (circuit, service): &ServicePath) -> Result<ServiceId, ApiError> {
        let id = format!("{circuit}::{service}").parse().ok();
        id.filter(|id| (self.rule)(id).is_ok()).ok_or_else(|| not_found(circuit, service))
    }
}

fn not_found(circuit: &str, service: &str) -> ApiError {
    ApiError::NoScabbardService { circuit: circuit.to_owned(), service: service.to_owned() }
}

pub(crate) fn routes(
    intake: Arc<IntakeContext>,
    statuses: Arc<StatusContext>,
    rule: Arc<ServiceRule>,
) -> Router {
    Router::new()
        .route("/scabbard/{circuit}/{service}/batches", routing::post(submit::post))
        .route("/scabbard/{circuit}/{service}/batch_statuses", routing::get(statuses::get))
        .with_state(Arc::new(ScabbardContext { intake, statuses, rule }))
}
