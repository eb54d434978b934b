//! A process that is killed at any moment loses nothing that it was told is safe.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
};

use grid_batch_core::{
    BatchFilter, BatchState, Change, Event, Evidence, HeaderId, LedgerStatus, Outcome, PageCursor,
    ServiceId,
};
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, Store, StoreError, StoreOptions};
use grid_batch_test_postgres::TestDatabase;

#[test]
fn on_postgres_what_was_acknowledged_outlives_being_killed() {
    let database = TestDatabase::create();
    what_was_acknowledged_outlives_being_killed(database.url());
}

#[test]
fn on_sqlite_what_was_acknowledged_outlives_being_killed() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/k.db", dir.path().display());
    what_was_acknowledged_outlives_being_killed(&url);
}

/// Killed three times, at another place each time, on the same database.
fn what_was_acknowledged_outlives_being_killed(url: &str) {
    let mut said = BTreeMap::from([("added".to_owned(), BTreeSet::new())]);
    for lines in [40, 161, 402] {
        feed_and_kill(url, lines, &mut said);
        let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
        let states = states(&store);
        for number in &said["added"] {
            assert!(states.contains_key(number), "{number} was acknowledged, and is lost");
        }
        for number in said.get("committed").into_iter().flatten() {
            assert_eq!(states[number], BatchState::Committed, "{number}");
        }
        settle(&store);
    }
    let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
    assert!(store.depths(None, 9).unwrap().is_empty());
}

/// Runs the feeder until it has said so many lines, and kills it; notes whatever it said.
fn feed_and_kill(url: &str, lines: usize, said: &mut BTreeMap<String, BTreeSet<u64>>) {
    let mut feeder =
        Command::new(env!("CARGO_BIN_EXE_feed")).arg(url).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(feeder.stdout.take().unwrap()).lines();
    let mut note = |line: String| {
        let (what, number) = line.split_once(' ').unwrap();
        said.entry(what.to_owned()).or_default().insert(number.parse().unwrap());
    };
    output.by_ref().take(lines).for_each(|line| note(line.unwrap()));
    feeder.kill().unwrap();
    // What it had said before it was killed counts too.
    output.map_while(Result::ok).for_each(note);
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

fn number(id: &HeaderId) -> u64 {
    u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap())
}

/// Leads everything to its end, in order, as the next owner does.
fn settle(store: &Store) {
    // Once the idle expiry of the killed feeder is past, a new run of its name takes all it had.
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
            let taken = claims.take_round(std::slice::from_ref(service)).unwrap().remove(0);
            record(Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted });
            record(Event::status(LedgerStatus::Committed));
            order.push(number(&taken.batch_id));
        }
        assert!(order.is_sorted(), "{order:?}");
    }
    claims.release().unwrap();
}
