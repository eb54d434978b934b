//! The demonstration's clients: they hand batches in, in order for each service, until they are
//! taken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse};
use log::warn;

use crate::demo::{DemoError, batches::Batches};

/// So many batches are handed in by one request.
const PER_REQUEST: usize = 5;
/// So many clients there are at most.
const CLIENTS: usize = 32;

/// What the clients see.
#[derive(Debug, Default)]
pub(super) struct Fed {
    /// Batches that the service has promised to care for.
    pub(super) accepted: AtomicU64,
    /// Requests that had to be made again.
    pub(super) repeated: AtomicU64,
    /// Tells the clients to go.
    pub(super) stop: AtomicBool,
}

/// Hands in all of `total` batches. What was handed in before is handed in again: a service that
/// keeps its promises takes it as the same.
pub(super) async fn feed(
    url: String,
    batches: Arc<Batches>,
    total: usize,
    fed: Arc<Fed>,
) -> Result<(), DemoError> {
    let http = HttpClient::new(&HttpOptions::default()).map_err(DemoError::internal)?;
    let clients = CLIENTS.min(batches.services().len());
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..clients {
        let client = Client {
            http: http.clone(),
            url: url.clone(),
            batches: Arc::clone(&batches),
            fed: Arc::clone(&fed),
        };
        let services: Vec<usize> = (first..batches.services().len()).step_by(clients).collect();
        tasks.spawn(async move { client.hand_in_all(&services, total).await });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(DemoError::internal)??;
    }
    Ok(())
}

struct Client {
    http: HttpClient,
    url: String,
    batches: Arc<Batches>,
    fed: Arc<Fed>,
}

impl Client {
    async fn hand_in_all(&self, services: &[usize], total: usize) -> Result<(), DemoError> {
        let most = services.iter().map(|s| self.batches.of_service(*s, total)).max().unwrap_or(0);
        for first in (0..most).step_by(PER_REQUEST) {
            for service in services {
                let end = self.batches.of_service(*service, total).min(first + PER_REQUEST);
                if first < end {
                    self.hand_in(*service, first..end).await?;
                }
            }
        }
        Ok(())
    }

    async fn hand_in(
        &self,
        service: usize,
        numbers: std::ops::Range<usize>,
    ) -> Result<(), DemoError> {
        let count = numbers.len() as u64;
        let body = self.batches.list(service, numbers);
        let url = format!("{}/batches?service_id={}", self.url, self.batches.services()[service]);
        while !self.fed.stop.load(Relaxed) {
            let headers = [("content-type", "application/octet-stream")];
            match self.http.post(&url, &headers, body.clone()).await {
                Ok(HttpResponse { status: 202, .. }) => {
                    self.fed.accepted.fetch_add(count, Relaxed);
                    return Ok(());
                }
                Ok(answer) if answer.status != 429 && answer.status < 500 => {
                    return Err(DemoError::Refused { status: answer.status, text: answer.text() });
                }
                answer => self.wait_after(answer).await,
            }
        }
        Ok(())
    }

    /// A client that was not served tries again, until it is.
    async fn wait_after(&self, answer: Result<HttpResponse, HttpError>) {
        self.fed.repeated.fetch_add(1, Relaxed);
        let pause = match answer {
            Ok(answer) => answer.retry_after.unwrap_or_default(),
            Err(error) => {
                warn!(error:% = error; "batches are handed in again");
                Duration::ZERO
            }
        };
        tokio::time::sleep(pause.clamp(Duration::from_millis(20), Duration::from_secs(2))).await;
    }
}
