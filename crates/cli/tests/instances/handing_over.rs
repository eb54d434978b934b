use std::time::Instant;

use crate::{
    group::{EXPIRY_1, EXPIRY_2, Group, LATENESS, measured},
    until::until,
};

const SERVICES: usize = 20;

#[test]
fn a_second_instance_takes_nothing_while_the_first_lives() {
    let group = Group::new(SERVICES);
    let first = group.start("first");
    first.hand_in(&group.batches(0));
    group.until_claimed_by("first", SERVICES);
    let before = group.claims();

    let second = group.start("second");
    second.hand_in(&group.batches(1));
    let all = [group.batches(0), group.batches(1)].concat();
    group.bench.until_all_committed(&all);
    let expiry = || group.living("second").first().map(|run| run.expiry_1);
    let since = expiry().unwrap();
    let expiry_1 = i64::try_from(EXPIRY_1.as_micros()).unwrap();
    until("the second has lived on for an expiry", || expiry() > Some(since + expiry_1));
    assert_eq!(group.claims(), before);
    first.stop();
    second.stop();
}

#[test]
fn a_graceful_stop_hands_over_within_a_second() {
    let group = Group::new(SERVICES);
    let first = group.start("first");
    first.hand_in(&group.batches(0));
    group.bench.until_all_committed(&group.batches(0));
    group.until_claimed_by("first", SERVICES);
    let second = group.start("second");
    until("the second lives", || !group.living("second").is_empty());

    first.stop();
    let took = measured("a stopped instance's services are the other's", Instant::now(), || {
        group.claimed_by("second") == SERVICES
    });
    assert!(took.as_secs() < 1, "{took:?}");
    second.hand_in(&group.batches(1));
    group.bench.until_all_committed(&[group.batches(0), group.batches(1)].concat());
    second.stop();
}

#[test]
fn what_a_killed_instance_was_not_sending_is_taken_after_the_first_expiry_and_the_rest_later() {
    let group = Group::new(SERVICES);
    let first = group.start("first");
    first.hand_in(&group.batches(0));
    group.bench.until_all_committed(&group.batches(0));
    group.until_claimed_by("first", SERVICES);
    let second = group.start("second");
    until("the second lives", || !group.living("second").is_empty());

    let batches = group.batches(1);
    let (sending, waiting) = batches.split_at(SERVICES / 4);
    group.send_into_the_void(&first, sending);
    first.program.kill();
    let killed = Instant::now();
    let took = measured("what a killed instance was not sending is the other's", killed, || {
        group.claimed_by("second") == waiting.len()
    });
    assert!(took < EXPIRY_1 + LATENESS, "{took:?}");
    let took = measured("what a killed instance was sending is the other's", killed, || {
        group.claimed_by("second") == SERVICES
    });
    assert!(EXPIRY_1 < took && took < EXPIRY_2 + LATENESS, "{took:?}");

    group.bench.ledger.thaw();
    second.hand_in(waiting);
    group.bench.until_all_committed(&[group.batches(0), group.batches(1)].concat());
    let once = |made: &_| group.bench.ledger.times_received(made) == 1;
    assert!(sending.iter().all(|made| once(&made.batch_id)), "sent again without evidence");
    second.stop();
}
