use grid_batch_core::{BatchState, Evidence, LedgerStatus, Outcome};
use grid_batch_store::ClaimOptions;

use super::fixture::{ClaimExt, sorted};
use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    what_nobody_claims_is_taken_and_its_epoch_raised,
    what_a_live_instance_claims_is_left_alone,
    past_the_first_expiry_only_that_is_taken_of_which_nothing_is_being_sent,
    past_the_second_expiry_all_is_taken_and_what_was_being_sent_is_in_doubt,
    of_one_phase_all_is_taken_at_once,
    what_is_at_the_ledger_is_taken_as_it_stands,
    a_batch_that_was_proved_committed_while_being_sent_ends_when_it_is_taken,
    a_row_that_is_gone_frees_what_was_claimed,
    no_more_is_taken_than_was_asked_for,
    all_is_taken_in_steps,
    a_lapsed_instance_takes_nothing,
    of_named_services_those_are_taken_that_nobody_works_on,
    the_row_of_a_dead_instance_goes_when_all_is_taken,
    an_idle_service_is_taken_too,
    recovery_leaves_what_others_claim_alone,
}

fn what_nobody_claims_is_taken_and_its_epoch_raised(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    let takeover = instance.take(9).unwrap();
    assert!(takeover.claims.iter().all(|claim| claim.epoch == 1));
    assert!(takeover.in_doubt.is_empty());
    assert_eq!(sorted(takeover.claims), ["a::1", "a::2"]);
    assert_eq!((db.epoch("a::1"), db.epoch("a::2")), (1, 1));
    assert!(instance.take_all().is_empty(), "what one has is not taken again");

    instance.store().add_all(&[batch("a::1", 3), batch("a::3", 4)]);
    assert_eq!(instance.take_all(), ["a::3"]);
    assert_eq!(db.epoch("a::1"), 1);
}

fn what_a_live_instance_claims_is_left_alone(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    one.mark("a::1");
    assert!(other.take_all().is_empty());
    assert!(other.take_services(&[service("a::1"), service("a::2")]).unwrap().claims.is_empty());
    assert_eq!(db.claimed_by(&one), 2);
    assert_eq!(db.epoch("a::1"), 1);
}

fn past_the_first_expiry_only_that_is_taken_of_which_nothing_is_being_sent(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3)]);
    one.take_all();
    let sent = one.mark("a::1");
    one.store().outcome(&one.mark("a::2"), Outcome::Accepted);
    db.let_lapse(&one);

    assert_eq!(other.take_all(), ["a::2", "a::3"]);
    assert!(other.take_services(&[service("a::1")]).unwrap().claims.is_empty());
    // What it was sending it still brings home.
    one.store().outcome(&sent, Outcome::Accepted);
    assert_eq!(db.state("a::1", 1), BatchState::Pending);
    assert_eq!(other.take_all(), ["a::1"]);
}

fn past_the_second_expiry_all_is_taken_and_what_was_being_sent_is_in_doubt(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::1", 2), batch("a::2", 3)]);
    one.take_all();
    one.mark("a::1");
    db.let_die(&one);

    let takeover = other.take(9).unwrap();
    assert_eq!(takeover.in_doubt, [(service("a::1"), id(1))]);
    assert_eq!(sorted(takeover.claims), ["a::1", "a::2"]);
    assert_eq!(db.state("a::1", 1), BatchState::InDoubt);
    assert!(other.marks_nothing_of("a::1"), "evidence comes first");
    let story = other.store().details(&service("a::1"), &id(1)).unwrap().unwrap();
    assert_eq!(story.failed_attempts[0].outcome, "owner lost");
}

fn of_one_phase_all_is_taken_at_once(db: &Database) {
    let lease = std::time::Duration::from_secs(300);
    let options =
        ClaimOptions { idle_expiry: lease, full_expiry: lease, ..ClaimOptions::default() };
    let [one, other] = [db.instance_with(options.clone()), db.instance_with(options)];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    one.mark("a::1");
    db.expire_in(&one, 1, 1);
    assert!(other.take_all().is_empty());
    db.expire_in(&one, -1, -1);
    assert_eq!(other.take_all(), ["a::1", "a::2"]);
}

fn what_is_at_the_ledger_is_taken_as_it_stands(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3)]);
    one.take_all();
    let [pending, absent, delayed] = ["a::1", "a::2", "a::3"].map(|name| one.mark(name));
    one.store().outcome(&pending, Outcome::Accepted);
    one.store().outcome(&absent, Outcome::Ambiguous);
    one.store().evidence(&absent, Evidence::Absent);
    one.store().outcome(&delayed, Outcome::Busy);
    db.let_die(&one);
    assert!(other.take(9).unwrap().in_doubt.is_empty());
    let states = [1, 2, 3].map(|number| db.state(&format!("a::{number}"), number));
    assert_eq!(states, [BatchState::Pending, BatchState::Absent, BatchState::Delayed]);
    assert_eq!(other.mark("a::2").attempt, 2);
}

