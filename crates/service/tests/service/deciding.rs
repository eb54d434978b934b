//! What waits for a person, and how the person decides.

use grid_batch_core::{BatchState, Change, Event, Evidence, NewBatch, Outcome};
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};

use crate::{
    bench::count,
    program::{Ended, grid_batch},
};

const SERVICE: &str = "abc::d";

/// A database with one batch that is held.
struct Held {
    _dir: tempfile::TempDir,
    database: String,
    store: Store,
    id: String,
}

impl Held {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", dir.path().join("batches.db").display());
        let store = Store::open(&database.parse().unwrap(), StoreOptions::default()).unwrap();
        let id = "5a".repeat(64);
        let batch = NewBatch {
            service_id: SERVICE.parse().unwrap(),
            batch_id: id.parse().unwrap(),
            transaction_ids: vec![id.parse().unwrap()],
            serialized_batch: vec![1],
        };
        store.add(&[&[batch]]).unwrap().remove(0).unwrap();
        let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
        claims.take(1).unwrap();
        let taken = claims.take_round(&[SERVICE.parse().unwrap()]).unwrap().remove(0);
        let change = |event| Change::new(taken.service_id.clone(), taken.batch_id, event);
        let unknown = change(Event::Outcome { attempt: 1, outcome: Outcome::Ambiguous });
        let nothing = change(Event::Evidence { attempt: 1, evidence: Evidence::Inconclusive });
        let hold = Change { hold: Some("nobody knows".to_owned()), ..nothing };
        store.record(&[unknown, hold]).unwrap();
        Self { _dir: dir, database, store, id }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let database = ["--database", &self.database];
        Ended::of(grid_batch(arguments.iter().chain(&database)))
    }
}

#[test]
fn what_is_held_is_listed_with_its_reason() {
    let held = Held::new();
    let ended = held.run(&["held"]);
    assert_eq!(ended.stdout, format!("{SERVICE} {} nobody knows\n", held.id));
}

#[test]
fn a_person_decides_once() {
    for (decision, says, state) in [
        ("committed", "the batch is committed\n", BatchState::Committed),
        ("invalid", "the batch is invalid\n", BatchState::Invalid),
        ("absent", "the batch is absent\n", BatchState::Absent),
    ] {
        let held = Held::new();
        let decide = ["decide", SERVICE, &held.id, decision];
        assert_eq!(held.run(&decide).stdout, says);
        assert_eq!(count(&held.store, state), 1);
        assert_eq!(held.run(&["held"]).stdout, "");
        let again = held.run(&decide);
        assert_eq!(again.code, Some(1), "{again:?}");
        assert!(again.failure().contains("nothing changed: "), "{again:?}");
    }
}

#[test]
fn what_is_not_there_cannot_be_decided() {
    let held = Held::new();
    let other = "5b".repeat(64);
    let ended = held.run(&["decide", SERVICE, &other, "absent"]);
    assert!(ended.failure().contains("the service has no such batch"), "{ended:?}");
    assert_eq!(count(&held.store, BatchState::InDoubt), 1);
}
