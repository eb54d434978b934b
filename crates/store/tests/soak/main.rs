//! Processes batches from intake to their end while retention removes old ones, and checks that nothing grows: neither
//! the database, its tables and indexes, nor the memory of the process.
//!
//! The ordinary run is short. `scripts/soak` passes 2,000,000 batches through each database.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod flatness;
mod retention;
mod sizes;
mod traffic;

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use grid_batch_core::{ManualClock, Timestamp};
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseClock, Store, StoreOptions};
use grid_batch_test_postgres::TestDatabase;

use flatness::expect_flat;
use retention::RetentionThread;
use sizes::{Sample, SizeReader};
use traffic::Traffic;

/// How many batches are added in one commit. The clock of the store advances by a second with each.
const GROUP: usize = 500;

/// How many samples are taken.
const SAMPLES: usize = 20;

/// How many batches a run processes.
fn batches() -> usize {
    let variable = env::var("GRID_BATCH_TEST_SOAK_BATCHES");
    variable.map_or(10_000, |text| text.parse().expect("a number"))
}

#[test]
fn nothing_grows_with_retention_on_postgres() {
    let database = TestDatabase::create();
    soak(database.url());
}

#[test]
fn nothing_grows_with_retention_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    soak(&format!("sqlite://{}/soak.db", directory.path().display()));
}

fn soak(url: &str) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000)));
    let options =
        StoreOptions { clock: DatabaseClock::simulated(clock.clone()), ..StoreOptions::default() };
    let store = Store::open(&url.parse().unwrap(), options).unwrap();
    let claims = ClaimStore::register(store.clone(), instance()).unwrap();
    let groups = batches() / GROUP;
    // A twentieth of all batches is kept.
    let age = Duration::from_secs(u64::try_from(groups.div_ceil(20)).unwrap());
    let retention = RetentionThread::start(store.clone(), age);
    let sizes = SizeReader::open(url);
    let mut traffic = Traffic::new(claims);
    let mut samples: Vec<Sample> = Vec::new();
    let started = Instant::now();
    for group in 1..=groups {
        traffic.pass_group(GROUP);
        clock.advance(Duration::from_secs(1));
        if group.is_multiple_of(groups.div_ceil(SAMPLES)) {
            retention.finish_pass();
            sizes.vacuum_small_run(batches());
            let sample = sizes.read(group * GROUP, started.elapsed());
            println!("{sample}");
            samples.push(sample);
        }
    }
    let removed = retention.stop();
    println!("{removed} batches were removed; {}", traffic.slowest_commits());
    expect_flat(&samples);
}

/// An instance whose lease never expires.
fn instance() -> ClaimOptions {
    let hours = |hours| Duration::from_hours(hours);
    ClaimOptions { idle_expiry: hours(100), full_expiry: hours(200), ..ClaimOptions::default() }
}
