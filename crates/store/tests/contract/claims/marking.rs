use std::{thread, time::Duration};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::{BatchState, Outcome, RoundStore};
use grid_batch_store::ClaimOptions;

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, on_both, service, wait_until_blocked};

on_both! {
    only_what_is_claimed_is_ready_and_marked,
    a_ticket_has_the_epoch_of_the_claim,
    past_its_first_expiry_an_instance_marks_nothing,
    of_one_phase_nothing_is_marked_that_could_outlast_it,
    what_is_given_back_in_another_epoch_stays,
}

fn only_what_is_claimed_is_ready_and_marked(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    let names = ["a::1", "a::2", "a::3", "a::4"].map(service);
    one.store().add_all(&[1, 2, 3, 4].map(|n| batch(&format!("a::{n}"), n)));
    one.take_services(&names[..3]).unwrap();
    other.take_services(&names[3..]).unwrap();

    assert_eq!(one.ready_services(None, 9).unwrap(), names[..3]);
    assert_eq!(one.ready_services(Some(&names[0]), 1).unwrap(), names[1..2]);
    let mut marked = RoundStore::take_round(&one, &names).unwrap();
    marked.sort_by_key(|taken| taken.batch_id);
    assert_eq!(marked.iter().map(|taken| taken.batch_id).collect::<Vec<_>>(), [1, 2, 3].map(id));
    assert_eq!(marked[0].serialized_batch, b"the bytes of 1");
    assert!(one.ready_services(None, 9).unwrap().is_empty());
    assert_eq!(RoundStore::ready_services(&other, None, 9).unwrap(), names[3..]);
}

fn a_ticket_has_the_epoch_of_the_claim(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1)]);
    for (epoch, [owner, next]) in (1..).zip([[&one, &other], [&other, &one]]) {
        owner.take_all();
        let taken = owner.mark("a::b");
        assert_eq!((taken.epoch, u64::from(taken.attempt)), (epoch, epoch));
        RoundStore::give_back(owner, &[taken]).unwrap();
        owner.release_services(&[service("a::b")]).unwrap();
        assert!(owner.marks_nothing_of("a::b"));
        assert!(next.marks_nothing_of("a::b"));
    }
}

fn past_its_first_expiry_an_instance_marks_nothing(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    instance.take_all();
    db.let_lapse(&instance);
    assert!(instance.marks_nothing_of("a::b"));
    assert!(instance.renew().unwrap());
    assert_eq!(instance.mark("a::b").attempt, 1);
}

fn of_one_phase_nothing_is_marked_that_could_outlast_it(db: &Database) {
    let lease = Duration::from_secs(100);
    let instance = db.instance_with(ClaimOptions {
        idle_expiry: lease,
        full_expiry: lease,
        longest_submission: Duration::from_secs(60),
        ..ClaimOptions::default()
    });
    instance.store().add_all(&[batch("a::b", 1)]);
    instance.take_all();
    db.expire_in(&instance, 59, 59);
    assert!(instance.marks_nothing_of("a::b"));
    db.expire_in(&instance, 99, 99);
    assert_eq!(instance.mark("a::b").attempt, 1);
}

fn what_is_given_back_in_another_epoch_stays(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1)]);
    one.take_all();
    let taken = one.mark("a::b");
    db.let_die(&one);
    other.take_all();
    RoundStore::give_back(&one, &[taken]).unwrap();
    assert_eq!(db.state("a::b", 1), BatchState::InDoubt);
}

/// The marking is held up in the middle of its transaction by a trigger that waits for a lock of
/// ours. Meanwhile both expiries pass.
#[test]
fn a_service_does_not_change_hands_while_a_batch_of_it_is_being_marked() {
    let db = Database::postgres();
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before update on lanes for each row
             when (new.service_id = 'a::1' and new.submitted) execute function hold_up();",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();
    thread::scope(|scope| {
        let marking = scope.spawn(|| one.mark("a::1"));
        wait_until_blocked(&mut watcher, "take_round");
        db.let_die(&one);
        assert_eq!(other.take_all(), ["a::2"]);
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        let taken = marking.join().unwrap();
        // It was marked, and then lost: what becomes of it is to be found out.
        let takeover = other.take(9).unwrap();
        assert_eq!(takeover.in_doubt, [(service("a::1"), id(1))]);
        one.store().outcome(&taken, Outcome::NotSent);
    });
    assert_eq!(db.state("a::1", 1), BatchState::InDoubt);
}
