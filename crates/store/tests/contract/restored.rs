//! Databases that went back to an earlier state.

use std::{fs, path::Path};

use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Decision, Event, IntakeStore, LedgerStatus, NewBatch, Stale,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{Evidence, LedgerQuestionStore};
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{
    ClaimError, ClaimOptions, ClaimStore, MonitorStore, OpenBatchesInDoubt, StoreError,
};

use crate::fixture::{Database, StoreExt, batch, by_program, id, on_both, service};

on_both! {
    every_open_batch_of_a_restored_database_is_in_doubt,
    batch_behind_a_restored_head_is_in_doubt_in_its_turn,
    batch_added_after_the_restore_is_normal,
    restored_batches_need_evidence_about_their_attempt,
    hold_of_a_restored_batch_names_the_restore,
    commit_that_was_proved_before_the_restore_counts,
    late_outcome_from_before_the_restore_is_stale,
    marking_twice_is_the_same,
    running_instance_is_not_disturbed,
    lost_renewal_puts_open_batches_in_doubt,
    lost_registration_puts_open_batches_in_doubt,
    database_that_lost_nothing_puts_nothing_in_doubt,
}

fn mark(db: &Database) -> OpenBatchesInDoubt {
    db.restored().mark_restored(true, &by_program()).unwrap()
}

fn is_marked(db: &Database) -> bool {
    db.number("select count(*) as number from database_state where restored_at is not null") == 1
}

/// There is one service for each open state that a head can have.
fn every_open_batch_of_a_restored_database_is_in_doubt(db: &Database) {
    let store = db.open();
    let states = ["new", "submitting", "delayed", "in-doubt", "absent", "pending", "valid"];
    let names = states.map(|state| format!("a::{state}"));
    let batches: Vec<_> = names.iter().zip(1..).map(|(name, n)| batch(name, n)).collect();
    store.add_all(&batches);
    for (name, number) in names.iter().zip(1..).skip(1) {
        store.take_one(name);
        let apply = |event| {
            let change = Change::new(service(name), id(number), event);
            assert!(matches!(store.record(&[change]).unwrap()[0], ChangeOutcome::Applied { .. }));
        };
        let outcome = |outcome| Event::Outcome { attempt: 1, outcome };
        match name.as_str() {
            "a::delayed" => apply(outcome(Outcome::Busy)),
            "a::in-doubt" => apply(outcome(Outcome::Ambiguous)),
            "a::absent" => {
                apply(outcome(Outcome::Ambiguous));
                apply(Event::Evidence { attempt: 1, evidence: Evidence::Absent });
            }
            "a::pending" => apply(outcome(Outcome::Accepted)),
            "a::valid" => {
                apply(outcome(Outcome::Accepted));
                apply(Event::status(LedgerStatus::Valid));
            }
            _ => {}
        }
    }
    let before: Vec<_> = names.iter().zip(1..).map(|(name, n)| store.one(name, n)).collect();
    let now = db.later(1);
    assert_eq!(mark(db), OpenBatchesInDoubt { batches: 7, services: 7 });
    for ((name, number), before) in names.iter().zip(1..).zip(before) {
        let after = store.one(name, number);
        assert_eq!(after.progress.state, BatchState::InDoubt, "{name}");
        assert_eq!(after.progress.attempts, before.progress.attempts, "{name}");
        assert_eq!(after.submitted_at, before.submitted_at.or(Some(now)), "{name}");
        assert!(after.last_error.unwrap().contains("restored"), "{name}");
        assert!(store.take(&[name]).is_empty(), "{name}");
    }
}

