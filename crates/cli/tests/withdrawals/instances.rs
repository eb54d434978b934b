//! Several instances over one database: the claim is on the gas admin.

use crate::world::World;

#[test]
fn two_instances_of_which_one_is_killed_make_every_withdrawal_once_and_in_order() {
    let world = World::on_postgres(3);
    let first = world.serve_with(&[("--claims-name", "first")]);
    let second = world.serve_with(&[("--claims-name", "second"), ("--claims-share", "true")]);
    let mut ids = Vec::new();
    for amount in 1..=12 {
        for pool in 0..3 {
            let serving = if amount % 2 == 0 { &first } else { &second };
            ids.push(serving.schedule(&world.order(pool, amount)));
        }
    }
    second.until(&ids[8], "withdrawn");
    first.program.kill();
    second.until_withdrawn(&ids);
    for pool in 0..3 {
        assert_eq!(world.paid(pool), (1..=12).collect::<Vec<_>>());
        assert_eq!(world.nonce(pool), 12);
    }
}

#[test]
fn an_instance_that_was_paused_past_its_expiries_sends_nothing_new() {
    let world = World::on_postgres(1);
    let paused = world.serve_with(&[("--claims-name", "paused")]);
    let stop = world.proxy.stop_before("eth_getTransactionCount", 1);
    let ids = [1, 2].map(|amount| paused.schedule(&world.order(0, amount)));
    assert!(stop.wait(std::time::Duration::from_secs(30)));
    paused.program.signal("STOP");
    let other = world.serve_with(&[("--claims-name", "other")]);
    other.until_withdrawn(&ids);
    // Its answer comes after all, and it may not sign any more.
    stop.release();
    paused.program.signal("CONT");
    let third = other.schedule(&world.order(0, 3));
    other.until_withdrawn(&[third]);
    paused.program.signal("TERM");
    paused.program.ended();
    assert_eq!((world.paid(0), world.nonce(0)), (vec![1, 2, 3], 3));
}
