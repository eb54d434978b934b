//! The clients: they send batches, in order for each service, until they are accepted.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse};
use log::warn;

use crate::{DemoError, batches::DemoBatches};

const BATCHES_PER_REQUEST: usize = 5;
const MAXIMUM_CLIENTS: usize = 32;

/// The work that the clients have done.
#[derive(Debug, Default)]
pub(crate) struct ClientCounts {
    /// Batches that the server has accepted.
    pub(crate) accepted: AtomicU64,
    /// Requests that were repeated.
    pub(crate) repeated: AtomicU64,
    /// Makes the clients stop.
    pub(crate) stop: AtomicBool,
}

/// Sends all of `total` batches. In a continued demonstration some were sent before: the server
/// accepts the same batch again.
pub(crate) async fn run_clients(
    url: String,
    batches: Arc<DemoBatches>,
    total: usize,
    counts: Arc<ClientCounts>,
) -> Result<(), DemoError> {
    let http = HttpClient::new(&HttpOptions::default()).map_err(DemoError::internal)?;
    let clients = MAXIMUM_CLIENTS.min(batches.services().len());
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..clients {
        let client = Client {
            http: http.clone(),
            url: url.clone(),
            batches: Arc::clone(&batches),
            counts: Arc::clone(&counts),
        };
        let services: Vec<usize> = (first..batches.services().len()).step_by(clients).collect();
        tasks.spawn(async move { client.send_all(&services, total).await });
    }
    while let Some(result) = tasks.join_next().await {
        result.map_err(DemoError::internal)??;
    }
    Ok(())
}

struct Client {
    http: HttpClient,
    url: String,
    batches: Arc<DemoBatches>,
    counts: Arc<ClientCounts>,
}

impl Client {
    async fn send_all(&self, services: &[usize], total: usize) -> Result<(), DemoError> {
        let counts = services.iter().map(|service| self.batches.count_for(*service, total));
        for first in (0..counts.max().unwrap_or(0)).step_by(BATCHES_PER_REQUEST) {
            // Making batches that will not be sent would take time.
            if self.counts.stop.load(Relaxed) {
                return Ok(());
            }
            for service in services {
                let count = self.batches.count_for(*service, total);
                let end = count.min(first + BATCHES_PER_REQUEST);
                if first < end {
                    self.send(*service, first..end).await?;
                }
            }
        }
        Ok(())
    }

    async fn send(&self, service: usize, numbers: Range<usize>) -> Result<(), DemoError> {
        let count = numbers.len() as u64;
        let body = self.batches.list(service, numbers);
        let url = format!("{}/batches?service_id={}", self.url, self.batches.services()[service]);
        while !self.counts.stop.load(Relaxed) {
            let headers = [("content-type", "application/octet-stream")];
            match self.http.post(&url, &headers, body.clone()).await {
                Ok(HttpResponse { status: 202, .. }) => {
                    self.counts.accepted.fetch_add(count, Relaxed);
                    return Ok(());
                }
                Ok(answer) if answer.status != 429 && answer.status < 500 => {
                    return Err(DemoError::UnexpectedAnswer {
                        status: answer.status,
                        text: answer.text(),
                    });
                }
                answer => self.pause_after(answer).await,
            }
        }
        Ok(())
    }

    async fn pause_after(&self, answer: Result<HttpResponse, HttpError>) {
        self.counts.repeated.fetch_add(1, Relaxed);
        let pause = match answer {
            Ok(answer) => answer.retry_after.unwrap_or_default(),
            Err(error) => {
                warn!(error:% = error; "cannot send batches; retrying");
                Duration::ZERO
            }
        };
        tokio::time::sleep(pause.clamp(Duration::from_millis(20), Duration::from_secs(2))).await;
    }
}
