//! A process that is killed at any time loses no change that the store has acknowledged.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
};

use grid_batch_core::batches::{BatchState, Change, Event, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{BatchFilter, PageCursor};
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, Store, StoreError, StoreOptions};
use grid_batch_test_postgres::TestDatabase;

#[test]
fn acknowledged_changes_survive_a_kill_on_postgres() {
    let database = TestDatabase::create();
    check_acknowledged_changes_survive_a_kill(database.url());
}

#[test]
fn acknowledged_changes_survive_a_kill_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/k.db", dir.path().display());
    check_acknowledged_changes_survive_a_kill(&url);
}

/// Kills the process three times, at different points, with the same database.
fn check_acknowledged_changes_survive_a_kill(url: &str) {
    let mut acknowledged = BTreeMap::from([("added".to_owned(), BTreeSet::new())]);
    for lines in [40, 161, 402] {
        feed_and_kill(url, lines, &mut acknowledged);
        let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
        let states = states(&store);
        for number in &acknowledged["added"] {
            assert!(states.contains_key(number), "batch {number} was acknowledged, but is lost");
        }
        for number in acknowledged.get("committed").into_iter().flatten() {
            assert_eq!(states[number], BatchState::Committed, "{number}");
        }
        finish_all_batches(&store);
    }
    let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
    assert!(store.depths(None, 9).unwrap().is_empty());
}

fn feed_and_kill(url: &str, lines: usize, acknowledged: &mut BTreeMap<String, BTreeSet<u64>>) {
    let mut feeder =
        Command::new(env!("CARGO_BIN_EXE_feed")).arg(url).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(feeder.stdout.take().unwrap()).lines();
    let mut collect_line = |line: String| {
        let (what, number) = line.split_once(' ').unwrap();
        acknowledged.entry(what.to_owned()).or_default().insert(number.parse().unwrap());
    };
    output.by_ref().take(lines).for_each(|line| collect_line(line.unwrap()));
    feeder.kill().unwrap();
    // The lines that it printed before the kill took effect count, too.
    output.map_while(Result::ok).for_each(collect_line);
    feeder.wait().unwrap();
}

fn states(store: &Store) -> BTreeMap<u64, BatchState> {
    let mut states = BTreeMap::new();
    let mut start = None;
    loop {
        let page = store.list(&BatchFilter::default(), start.as_ref(), 100).unwrap();
        let Some(last) = page.last() else { return states };
        start = Some(PageCursor::after(last));
        states.extend(page.iter().map(|b| (number(&b.batch_id), b.progress.state)));
    }
}

fn number(id: &ItemId) -> u64 {
    u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap())
}

/// Takes the services over and commits all batches in order, as the next owner does.
fn finish_all_batches(store: &Store) {
    // When the lease of the killed process has passed its idle expiry, a new run with its name takes
    // its services.
    let options = ClaimOptions { name: Some("feeder".to_owned()), ..ClaimOptions::default() };
    let claims = loop {
        match ClaimStore::register(store.clone(), options.clone()) {
            Err(StoreError::Claims(ClaimError::NameInUse { .. })) => thread::yield_now(),
            registered => break registered.unwrap(),
        }
    };
    claims.take(3).unwrap();
    let services: Vec<ServiceId> = (0..3).map(|n| format!("feed::{n}").parse().unwrap()).collect();
    for service in &services {
        let mut order: Vec<u64> = Vec::new();
        while let Some(oldest) = store.open_batches(service, 1).unwrap().pop() {
            let record = |event| {
                store.record(&[Change::new(service.clone(), oldest.batch_id, event)]).unwrap();
            };
            if oldest.progress.state.awaits_poller() {
                let attempt = oldest.progress.attempts;
                record(Event::Evidence { attempt, evidence: Evidence::Absent });
            }
            let taken = claims.take_next(std::slice::from_ref(service)).unwrap().remove(0);
            record(Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted });
            record(Event::status(LedgerStatus::Committed));
            order.push(number(&taken.batch_id));
        }
        assert!(order.is_sorted(), "{order:?}");
    }
    claims.release().unwrap();
}
