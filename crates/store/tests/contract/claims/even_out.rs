use std::thread;

use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::{LedgerIdentity, Outcome};
use grid_batch_core::operators::{
    ActionOutcome, ActionRefusal, Operator, OperatorAction, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_core::queue::RoundStore;
use grid_batch_store::{ClaimOptions, ClaimStore};

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, on_both};

on_both! {
    without_even_out_the_first_instance_takes_all,
    instances_even_out_when_one_joins_or_leaves,
    services_with_submitted_batches_are_not_evened_out,
    expired_instances_do_not_count_for_the_share,
    draining_instance_gives_up_its_services,
    instance_that_confirmed_no_ledger_is_no_other,
    drain_is_kept_when_the_instance_registers_again,
}

fn even() -> ClaimOptions {
    ClaimOptions { fair_share: true, step: 40, ..ClaimOptions::default() }
}

fn add_services(instance: &ClaimStore, count: u64) {
    let all: Vec<_> = (0..count).map(|number| batch(&format!("s::{number}"), number)).collect();
    instance.store().add_all(&all);
}

/// Lets each instance take in turn until nothing changes. Returns how many services each claims.
fn rounds(db: &Database, instances: &[&ClaimStore]) -> Vec<usize> {
    const FEW: usize = 8;
    for _ in 0..FEW {
        for instance in instances {
            instance.take(1_000).unwrap();
        }
    }
    instances.iter().map(|instance| db.claimed_by(instance)).collect()
}

fn without_even_out_the_first_instance_takes_all(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    add_services(&one, 30);
    assert_eq!(rounds(db, &[&one, &other]), [30, 0]);
}

fn instances_even_out_when_one_joins_or_leaves(db: &Database) {
    let is_even = |counts: Vec<usize>, share: usize| {
        assert_eq!(counts.iter().sum::<usize>(), 300, "{counts:?}");
        let near = |count: &usize| count.abs_diff(share) * 10 <= share;
        assert!(counts.iter().all(near), "{counts:?}");
    };
    let one = db.instance_with(even());
    add_services(&one, 300);
    assert_eq!(rounds(db, &[&one]), [300]);

    let [two, three] = [db.instance_with(even()), db.instance_with(even())];
    is_even(rounds(db, &[&one, &two, &three]), 100);
    two.release().unwrap();
    is_even(rounds(db, &[&one, &three]), 150);
    let four = db.instance_with(even());
    is_even(rounds(db, &[&one, &three, &four]), 100);
}

fn services_with_submitted_batches_are_not_evened_out(db: &Database) {
    let one = db.instance_with(even());
    add_services(&one, 10);
    one.take_all();
    for number in 0..8 {
        let taken = one.take_batch(&format!("s::{number}"));
        if number % 2 == 0 {
            one.store().outcome(&taken, Outcome::Accepted);
        }
    }
    let two = db.instance_with(even());
    assert_eq!(rounds(db, &[&one, &two]), [8, 2]);
}

fn expired_instances_do_not_count_for_the_share(db: &Database) {
    let [one, two] = [db.instance_with(even()), db.instance_with(even())];
    add_services(&one, 40);
    assert_eq!(rounds(db, &[&one, &two]), [20, 20]);
    db.pass_idle_expiry(&one);
    assert_eq!(rounds(db, &[&two]), [40]);
}

fn act(instance: &ClaimStore, verb: OperatorVerb, of: &ClaimStore) -> ActionOutcome {
    let target = OperatorTarget::Instance(of.instance());
    let (reason, operator) = (Some("an update".to_owned()), Operator::program());
    let action = OperatorAction { verb, target, reason, operator, dry_run: false };
    instance.store().act(&action).unwrap()
}

fn draining_instance_gives_up_its_services(db: &Database) {
    let one = db.instance_with(even());
    add_services(&one, 10);
    assert_eq!(rounds(db, &[&one]), [10]);
    let busy = one.ready_services(None, 1).unwrap();
    let taken = one.take_next(&busy).unwrap().remove(0);
    let two = db.instance_with(even());
    assert!(matches!(act(&two, OperatorVerb::Drain, &one), ActionOutcome::Done(_)));
    let refused = |outcome| ActionOutcome::Refused(outcome);
    assert_eq!(act(&two, OperatorVerb::Drain, &one), refused(ActionRefusal::AlreadyDraining));
    assert_eq!(act(&one, OperatorVerb::Drain, &two), refused(ActionRefusal::LastInstance));

    assert_eq!(one.ready_services(None, 10).unwrap(), [], "it starts nothing");
    assert!(one.renew().unwrap() && one.is_draining());
    assert_eq!(rounds(db, &[&one, &two]), [1, 9], "the batch is with its submitter");
    assert_eq!(one.take_services(&busy).unwrap().claims, []);
    one.store().outcome(&taken, Outcome::Accepted);
    assert_eq!(rounds(db, &[&one, &two]), [0, 10]);

    assert!(matches!(act(&two, OperatorVerb::Resume, &one), ActionOutcome::Done(_)));
    assert!(one.renew().unwrap() && !one.is_draining());
    let counts = rounds(db, &[&one, &two]);
    assert!(counts[0] > 0 && counts.iter().sum::<usize>() == 10, "{counts:?}");
}

fn instance_that_confirmed_no_ledger_is_no_other(db: &Database) {
    let [one, two] = [db.instance(), db.instance()];
    let ledger = LedgerIdentity::new("sawtooth");
    one.confirm_ledger(&ledger).unwrap();
    let refused = ActionOutcome::Refused(ActionRefusal::LastInstance);
    assert_eq!(act(&one, OperatorVerb::Drain, &one), refused);
    two.confirm_ledger(&ledger).unwrap();
    assert!(matches!(act(&one, OperatorVerb::Drain, &one), ActionOutcome::Done(_)));
}

fn drain_is_kept_when_the_instance_registers_again(db: &Database) {
    let [one, two] = [db.instance_with(even()), db.instance_with(even())];
    add_services(&two, 10);
    assert!(matches!(act(&two, OperatorVerb::Drain, &one), ActionOutcome::Done(_)));
    // It has not renewed its lease yet.
    one.register_again().unwrap();
    let some = ["s::1".parse().unwrap()];
    assert_eq!(one.take_services(&some).unwrap().claims, []);
    assert!(one.renew().unwrap() && one.is_draining());
    assert!(matches!(act(&two, OperatorVerb::Resume, &one), ActionOutcome::Done(_)));
    one.register_again().unwrap();
    assert!(one.renew().unwrap() && !one.is_draining());
}

/// This runs on PostgreSQL, where two transactions can run at once.
#[test]
fn two_instances_drained_at_once_leave_one() {
    let db = Database::postgres();
    let [one, two] = [db.instance(), db.instance()];
    for _ in 0..20 {
        let outcomes = thread::scope(|scope| {
            [&one, &two]
                .map(|of| scope.spawn(|| act(&one, OperatorVerb::Drain, of)))
                .map(|thread| thread.join().unwrap())
        });
        let drained = |outcome: &&ActionOutcome| matches!(outcome, ActionOutcome::Done(_));
        assert_eq!(outcomes.iter().filter(drained).count(), 1, "{outcomes:?}");
        for of in [&one, &two] {
            act(&one, OperatorVerb::Resume, of);
        }
    }
}
