//! Clients that post batches in the order of each service, to any instance that answers, until they
//! are accepted.

use std::{net::SocketAddr, thread, time::Duration};

use grid_batch_core::{Clock, SystemClock, Timestamp};
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{request, send_with_timeout},
};

use crate::{harness::ChaosHarness, seeded_random::SeededRandom};

/// The number of clients.
pub const CLIENTS: usize = 6;

/// A batch that the server has accepted, and when.
pub struct Promise {
    pub batch: SignedBatch,
    pub since: Timestamp,
}

/// Posts batches of every `CLIENTS`th service, starting with the service of the client's number.
/// Some requests have many batches.
pub fn submit(harness: &ChaosHarness, client: usize, mut random: SeededRandom) -> Vec<Promise> {
    let services: Vec<_> = harness.services.iter().skip(client).step_by(CLIENTS).collect();
    let mut client = Client { harness, next_slot: client };
    let mut next_numbers = vec![0; services.len()];
    let mut promises = Vec::new();
    while !services.is_empty() && !harness.stop_faults.is_requested() {
        let count = if random.one_in(40) { random.number(5..25) } else { 1 };
        if count > 1 {
            harness.events.count("bursts of batches");
        }
        let service = random.number(0..services.len());
        let first = next_numbers[service];
        next_numbers[service] += count;
        let batches: Vec<_> = (first..next_numbers[service])
            .map(|number| signed_batch(services[service], number))
            .collect();
        client.post_until_accepted(&batches);
        let since = SystemClock.now();
        promises.extend(batches.into_iter().map(|batch| Promise { batch, since }));
        harness.stop_faults.sleep(random.millis(20..150));
    }
    promises
}

struct Client<'a> {
    harness: &'a ChaosHarness,
    next_slot: usize,
}

impl Client<'_> {
    /// A paused instance accepts a connection and does not answer.
    const TIMEOUT: Duration = Duration::from_secs(3);

    fn post_until_accepted(&mut self, batches: &[SignedBatch]) {
        let path = format!("/batches?service_id={}", batches[0].service_id);
        let headers = ["content-type: application/octet-stream"];
        let request = request("POST", &path, &headers, &encode_batch_list(batches));
        loop {
            let response = self
                .next_address()
                .map(|address| send_with_timeout(address, &request, Self::TIMEOUT));
            match response {
                Some(Ok(response)) if response.status == 202 => return,
                Some(Ok(response)) if !matches!(response.status, 429 | 503) => {
                    panic!("the batches were rejected: {response:?}")
                }
                None | Some(_) => {}
            }
            self.harness.events.count("requests repeated");
            self.next_slot += 1;
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The address of the instance that answered last, or of the next one that runs.
    fn next_address(&mut self) -> Option<SocketAddr> {
        let addresses = self.harness.addresses.lock().unwrap();
        let count = addresses.len();
        let slot = (self.next_slot..self.next_slot + count)
            .find(|slot| addresses[slot % count].is_some())?;
        self.next_slot = slot;
        addresses[slot % count]
    }
}
