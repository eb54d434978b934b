use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{
    AddOutcome, BatchState, ChangeOutcome, Decision, Event, IntakeStore, LedgerStatus, Stale,
};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    Operator, OperatorAction, OperatorStore, OperatorTarget, OperatorVerb,
};
use grid_batch_core::queue::{RoundStore, TakenBatch};
use grid_batch_core::{ItemId, ServiceId};

use crate::fixture::{
    Database, StoreExt, batch, happened, id, on_both, service, wait_until_blocked,
};

on_both! {
    readers_see_batches_of_writers_only_appended,
    concurrent_adds_of_one_batch_store_it_once,
    concurrent_rounds_take_each_batch_once,
    pause_of_all_names_what_a_round_takes_meanwhile,
    order_is_kept_under_concurrent_adds_and_rounds,
}

fn readers_see_batches_of_writers_only_appended(db: &Database) {
    const WRITERS: u64 = 4;
    const EACH: u64 = 40;
    let store = db.open();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen: Vec<ItemId> = Vec::new();
            while !done.load(Ordering::Acquire) {
                let open = store.open_batches(&service("a::b"), 1_000).unwrap();
                let now: Vec<ItemId> = open.into_iter().map(|batch| batch.batch_id).collect();
                assert!(now.starts_with(&seen), "an older batch appeared among {}", now.len());
                seen = now;
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for at in (0..EACH).step_by(2) {
                        let first = writer * EACH + at;
                        store.add_all(&[
                            batch("a::b", first),
                            batch("a::b", first + 1),
                            batch("c::d", first),
                        ]);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    let mut all: Vec<_> = store
        .open_batches(&service("a::b"), 1_000)
        .unwrap()
        .into_iter()
        .map(|b| b.batch_id)
        .collect();
    // The batches of one call are adjacent, and those of one writer in order.
    for pair in all.chunks(2) {
        assert_eq!(u64::from_be_bytes(pair[0].as_bytes()[..8].try_into().unwrap()) % 2, 0);
    }
    all.sort();
    assert_eq!(all, (0..WRITERS * EACH).map(id).collect::<Vec<_>>());
    assert_eq!(store.depth(&service("c::d")).unwrap(), WRITERS * EACH / 2);
}

fn concurrent_adds_of_one_batch_store_it_once(db: &Database) {
    let store = db.open();
    let answers: Vec<AddOutcome> = thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    store.add(&[&[batch("a::b", 1)]]).unwrap().remove(0).unwrap().remove(0)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let stored = answers.iter().filter(|answer| **answer == AddOutcome::Stored).count();
    assert_eq!(stored, 1);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
}

fn pause_of_all_names_what_a_round_takes_meanwhile(db: &Database) {
    let store = db.open();
    let names: Vec<String> = (0..40).map(|number| format!("a::s{number}")).collect();
    let services: Vec<ServiceId> = names.iter().map(|name| name.parse().unwrap()).collect();
    store.add_all(&names.iter().zip(1..).map(|(name, n)| batch(name, n)).collect::<Vec<_>>());
    store.worker_of_all();
    let act = |verb| {
        let (target, operator) = (OperatorTarget::AllServices, Operator::program());
        store.act(&OperatorAction { verb, target, reason: None, operator, dry_run: false }).unwrap()
    };
    for _ in 0..10 {
        let (named, taken) = thread::scope(|scope| {
            let taking = scope.spawn(|| {
                let of_one = services.chunks(1);
                of_one.flat_map(|one| store.worker().take_next(one).unwrap()).collect()
            });
            act(OperatorVerb::Pause);
            let named = store.being_sent(&OperatorTarget::AllServices).unwrap();
            let taken: Vec<TakenBatch> = taking.join().unwrap();
            (named, taken)
        });
        assert_eq!(named.len(), taken.len(), "nothing is taken later");
        store.worker().give_back(&taken).unwrap();
        act(OperatorVerb::Resume);
    }
}

fn concurrent_rounds_take_each_batch_once(db: &Database) {
    let store = db.open();
    let names: Vec<ServiceId> = (0..40).map(|number| service(&format!("s::{number}"))).collect();
    let all: Vec<_> = (0..).zip(&names).map(|(n, name)| batch(name.as_str(), n)).collect();
    store.add_all(&all);
    let mut taken: Vec<ItemId> = thread::scope(|scope| {
        let takers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| store.take_next(&names).unwrap())).collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).map(|t| t.batch_id).collect()
    });
    // A round skips services that another one has locked; the next round finds them.
    taken.extend(store.take_next(&names).unwrap().into_iter().map(|taken| taken.batch_id));
    taken.sort();
    assert_eq!(taken, (0..40).map(id).collect::<Vec<_>>());
}

