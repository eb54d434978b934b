use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State, http::StatusCode};
use grid_batch_support::Shutdown;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::metrics;

/// Returns the present health. It must not block.
pub(crate) type HealthSource = dyn Fn() -> HealthReport + Send + Sync;

/// How well a part works, from good to bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// It works.
    #[default]
    Ok,
    /// The server takes requests, and something else needs a look.
    Degraded,
    /// The server cannot do its work. `/health` answers 503.
    Unhealthy,
}

/// What `/health` shows about one part of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct HealthPart {
    /// How well it works.
    pub status: HealthStatus,
    /// Why it does not work, for a person. It has no secret; it names nodes by scheme, host and port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For how many seconds it has had this status.
    pub for_seconds: f64,
    /// Numbers about it.
    #[serde(flatten)]
    pub numbers: BTreeMap<&'static str, u64>,
}

/// What `/health` shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct HealthReport {
    status: HealthStatus,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(flatten)]
    measured: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, HealthPart>,
}

impl HealthReport {
    /// A report about these parts. The server is as healthy as the worst of them.
    pub fn new(parts: BTreeMap<&'static str, HealthPart>) -> Self {
        let status = parts.values().map(|part| part.status).max().unwrap_or_default();
        let reasons = parts.values().filter_map(|part| part.reason.clone()).collect();
        Self { status, reasons, measured: BTreeMap::new(), parts }
    }

    /// Adds measured values, with their names. They do not change the status.
    #[must_use]
    pub fn with_measured(mut self, values: impl IntoIterator<Item = (&'static str, f64)>) -> Self {
        self.measured.extend(values);
        self
    }

    /// The parts, by name.
    pub fn parts(&self) -> &BTreeMap<&'static str, HealthPart> {
        &self.parts
    }

    /// The parts on which it depends whether the server takes requests: those that are unhealthy, and whether
    /// it stops. What is degraded takes requests.
    fn readiness(mut self, stops: bool) -> Self {
        self.parts.values_mut().filter(|it| it.status == HealthStatus::Degraded).for_each(|it| {
            it.status = HealthStatus::Ok;
            it.reason = None;
        });
        let mut running = HealthPart::default();
        if stops {
            running.status = HealthStatus::Unhealthy;
            running.reason = Some("the server stops".to_owned());
        }
        self.parts.insert("running", running);
        Self::new(self.parts)
    }

    fn code(&self) -> StatusCode {
        match self.status {
            HealthStatus::Ok | HealthStatus::Degraded => StatusCode::OK,
            HealthStatus::Unhealthy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The paths that are answered from memory, also when too many other requests are in progress.
pub(crate) const PATHS: [&str; 4] = ["/health", LIVE_PATH, "/health/ready", metrics::PATH];

pub(crate) const LIVE_PATH: &str = "/health/live";

/// What the routes of the health read.
pub(crate) struct HealthContext {
    pub(crate) source: Arc<HealthSource>,
    pub(crate) shutdown: Shutdown,
}

pub(crate) fn routes() -> OpenApiRouter<Arc<HealthContext>> {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(get_live)).routes(routes!(get_ready))
}

/// `GET /health`.
#[utoipa::path(
    get, path = "/health", tag = "health", operation_id = "getHealth", summary = "The health of each part",
    responses(
        (status = 200, description = "Every part works, or needs a look", body = HealthReport),
        (status = 503, description = "A part is unhealthy", body = HealthReport),
    ),
)]
async fn get(State(context): State<Arc<HealthContext>>) -> (StatusCode, Json<HealthReport>) {
    let report = (context.source)();
    (report.code(), Json(report))
}

/// `GET /health/live`: the process answers, whatever else does not work.
#[utoipa::path(
    get, path = "/health/live", tag = "health", operation_id = "getLiveness", summary = "The process answers",
    responses((status = 200, description = "The process answers", body = HealthReport)),
)]
async fn get_live() -> Json<HealthReport> {
    Json(HealthReport::default())
}

/// `GET /health/ready`: whether the server takes requests now.
#[utoipa::path(
    get, path = "/health/ready", tag = "health", operation_id = "getReadiness",
    summary = "Whether the server takes requests",
    responses(
        (status = 200, description = "It takes requests", body = HealthReport),
        (status = 503, description = "It cannot store batches now, or it stops", body = HealthReport),
    ),
)]
async fn get_ready(State(context): State<Arc<HealthContext>>) -> (StatusCode, Json<HealthReport>) {
    let report = (context.source)().readiness(context.shutdown.is_requested());
    (report.code(), Json(report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_ready_unless_it_stops_or_a_part_is_unhealthy() {
        let report = |status| HealthReport::new([("database", part(status, Some("why")))].into());
        for (status, stops, ready) in [
            (HealthStatus::Ok, false, true),
            (HealthStatus::Degraded, false, true),
            (HealthStatus::Unhealthy, false, false),
            (HealthStatus::Ok, true, false),
        ] {
            let readiness = report(status).readiness(stops);
            assert_eq!(readiness.code() == StatusCode::OK, ready, "{readiness:?}");
        }
    }

    fn part(status: HealthStatus, reason: Option<&str>) -> HealthPart {
        HealthPart { status, reason: reason.map(ToOwned::to_owned), ..HealthPart::default() }
    }

    #[test]
    fn report_has_the_worst_status_and_all_reasons() {
        let good = part(HealthStatus::Ok, None);
        let held = part(HealthStatus::Degraded, Some("2 services are held"));
        let down = part(HealthStatus::Unhealthy, Some("the database does not answer"));
        let report =
            HealthReport::new([("claims", good.clone()), ("services", held.clone())].into());
        assert_eq!((report.status, report.code()), (HealthStatus::Degraded, StatusCode::OK));
        let report =
            HealthReport::new([("services", held), ("database", down), ("claims", good)].into());
        assert_eq!(report.code(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(report.reasons, ["the database does not answer", "2 services are held"]);
    }
}