fn batch_behind_a_restored_head_is_in_doubt_in_its_turn(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    assert_eq!(mark(db), OpenBatchesInDoubt { batches: 2, services: 1 });
    store.add_all(&[batch("a::b", 3)]);
    for number in [1, 2] {
        assert_eq!(store.one("a::b", number).progress.state, BatchState::InDoubt, "batch {number}");
        let committed = Event::Evidence { attempt: 0, evidence: Evidence::Committed };
        store.record(&[Change::new(service("a::b"), id(number), committed)]).unwrap();
    }
    let last = store.one("a::b", 3);
    assert_eq!((last.progress.state, last.submitted_at), (BatchState::New, None));
    assert_eq!(store.take_one("a::b").batch_id, id(3));
}

fn batch_added_after_the_restore_is_normal(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    mark(db);
    store.add_all(&[batch("a::c", 2)]);
    assert_eq!(store.take_one("a::c").batch_id, id(2));
}

fn restored_batches_need_evidence_about_their_attempt(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::c", 2)]);
    store.take_one("a::c");
    mark(db);
    let absent = |name, number, attempt| {
        let event = Event::Evidence { attempt, evidence: Evidence::Absent };
        store.record(&[Change::new(service(name), id(number), event)]).unwrap()[0]
    };
    let wrong = [absent("a::b", 1, 1), absent("a::c", 2, 0)];
    assert!(wrong.iter().all(|outcome| matches!(outcome, ChangeOutcome::Stale(_))), "{wrong:?}");
    for (name, number, attempt) in [("a::b", 1, 0), ("a::c", 2, 1)] {
        let state = BatchState::Absent;
        let applied = ChangeOutcome::Applied { state, next_waits: false };
        assert_eq!(absent(name, number, attempt), applied);
        assert_eq!(store.take_one(name).attempt, attempt + 1);
    }
}

fn hold_of_a_restored_batch_names_the_restore(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    mark(db);
    let inconclusive = Event::Evidence { attempt: 0, evidence: Evidence::Inconclusive };
    let change = Change::new(service("a::b"), id(1), inconclusive);
    let hold = Change { hold: Some("no evidence".to_owned()), ..change };
    store.record(&[hold]).unwrap();
    let held = store.held_batches(None, 9).unwrap().remove(0).held.unwrap().reason;
    assert!(held.starts_with("no evidence; the database was restored"), "{held}");
    // An operator decides about it, although it was never tried.
    let state = BatchState::Absent;
    assert_eq!(
        store.decide(&service("a::b"), &id(1), 0, Decision::Absent).unwrap(),
        ChangeOutcome::Applied { state, next_waits: false }
    );
    assert_eq!(store.take_one("a::b").attempt, 1);
}

fn commit_that_was_proved_before_the_restore_counts(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.take_one("a::b");
    let committed = Event::Evidence { attempt: 1, evidence: Evidence::Committed };
    store.record(&[Change::new(service("a::b"), id(1), committed)]).unwrap();
    assert_eq!(mark(db).batches, 0);
    let progress = store.one("a::b", 1).progress;
    assert_eq!((progress.state, progress.commit_proven), (BatchState::Submitting, true));
    let lost = Event::OwnerLost { attempt: 1 };
    store.record(&[Change::new(service("a::b"), id(1), lost)]).unwrap();
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Committed);
}

fn late_outcome_from_before_the_restore_is_stale(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    mark(db);
    assert_eq!(db.epoch("a::b"), taken.epoch + 1_000_000);
    let late = store.outcome(&taken, Outcome::NotSent);
    assert!(matches!(late, ChangeOutcome::Stale(Stale::Epoch { .. })), "{late:?}");
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::InDoubt);
}

fn marking_twice_is_the_same(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    assert_eq!(mark(db), mark(db));
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::InDoubt);
}

fn running_instance_is_not_disturbed(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    for refused in [
        db.restored().mark_restored(false, &by_program()).map(drop),
        db.restored().mark_moved(&by_program()),
    ] {
        match refused.unwrap_err() {
            StoreError::Claims(ClaimError::InstancesRunning { instances }) => {
                assert_eq!(instances, [instance.instance()]);
            }
            StoreError::Claims(ClaimError::FileInUse { .. }) => assert!(!db.is_postgres()),
            error => panic!("{error}"),
        }
    }
    assert!(!is_marked(db));
    instance.release().unwrap();
    drop(instance);
    assert_eq!(db.restored().mark_restored(false, &by_program()).unwrap().batches, 1);
}

