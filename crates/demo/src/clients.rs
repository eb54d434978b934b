//! The clients: they send batches, in order for each service, until they are accepted.

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use grid_batch_client::{Client, ClientError, ClientOptions};
use log::warn;

use crate::{DemoError, batches::DemoBatches};

const BATCHES_PER_REQUEST: usize = 5;
const MAXIMUM_CLIENTS: usize = 32;

/// The work that the clients have done.
#[derive(Debug, Default)]
pub(crate) struct ClientCounts {
    /// Batches that the server has accepted.
    pub(crate) accepted: AtomicU64,
    /// Makes the clients stop.
    pub(crate) stop: AtomicBool,
}

/// Sends all of `total` batches. In a continued demonstration some were sent before: the server
/// accepts the same batch again.
pub(crate) fn run_clients(
    url: &str,
    batches: &DemoBatches,
    total: usize,
    counts: &ClientCounts,
) -> Result<(), DemoError> {
    let clients = MAXIMUM_CLIENTS.min(batches.services().len());
    thread::scope(|scope| {
        let threads = Vec::from_iter((0..clients).map(|first| {
            let services = (first..batches.services().len()).step_by(clients).collect();
            scope.spawn(move || {
                let options = ClientOptions { url: url.to_owned(), ..ClientOptions::default() };
                let client = DemoClient { client: Client::new(options)?, batches, counts };
                // Without one of them, the others would send in vain.
                let stop = |_: &DemoError| counts.stop.store(true, Relaxed);
                client.send_all(services, total).inspect_err(stop)
            })
        }));
        let panicked = |_| Err(DemoError::internal("a client has panicked"));
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(panicked))
    })
}

struct DemoClient<'a> {
    client: Client,
    batches: &'a DemoBatches,
    counts: &'a ClientCounts,
}

impl DemoClient<'_> {
    fn send_all(&self, services: Vec<usize>, total: usize) -> Result<(), DemoError> {
        let counts = services.iter().map(|service| self.batches.count_for(*service, total));
        for first in (0..counts.max().unwrap_or(0)).step_by(BATCHES_PER_REQUEST) {
            // Making batches that will not be sent would take time.
            if self.counts.stop.load(Relaxed) {
                return Ok(());
            }
            for service in &services {
                let count = self.batches.count_for(*service, total);
                let end = count.min(first + BATCHES_PER_REQUEST);
                if first < end {
                    self.send(*service, first..end)?;
                }
            }
        }
        Ok(())
    }

    fn send(&self, service: usize, numbers: Range<usize>) -> Result<(), DemoError> {
        let count = numbers.len() as u64;
        let list = self.batches.list(service, numbers);
        let service = self.batches.services()[service].as_str();
        while !self.counts.stop.load(Relaxed) {
            let pause = match self.client.submit(&list, Some(service), None, false) {
                Ok(_) => {
                    self.counts.accepted.fetch_add(count, Relaxed);
                    return Ok(());
                }
                Err(ClientError::Busy { retry_after, .. }) => retry_after.unwrap_or_default(),
                Err(
                    error @ (ClientError::Unreachable { .. }
                    | ClientError::Refused { status: 500.., .. }),
                ) => {
                    warn!(error:% = error; "cannot send batches; retrying");
                    Duration::ZERO
                }
                Err(error) => return Err(error.into()),
            };
            thread::sleep(pause.clamp(Duration::from_millis(20), Duration::from_secs(2)));
        }
        Ok(())
    }
}