fn order_is_kept_under_concurrent_adds_and_rounds(db: &Database) {
    const SERVICES: u64 = 5;
    const EACH: u64 = 30;
    let store = db.open();
    let names: Vec<ServiceId> = (0..SERVICES).map(|n| service(&format!("s::{n}"))).collect();
    let committed: Mutex<BTreeMap<ServiceId, Vec<ItemId>>> = Mutex::default();
    let total = (SERVICES * EACH) as usize;
    thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..EACH {
                let round: Vec<_> = (0..)
                    .zip(&names)
                    .map(|(n, name)| batch(name.as_str(), at * SERVICES + n))
                    .collect();
                store.add_all(&round);
            }
        });
        for _ in 0..3 {
            // Only PostgreSQL gets several writers. SQLite's writers wait for each other by polling, so one of them may
            // wait for as long as the others write.
            let store = if db.is_postgres() { db.open() } else { store.clone() };
            let committed = &committed;
            scope.spawn(move || {
                while committed.lock().unwrap().values().map(Vec::len).sum::<usize>() < total {
                    let ready = store.ready_services(None, 9).unwrap();
                    for taken in store.take_next(&ready).unwrap() {
                        let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
                        store.record_one(happened(&taken, accepted));
                        // No other batch of the service is under way until this one has ended.
                        let service = taken.service_id.clone();
                        committed.lock().unwrap().entry(service).or_default().push(taken.batch_id);
                        let done = store.status(&taken, LedgerStatus::Committed);
                        assert!(matches!(done, ChangeOutcome::Applied { .. }), "{done:?}");
                    }
                }
            });
        }
    });
    for (n, ids) in (0..).zip(committed.into_inner().unwrap().into_values()) {
        assert_eq!(ids, (0..EACH).map(|at| id(at * SERVICES + n)).collect::<Vec<_>>());
    }
    assert!(store.depths(None, 9).unwrap().is_empty());
}

/// The slow writer has reserved its timestamp when the fast one starts. A trigger blocks its transaction.
#[test]
fn slow_writer_keeps_its_place_in_the_order() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.commit_next("a::b");
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before insert on batch_payloads for each row
             when (new.serialized_batch = 'the bytes of 2') execute function hold_up();",
    )
    .unwrap();
    let mut watcher = watcher(&db);
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();

    thread::scope(|scope| {
        let slow = scope.spawn(|| store.add_all(&[batch("a::b", 2)]));
        wait_until_blocked(&mut watcher, "insert_payloads");
        let fast = scope.spawn(|| store.add_all(&[batch("a::b", 3)]));
        wait_until_blocked(&mut watcher, "reserve_created_at");
        assert!(store.open_batches(&service("a::b"), 9).unwrap().is_empty());
        assert!(store.take(&["a::b"]).is_empty());

        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        slow.join().unwrap();
        fast.join().unwrap();
    });
    assert_eq!([(); 2].map(|()| store.commit_next("a::b")), [id(2), id(3)]);
}

/// A batch that is added while the last one ends must become the head, whichever commits first.
#[test]
fn batch_added_while_the_last_one_ends_becomes_head() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before insert on batch_payloads for each row
             execute function hold_up();",
    )
    .unwrap();
    let mut watcher = watcher(&db);
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();

    thread::scope(|scope| {
        let adder = scope.spawn(|| store.add_all(&[batch("a::b", 2)]));
        wait_until_blocked(&mut watcher, "insert_payloads");
        let ender = scope.spawn(|| store.status(&taken, LedgerStatus::Committed));
        wait_until_blocked(&mut watcher, "lock_services");
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        adder.join().unwrap();
        ender.join().unwrap();
    });
    assert_eq!(store.commit_next("a::b"), id(2));
}

#[test]
fn decision_waits_for_a_concurrent_change() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "no evidence");

    let mut recorder = watcher(&db);
    recorder
        .batch_execute(
            "begin; select * from services for update;
             update lanes set dlt_status = 'PENDING', attempts = 2, held_at = null,
                 held_reason = null",
        )
        .unwrap();
    let decided = thread::scope(|scope| {
        let decider = scope.spawn(|| {
            store
                .decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Absent)
                .unwrap()
        });
        wait_until_blocked(&mut watcher(&db), "lock_services");
        recorder.batch_execute("commit").unwrap();
        decider.join().unwrap()
    });
    let refused = Stale::DecidedOtherAttempt { given: 1, present: 2 };
    assert_eq!(decided, ChangeOutcome::Stale(refused));
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Pending);
}

fn watcher(db: &Database) -> PgConnection {
    PgConnection::establish(&db.postgres_url()).unwrap()
}
