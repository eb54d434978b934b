use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::OperatorTarget;
use grid_batch_core::queries::{BatchFilter, OpenStates, PageCursor, QueueDepth, ServiceCounts};

use crate::{
    fixture::{Database, StoreExt, TestStore, batch, id, on_both, service},
    pauses::pause,
};

on_both! {
    pages_are_ordered_by_service_and_complete,
    filter_selects_one_service,
    batches_are_listed_and_counted_by_state,
    one_state_of_one_service_is_listed_in_pages,
    depths_are_counted_per_service,
    services_in_trouble_are_counted,
    states_and_the_oldest_open_batch_are_measured,
    waits_of_batches_in_lanes_are_counted,
}

fn states_and_the_oldest_open_batch_are_measured(db: &Database) {
    let store = db.open();
    let counts = || -> Vec<_> {
        let states = store.open_states().unwrap().states;
        states.into_iter().map(|(state, it)| (state, it.batches)).collect()
    };
    assert_eq!(store.open_states().unwrap(), OpenStates::default());
    for (number, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        store.add_all(&[batch(name, number)]);
    }
    store.add_all(&[batch("a", 5)]);
    assert_eq!(counts(), [(BatchState::New, 4)], "the batch behind another one has no lane");
    store.outcome(&store.take_one("a"), Outcome::Ambiguous);
    store.outcome(&store.take_one("b"), Outcome::Refused);
    store.commit_next("c");
    assert_eq!(
        counts(),
        [(BatchState::New, 1), (BatchState::Delayed, 1), (BatchState::InDoubt, 1)]
    );
    let measured = store.open_states().unwrap();
    let oldest = measured.oldest.unwrap();
    assert!(measured.states.values().all(|it| it.longest <= oldest), "{measured:?}");
    assert_eq!(measured.waits, [("delayed", 1), ("evidence", 1), ("submission", 1)].into());
}

fn waits_of_batches_in_lanes_are_counted(db: &Database) {
    let store = db.open();
    for (number, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        store.add_all(&[batch(name, number)]);
    }
    let taken = store.take_one("a");
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "no evidence");
    store.outcome(&store.take_one("b"), Outcome::Parked);
    pause(&store, OperatorTarget::Service(service("c")));
    let waits = store.open_states().unwrap().waits;
    assert_eq!(waits, [("held", 1), ("parked", 1), ("paused", 1), ("submission", 1)].into());
}

fn services_in_trouble_are_counted(db: &Database) {
    let store = db.open();
    let counts =
        |open, held, failing| ServiceCounts { open, held, failing, ..ServiceCounts::default() };
    assert_eq!(store.service_counts().unwrap(), counts(0, 0, 0));
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        store.add_all(&[batch(name, number)]);
    }
    assert_eq!(store.service_counts().unwrap(), counts(3, 0, 0));
    let taken = store.take_one("a");
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "no evidence");
    store.outcome(&store.take_one("b"), Outcome::Refused);
    assert_eq!(store.service_counts().unwrap(), counts(3, 1, 1));
    store.commit_next("c");
    assert_eq!(store.service_counts().unwrap(), counts(2, 1, 1));
}

fn listed(store: &TestStore, filter: &BatchFilter, page: usize) -> Vec<ItemId> {
    let mut ids = Vec::new();
    let mut start = None;
    loop {
        let batches = store.list(filter, start.as_ref(), page).unwrap();
        let Some(last) = batches.last() else { return ids };
        start = Some(PageCursor::after(last));
        ids.extend(batches.into_iter().map(|batch| batch.batch_id));
    }
}

fn pages_are_ordered_by_service_and_complete(db: &Database) {
    let store = db.open();
    store.add_all(&[4, 2, 9].map(|number| batch("b", number)));
    store.add_all(&[7, 1].map(|number| batch("a", number)));
    store.commit_next("b");
    for page in [1, 2, 3, 100] {
        assert_eq!(listed(&store, &BatchFilter::default(), page), [7, 1, 4, 2, 9].map(id));
    }
    assert_eq!(store.count(&BatchFilter::default()).unwrap(), 5);
}

