//! Oldest first for each gas admin, and no gas admin waits for another.

use std::time::{Duration, Instant};

use crate::world::{Serving, World};

fn schedule(
    serving: &Serving,
    world: &World,
    pool: usize,
    amounts: std::ops::RangeInclusive<u64>,
) -> Vec<String> {
    amounts.map(|amount| serving.schedule(&world.order(pool, amount))).collect()
}

#[test]
fn the_oldest_is_made_first_and_what_comes_meanwhile_comes_after() {
    let world = World::new(1);
    let serving = world.serve();
    let mut ids = schedule(&serving, &world, 0, 1..=5);
    serving.until(&ids[1], "withdrawn");
    ids.extend(schedule(&serving, &world, 0, 6..=10));
    serving.until_withdrawn(&ids);
    assert_eq!(world.paid(0), (1..=10).collect::<Vec<_>>());
    let nonces: Vec<u64> = world.polls(0).iter().map(|poll| poll.nonce).collect();
    assert_eq!(nonces, (0..10).collect::<Vec<_>>());
}

#[test]
fn of_one_gas_admin_one_is_under_way() {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    let serving = world.serve();
    let ids = schedule(&serving, &world, 0, 1..=3);
    serving.until(&ids[0], "pending");
    for id in &ids[1..] {
        let told = serving.withdrawal(id);
        assert_eq!(told["state"], "scheduled", "{told}");
        assert_eq!(told["transactions"], serde_json::json!([]));
    }
    world.anvil.start_mining().unwrap();
    world.anvil.mine(1).unwrap();
    serving.until_withdrawn(&ids);
}

/// How long ten withdrawals of the second pool take.
fn ten_take(serving: &Serving, world: &World, first: u64) -> Duration {
    let begun = Instant::now();
    let ids = schedule(serving, world, 1, first..=first + 9);
    serving.until_withdrawn(&ids);
    begun.elapsed()
}

#[test]
fn a_busy_and_a_stuck_pool_cost_another_nothing() {
    let world = World::new(3);
    let never = format!("{}=0.5", world.pools[0].address());
    let serving = world.serve_with(&[("--evm-pool-maximum-gas-price", &never)]);
    ten_take(&serving, &world, 1);
    let alone = ten_take(&serving, &world, 11);

    // One is stuck, the other busy.
    let stuck = schedule(&serving, &world, 0, 1..=100);
    serving.until(&stuck[0], "parked");
    let busy = schedule(&serving, &world, 2, 1..=100);
    let beside = ten_take(&serving, &world, 21);

    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    eprintln!("ten withdrawals beside 200 of others take {ratio:.2} of their time alone");
    assert_ne!(serving.withdrawal(&busy[99])["state"], "withdrawn", "the other was busy");
    assert!(ratio < 3.0, "{beside:?} beside others, {alone:?} alone");
}
