//! Clients that post batches in the order of each service, to any instance that answers, until they
//! are accepted.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::{Clock, SystemClock, Timestamp};
use grid_batch_ledger_sim::RandomBatches;
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{request, send_with_timeout},
};

use crate::{harness::ChaosHarness, seeded_random::SeededRandom};

/// Longer than an instance takes to start after the last fault.
const LIMIT: Duration = Duration::from_secs(40);

/// The number of clients.
pub const CLIENTS: usize = 6;

/// How many random batches are made at once. Each depends only on others of these or on earlier ones.
const RANDOM_BATCHES: usize = 40;

/// A batch that the server has accepted, and when.
pub struct Promise {
    pub batch: SignedBatch,
    pub client: usize,
    pub since: Timestamp,
}

/// Posts batches until the stop is requested.
pub fn submit(
    harness: &ChaosHarness,
    client: usize,
    random: SeededRandom,
    seed: u64,
) -> Vec<Promise> {
    if harness.is_parallel() {
        submit_random(harness, client, random, seed)
    } else {
        submit_numbered(harness, client, random)
    }
}

/// Posts random batches that the ledger executes, to the only service. All that were made are posted, so that
/// none waits for a transaction that never comes.
fn submit_random(
    harness: &ChaosHarness,
    number: usize,
    mut random: SeededRandom,
    seed: u64,
) -> Vec<Promise> {
    let seed = seed.wrapping_mul(CLIENTS as u64).wrapping_add(number as u64);
    let mut batches = RandomBatches::new(seed).with_fixed_results();
    let mut client = Client { harness, next_slot: number };
    let mut made = VecDeque::new();
    let mut promises = Vec::new();
    while !made.is_empty() || !harness.stop_faults.is_requested() {
        if made.is_empty() {
            made.extend(batches.take(RANDOM_BATCHES));
        }
        let count = if random.one_in(10) { random.number(5..25) } else { 1 };
        let list = made.drain(..count.min(made.len()));
        let list: Vec<_> = list.map(|batch| SignedBatch::new("global", batch)).collect();
        client.post_until_accepted(&list);
        let since = SystemClock.now();
        promises.extend(list.into_iter().map(|batch| Promise { batch, client: number, since }));
        harness.stop_faults.sleep(random.millis(50..300));
    }
    promises
}

/// Posts batches of every `CLIENTS`th service, starting with the service of the client's number.
/// Some requests have many batches.
fn submit_numbered(
    harness: &ChaosHarness,
    number: usize,
    mut random: SeededRandom,
) -> Vec<Promise> {
    let services: Vec<_> = harness.services.iter().skip(number).step_by(CLIENTS).collect();
    let mut client = Client { harness, next_slot: number };
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
        promises.extend(batches.into_iter().map(|batch| Promise { batch, client: number, since }));
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
        let mut last_faults = Instant::now();
        loop {
            if !self.harness.stop_faults.is_requested() {
                last_faults = Instant::now();
            }
            assert!(last_faults.elapsed() < LIMIT, "no instance accepts batches after the faults");
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