fn filter_selects_one_service(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a", 1), batch("b", 2), batch("a", 3)]);
    let filter = BatchFilter { service_id: Some(service("a")), state: None };
    assert_eq!(listed(&store, &filter, 1), [1, 3].map(id));
    assert_eq!(store.count(&filter).unwrap(), 2);
    let filter = BatchFilter { service_id: Some(service("c")), state: None };
    assert_eq!((listed(&store, &filter, 1), store.count(&filter).unwrap()), (vec![], 0));
}

fn batches_are_listed_and_counted_by_state(db: &Database) {
    let store = db.open();
    let states = BatchState::ALL;
    for (number, state) in (0..).zip(states) {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number)]);
        if state == BatchState::New {
            continue;
        }
        let taken = store.take_one(&name);
        let outcome = match state {
            BatchState::New | BatchState::Submitting => continue,
            BatchState::Delayed => Outcome::Busy,
            BatchState::InDoubt | BatchState::Absent => Outcome::Ambiguous,
            BatchState::Invalid => Outcome::Rejected,
            BatchState::Pending | BatchState::Valid | BatchState::Committed => Outcome::Accepted,
        };
        store.outcome(&taken, outcome);
        match state {
            BatchState::Valid => drop(store.status(&taken, LedgerStatus::Valid)),
            BatchState::Committed => drop(store.status(&taken, LedgerStatus::Committed)),
            BatchState::Absent => {
                let absent = grid_batch_core::batches::Event::Evidence {
                    attempt: 1,
                    evidence: grid_batch_core::evidence::Evidence::Absent,
                };
                store.record_one(crate::fixture::happened(&taken, absent));
            }
            _ => {}
        }
    }
    for (number, state) in (0..).zip(states) {
        let filter = BatchFilter { service_id: None, state: Some(state) };
        assert_eq!(listed(&store, &filter, 2), [id(number)], "{state:?}");
        assert_eq!(store.count(&filter).unwrap(), 1, "{state:?}");
        let batches = store.list(&filter, None, 9).unwrap();
        assert_eq!(batches[0].progress.state, state);
    }
}

fn one_state_of_one_service_is_listed_in_pages(db: &Database) {
    let store = db.open();
    for name in ["a", "b"] {
        store.add_all(&[1, 2, 3, 4, 5].map(|number| batch(name, number)));
        store.commit_next(name);
        store.outcome(&store.take_one(name), Outcome::Rejected);
        store.take_one(name);
    }
    let filter = |state| BatchFilter { service_id: Some(service("b")), state: Some(state) };
    for page in [1, 2, 9] {
        assert_eq!(listed(&store, &filter(BatchState::New), page), [4, 5].map(id));
        assert_eq!(listed(&store, &filter(BatchState::Submitting), page), [id(3)]);
        assert_eq!(listed(&store, &filter(BatchState::Invalid), page), [id(2)]);
        assert_eq!(listed(&store, &filter(BatchState::Committed), page), [id(1)]);
    }
    let all_new = BatchFilter { service_id: None, state: Some(BatchState::New) };
    assert_eq!(listed(&store, &all_new, 3), [4, 5, 4, 5].map(id));
    assert_eq!(store.count(&all_new).unwrap(), 4);
}

fn depths_are_counted_per_service(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3].map(|number| batch("a", number)));
    store.add_all(&[4].map(|number| batch("b", number)));
    store.add_all(&[5, 6].map(|number| batch("c", number)));
    store.commit_next("a");
    store.commit_next("b");
    let depth = |name, open| QueueDepth { service_id: service(name), open };
    assert_eq!(store.depths(None, 9).unwrap(), [depth("a", 2), depth("c", 2)]);
    assert_eq!(store.depths(Some(&service("a")), 9).unwrap(), [depth("c", 2)]);
    assert_eq!(store.depths(None, 1).unwrap(), [depth("a", 2)]);
    let one = |name| store.depth(&service(name)).unwrap();
    assert_eq!(["a", "b", "c", "never::seen"].map(one), [2, 0, 2, 0]);
}