fn a_batch_that_was_proved_committed_while_being_sent_ends_when_it_is_taken(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    one.take_all();
    let sent = one.mark("a::b");
    one.store().status(&sent, LedgerStatus::Committed);
    assert_eq!(db.state("a::b", 1), BatchState::Submitting);
    db.let_die(&one);
    let takeover = other.take(9).unwrap();
    assert!(takeover.in_doubt.is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Committed);
    assert_eq!(other.mark("a::b").batch_id, id(2));
}

fn a_row_that_is_gone_frees_what_was_claimed(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    one.mark("a::1");
    db.execute(&format!("delete from instances where instance_id = '{}'", one.instance())).unwrap();
    let takeover = other.take(9).unwrap();
    assert_eq!(takeover.in_doubt, [(service("a::1"), id(1))]);
    assert_eq!(sorted(takeover.claims), ["a::1", "a::2"]);
    assert_eq!(db.epoch("a::2"), 2);
}

fn no_more_is_taken_than_was_asked_for(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    let all: Vec<_> = (0..10).map(|number| batch(&format!("a::{number}"), number)).collect();
    one.store().add_all(&all);
    assert_eq!(one.take(3).unwrap().claims.len(), 3);
    assert!(one.take(0).unwrap().claims.is_empty());
    db.let_die(&one);
    // Of those that nobody claims, and then of those that a dead instance does.
    assert_eq!(other.take(8).unwrap().claims.len(), 8);
    assert_eq!(other.take(8).unwrap().claims.len(), 2);
    assert_eq!((db.claimed_by(&one), db.claimed_by(&other)), (0, 10));
}

fn all_is_taken_in_steps(db: &Database) {
    let options = ClaimOptions { step: 3, ..ClaimOptions::default() };
    let [one, other] = [db.instance_with(options.clone()), db.instance_with(options)];
    let all: Vec<_> = (0..10).map(|number| batch(&format!("a::{number}"), number)).collect();
    one.store().add_all(&all);
    assert_eq!(one.take_all().len(), 10);
    db.let_die(&one);
    let names: Vec<_> = all.into_iter().map(|batch| batch.service_id).collect();
    assert_eq!(other.take_services(&names[..4]).unwrap().claims.len(), 4);
    assert_eq!(other.take_all().len(), 6);
}

fn a_lapsed_instance_takes_nothing(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    db.let_lapse(&instance);
    assert!(instance.take_all().is_empty());
    assert!(instance.take_services(&[service("a::b")]).unwrap().claims.is_empty());
}

fn of_named_services_those_are_taken_that_nobody_works_on(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    db.let_lapse(&one);
    other.store().add_all(&[batch("a::3", 3), batch("a::4", 4)]);
    let named = ["a::1", "a::3", "a::3", "never::seen"].map(service);
    let takeover = other.take_services(&named).unwrap();
    assert_eq!(sorted(takeover.claims), ["a::1", "a::3"]);
    assert_eq!(other.mark("a::3").epoch, 1);
    assert_eq!(other.mark("a::1").epoch, 2);
    assert!(other.take_services(&[]).unwrap().claims.is_empty());
}

fn the_row_of_a_dead_instance_goes_when_all_is_taken(db: &Database) {
    let options = ClaimOptions { step: 2, ..ClaimOptions::default() };
    let [one, other] = [db.instance_with(options.clone()), db.instance_with(options)];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3)]);
    one.take_all();
    db.let_die(&one);
    let rows = "select count(*) as number from instances";
    other.take(2).unwrap();
    assert_eq!(db.number(rows), 2);
    other.take(9).unwrap();
    assert_eq!(db.number(rows), 1);
    assert!(!one.renew().unwrap());
}

fn an_idle_service_is_taken_too(db: &Database) {
    db.open().add_all(&[batch("a::b", 1)]);
    db.open().commit_next("a::b");
    db.let_die(db.open().worker());
    let instance = db.instance();
    assert_eq!(instance.take_all(), ["a::b"]);
}

fn recovery_leaves_what_others_claim_alone(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_services(&[service("a::1")]).unwrap();
    other.take_services(&[service("a::2")]).unwrap();
    let [_, own] = [one.mark("a::1"), other.mark("a::2")];

    let states = || [1, 2].map(|number| db.state(&format!("a::{number}"), number));
    use BatchState::{InDoubt, Submitting};
    assert_eq!(states(), [Submitting, Submitting]);
    assert_eq!(one.recover(db.now()).unwrap(), 1);
    assert_eq!(states(), [InDoubt, Submitting]);
    other.store().outcome(&own, Outcome::Accepted);
    assert_eq!(states(), [InDoubt, BatchState::Pending]);
}
