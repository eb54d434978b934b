//! How many requests were answered, and how long that took.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode},
    response::Response,
};
use grid_batch_support::Histogram;

use super::text::{MetricsText, number};

/// Counts requests by route, method and status. Counting takes no lock.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    /// Filled from the front.
    routes: Box<[OnceLock<RouteMetrics>]>,
}

#[derive(Debug)]
struct RouteMetrics {
    route: Box<str>,
    method: &'static str,
    durations: Histogram,
    /// The number of answers with each status, from 100.
    by_status: Box<[AtomicU64]>,
}

/// The name of all paths that no route has.
const NO_ROUTE: &str = "other";

impl RequestMetrics {
    /// More than the interface has routes with all their methods.
    const MOST_ROUTES: usize = 256;

    pub(crate) fn new() -> Self {
        Self { routes: (0..Self::MOST_ROUTES).map(|_| OnceLock::new()).collect() }
    }

    fn count(&self, route: &str, method: &Method, status: StatusCode, started: Instant) {
        let method = known_method(method);
        let mut of_route =
            self.routes.iter().map(|slot| slot.get_or_init(|| RouteMetrics::new(route, method)));
        let found = of_route.find(|it| &*it.route == route && it.method == method);
        let Some(found) = found else { return };
        found.durations.observe(started.elapsed());
        if let Some(count) = found.by_status.get(usize::from(status.as_u16()).wrapping_sub(100)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Writes the metrics.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let routes = || self.routes.iter().map_while(OnceLock::get);
        let mut requests = text.counters(
            "grid_batch_http_requests_total",
            "HTTP requests that were answered, by route, method and status.",
        );
        for it in routes() {
            for (status, count) in (100_u16..).zip(it.by_status.iter()) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let status = status.to_string();
                    let labels =
                        [("route", &*it.route), ("method", it.method), ("status", status.as_str())];
                    requests.sample(&labels, number(count));
                }
            }
        }
        let mut durations = text.histograms(
            "grid_batch_http_request_duration_seconds",
            "From the header of an HTTP request to its answer, by route and method.",
        );
        for it in routes() {
            let labels = [("route", &*it.route), ("method", it.method)];
            durations.histogram(&labels, &it.durations.read());
        }
    }
}

impl RouteMetrics {
    fn new(route: &str, method: &'static str) -> Self {
        let by_status = (100..600).map(|_| AtomicU64::new(0)).collect();
        Self { route: route.into(), method, durations: Histogram::default(), by_status }
    }
}

/// A client can send any method, so the others are one.
fn known_method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(NO_ROUTE)
}

/// Counts a request when it is answered.
pub(crate) async fn count_requests<R: Future<Output = Response>>(
    metrics: &RequestMetrics,
    request: Request,
    next: impl FnOnce(Request) -> R,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next(request).await;
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    metrics.count(route, &method, response.status(), started);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricsFormat;

    #[test]
    fn requests_are_counted_by_route_method_and_status() {
        let metrics = RequestMetrics::new();
        for (route, method, status) in [
            ("/batches", Method::POST, StatusCode::ACCEPTED),
            ("/health", Method::GET, StatusCode::OK),
            ("/batches", Method::POST, StatusCode::ACCEPTED),
            ("/batches", Method::POST, StatusCode::BAD_REQUEST),
        ] {
            metrics.count(route, &method, status, Instant::now());
        }
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        metrics.write(&mut text);
        let text = text.finish();
        for line in [
            "requests_total{route=\"/batches\",method=\"POST\",status=\"202\"} 2\n",
            "requests_total{route=\"/batches\",method=\"POST\",status=\"400\"} 1\n",
            "requests_total{route=\"/health\",method=\"GET\",status=\"200\"} 1\n",
            "duration_seconds_count{route=\"/batches\",method=\"POST\"} 3\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn number_of_series_is_limited() {
        let metrics = RequestMetrics::new();
        for number in 0..2 * RequestMetrics::MOST_ROUTES {
            let route = format!("/{number}");
            metrics.count(&route, &Method::GET, StatusCode::OK, Instant::now());
        }
        assert!(metrics.routes.iter().all(|route| route.get().is_some()));
    }
}
