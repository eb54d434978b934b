use std::time::Instant;

use crate::{
    group::{EXPIRY_1, Group, LATENESS, measured},
    instance::{Instance, Place},
    program::Ended,
    until::until_some,
};

const SERVICES: usize = 10;

/// As whatever looks after a process does: one that is refused while its earlier run may live is
/// started once more.
fn start_again(group: &Group) -> Instance {
    let place = Place { name: "again".to_owned(), log: group.bench.path().join("again.log") };
    until_some("the name is free", || place.start(group.bench.command(&Group::flags("first", &[]))))
}

#[test]
fn a_named_instance_takes_its_own_claims_back_without_waiting_for_the_second_expiry() {
    let group = Group::new(SERVICES);
    let first = group.start("first");
    first.hand_in(&group.batches(0));
    group.bench.until_all_committed(&group.batches(0));
    group.send_into_the_void(&first, &group.batches(1));
    let run_before = group.living("first").remove(0).instance_id;
    first.program.kill();
    let killed = Instant::now();

    let again = start_again(&group);
    let took = measured("a killed instance's services are its own again", killed, || {
        let claims = group.claims();
        claims
            .iter()
            .all(|claim| claim.claimant.as_ref().is_some_and(|claimant| *claimant != run_before))
    });
    assert!(took < EXPIRY_1 + LATENESS, "{took:?}");
    group.bench.ledger.thaw();
    group.bench.until_all_committed(&[group.batches(0), group.batches(1)].concat());
    assert!(again.stop().unwrap().success());
}

#[test]
fn two_instances_of_one_name_do_not_both_run() {
    let group = Group::new(SERVICES);
    let first = group.start("first");
    first.hand_in(&group.batches(0));
    group.until_claimed_by("first", SERVICES);

    let flags = Group::flags("first", &[("--log", "error")]);
    let ended = Ended::of(group.bench.command(&flags));
    let failure = ended.failure();
    assert!(failure.contains("has the name \"first\", and lives until"), "{failure}");
    assert_eq!(group.claimed_by("first"), SERVICES);
    group.bench.until_all_committed(&group.batches(0));
    first.stop();
}