/// Simulates the state after `renew` if the database then loses its latest commits.
fn lost_renewal_puts_open_batches_in_doubt(db: &Database) {
    let instance = db.instance();
    let store = instance.store();
    store.add_all(&[batch("a::b", 1)]);
    for _ in 0..3 {
        assert!(instance.renew().unwrap());
    }
    assert!(!is_marked(db));
    db.execute("update instances set renewals = 2").unwrap();
    assert!(instance.renew().unwrap());
    assert!(is_marked(db));
    assert_eq!(db.state("a::b", 1), BatchState::InDoubt);
    // The instance now knows the same as the database.
    db.execute(
        "update database_state set restored_at = null, restored_seq = null, restored_reason = null",
    )
    .unwrap();
    assert!(instance.renew().unwrap());
    assert!(!is_marked(db));
}

fn lost_registration_puts_open_batches_in_doubt(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    db.execute("delete from instances; update database_state set registrations = 0").unwrap();
    assert!(!instance.renew().unwrap());
    assert!(is_marked(db));
    instance.register_again().unwrap();
    assert!(instance.renew().unwrap());
    assert_eq!(instance.take(9).unwrap().claims.len(), 1);
    assert!(instance.take_next(&[service("a::b")]).unwrap().is_empty());
    let monitor = MonitorStore::new(instance.clone(), |_: Recorded<'_>| ());
    let unresolved = monitor.get_unresolved_batches("a::b", &[id(1).to_string()]).unwrap();
    assert_eq!(unresolved[0].attempt_id.attempt, 0);
}

fn database_that_lost_nothing_puts_nothing_in_doubt(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    db.execute("delete from instances").unwrap();
    assert!(!instance.renew().unwrap());
    instance.register_again().unwrap();
    assert!(instance.renew().unwrap());
    drop(db.open());
    assert!(!is_marked(db));
    assert_eq!(db.state("a::b", 1), BatchState::New);
}

/// Simulates the record of the server after a promotion, a restored dump and a move.
#[test]
fn another_server_puts_open_batches_in_doubt() {
    for (change, state) in [
        ("timeline = timeline - 1", BatchState::InDoubt),
        ("timeline = timeline - 1, synchronous = true", BatchState::New),
        ("server = 'another'", BatchState::InDoubt),
        ("server = 'another', synchronous = true", BatchState::InDoubt),
        ("synchronous = true", BatchState::New),
    ] {
        let db = Database::postgres();
        db.open().add_all(&[batch("a::b", 1)]);
        db.execute(&format!("update database_state set {change}")).unwrap();
        drop(db.open());
        assert_eq!(db.state("a::b", 1), state, "{change}");
        assert_eq!(is_marked(&db), state == BatchState::InDoubt, "{change}");
        let record = "select timeline as number from database_state where not synchronous";
        let timeline = db.number(record);
        drop(db.open());
        assert_eq!(db.number(record), timeline, "the server is recorded");
    }
}

#[test]
fn database_that_was_moved_without_a_loss_continues() {
    let db = Database::postgres();
    db.open().add_all(&[batch("a::b", 1)]);
    db.execute("update database_state set server = 'another'").unwrap();
    db.restored().mark_moved(&by_program()).unwrap();
    assert_eq!(db.open().take_one("a::b").batch_id, id(1));
    assert!(!is_marked(&db));
}

/// A database that was replaced with a copy from before the instance continued.
fn copied_back(go_on: impl FnOnce(&ClaimStore)) -> Database {
    let db = Database::sqlite();
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    instance.take(9).unwrap();
    let copy = db.file().with_extension("copy");
    db.execute(&format!("vacuum into '{}'", copy.display())).unwrap();
    go_on(&instance);
    drop(instance);
    put_in_place(&db, &copy);
    db
}

fn put_in_place(db: &Database, copy: &Path) {
    for ending in ["db-wal", "db-shm"] {
        let _ = fs::remove_file(db.file().with_extension(ending));
    }
    fs::rename(copy, db.file()).unwrap();
}

#[test]
fn earlier_copy_of_a_file_puts_open_batches_in_doubt() {
    let take = |instance: &ClaimStore| {
        assert_eq!(instance.take_next(&[service("a::b")]).unwrap().len(), 1);
    };
    let renew = |instance: &ClaimStore| assert!(instance.renew().unwrap());
    let end = |instance: &ClaimStore| drop(instance.renew().and_then(|_| instance.release()));
    for (name, go_on) in [("take", &take as &dyn Fn(&ClaimStore)), ("renew", &renew), ("end", &end)]
    {
        let db = copied_back(|instance| go_on(instance));
        drop(db.open());
        assert!(is_marked(&db), "{name}");
        assert_eq!(db.state("a::b", 1), BatchState::InDoubt, "{name}");
    }
}

#[test]
fn copy_from_before_a_restart_puts_open_batches_in_doubt() {
    let db = Database::sqlite();
    db.open().add_all(&[batch("a::b", 1)]);
    let register =
        || ClaimStore::register(db.open().into_store(), ClaimOptions::default()).unwrap();
    let first = register();
    first.release().unwrap();
    drop(first);
    let copy = db.file().with_extension("copy");
    db.execute(&format!("vacuum into '{}'", copy.display())).unwrap();
    drop(register());
    put_in_place(&db, &copy);
    let instance = register();
    assert!(is_marked(&db));
    instance.take(9).unwrap();
    assert!(instance.take_next(&[service("a::b")]).unwrap().is_empty());
}

#[test]
fn present_copy_of_a_file_puts_nothing_in_doubt() {
    let db = copied_back(|_| {});
    drop(db.open());
    assert!(!is_marked(&db));
    assert_eq!(db.state("a::b", 1), BatchState::New);
}

#[test]
fn earlier_copy_that_lost_nothing_by_command_continues() {
    let db = copied_back(|instance| assert!(instance.renew().unwrap()));
    db.restored().mark_moved(&by_program()).unwrap();
    drop(db.open());
    assert!(!is_marked(&db));
}

#[test]
fn copy_without_the_lock_file_is_taken_as_it_is() {
    let db = copied_back(|instance| assert!(instance.renew().unwrap()));
    db.forget_lock();
    drop(db.open());
    assert!(!is_marked(&db));
}

#[test]
fn lock_file_with_another_form_does_not_stop_the_start() {
    let db = copied_back(|instance| assert!(instance.renew().unwrap()));
    fs::write(db.file().with_extension("db.lock"), "another form").unwrap();
    drop(db.open());
    assert!(!is_marked(&db));
}

#[test]
fn file_that_was_replaced_is_not_written_any_more() {
    let db = Database::sqlite();
    let instance = db.instance();
    let store = instance.store();
    store.add_all(&[batch("a::b", 1)]);
    let copy = db.file().with_extension("copy");
    db.execute(&format!("vacuum into '{}'", copy.display())).unwrap();
    put_in_place(&db, &copy);
    let lists: &[&[NewBatch]] = &[&[batch("a::b", 2)]];
    let refused = [
        store.add(lists).map(drop).unwrap_err(),
        instance.renew().map(drop).unwrap_err(),
        instance.take_next(&[service("a::b")]).map(drop).unwrap_err().into(),
    ];
    for error in refused {
        assert!(error.to_string().contains("batches.db was replaced"), "{error}");
    }
    fs::remove_file(db.file()).unwrap();
    let error = instance.renew().unwrap_err();
    assert!(error.to_string().contains("batches.db was replaced"), "{error}");
}
