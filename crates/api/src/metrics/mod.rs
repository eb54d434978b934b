//! `GET /metrics`: what the server measures, for Prometheus.

mod requests;
mod text;

use std::sync::Arc;

use axum::{
    extract::State,
    http::{
        HeaderMap, HeaderName,
        header::{ACCEPT, CONTENT_TYPE},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use requests::{RequestMetrics, count_requests};
pub use text::{MetricSamples, MetricsFormat, MetricsText};

/// Writes what other parts of the server have measured. It must not block.
pub(crate) type MetricsSource = dyn Fn(&mut MetricsText) + Send + Sync;

pub(crate) const PATH: &str = "/metrics";

/// What `/metrics` reads.
pub(crate) struct MetricsContext {
    pub(crate) source: Arc<MetricsSource>,
    pub(crate) requests: Arc<RequestMetrics>,
}

pub(crate) fn routes() -> OpenApiRouter<Arc<MetricsContext>> {
    OpenApiRouter::new().routes(routes!(get))
}

impl MetricsFormat {
    /// The format that the client asks for.
    fn requested(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if accepted.any(|value| value.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// `GET /metrics`.
#[utoipa::path(
    get, path = "/metrics", tag = "health", operation_id = "getMetrics", summary = "Metrics for Prometheus",
    responses(
        (status = 200, description = "The metrics, or in the format of OpenMetrics if `Accept` names it",
            body = String, content_type = "text/plain"),
    ),
)]
async fn get(
    State(context): State<Arc<MetricsContext>>,
    headers: HeaderMap,
) -> ([(HeaderName, &'static str); 1], String) {
    let format = MetricsFormat::requested(&headers);
    let mut text = MetricsText::new(format);
    (context.source)(&mut text);
    context.requests.write(&mut text);
    ([(CONTENT_TYPE, format.content_type())], text.finish())
}
