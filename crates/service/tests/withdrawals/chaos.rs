//! Everything at once, by chance: lost answers, refusals, old answers, reorganisations and kills.

use std::{thread, time::Duration};

use fastrand::Rng;
use grid_batch_test_chain::{Fault, FaultProxy};

use crate::world::{Serving, World};

const POOLS: usize = 3;
const OF_EACH: u64 = 8;
const ROUNDS: usize = 160;
const KILLS: usize = 5;

/// What the node is asked on the way of a withdrawal.
const METHODS: &[&str] = &[
    "eth_chainId",
    "eth_feeHistory",
    "eth_getCode",
    "eth_call",
    "eth_estimateGas",
    "eth_getBalance",
    "eth_getTransactionCount",
    "eth_sendRawTransaction",
    "eth_sendRawTransaction",
    "eth_getTransactionReceipt",
    "eth_getTransactionByHash",
    "eth_blockNumber",
    FaultProxy::ANY,
];

fn fault(dice: &mut Rng) -> Fault {
    match dice.u8(0..7) {
        0 => Fault::status(429),
        1 => Fault::status(503),
        2 => Fault::LostAnswer,
        3 => Fault::NotForwarded,
        4 => Fault::Slow(Duration::from_millis(dice.u64(1..50))),
        5 => Fault::Stale,
        _ => Fault::rpc_error("an internal error"),
    }
}

/// Two blocks must hold a withdrawal, so that one of them may vanish.
fn serve(world: &World) -> Serving {
    world.serve_with(&[("--evm-confirmations", "2"), ("--log", "info")])
}

/// Anvil mixes blocks up when it mines one while it replaces another: the chain then has two
/// transactions of one nonce.
fn reorganise(world: &World) {
    world.anvil.stop_mining().unwrap();
    world.anvil.reorg(1).unwrap();
    world.anvil.start_mining().unwrap();
    world.anvil.mine(1).unwrap();
}

#[test]
fn whatever_goes_wrong_each_withdrawal_is_made_once_and_in_order() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut dice = Rng::with_seed(seed);
    let world = World::new(POOLS);
    let mut serving = serve(&world);
    let mut ids = Vec::new();
    for amount in 1..=OF_EACH {
        ids.extend((0..POOLS).map(|pool| serving.schedule(&world.order(pool, amount))));
    }

    for round in 0..ROUNDS {
        match dice.u8(0..10) {
            0..6 => {
                let method = METHODS[dice.usize(..METHODS.len())];
                world.proxy.set_next(method, dice.usize(1..4), fault(&mut dice));
            }
            6..8 => world.anvil.mine(1).unwrap(),
            8 => reorganise(&world),
            _ => world.proxy.clear(),
        }
        if round % (ROUNDS / KILLS) == ROUNDS / KILLS - 1 {
            serving.program.kill();
            serving = serve(&world);
        }
        // The pace of what goes wrong: nothing is waited for.
        thread::sleep(Duration::from_millis(dice.u64(5..40)));
    }

    world.proxy.clear();
    thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let world = &world;
        scope.spawn(move || {
            while stopped
                .recv_timeout(Duration::from_millis(50))
                .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                world.anvil.mine(1).unwrap();
            }
        });
        serving.until_withdrawn(&ids);
        drop(stop);
    });
    for pool in 0..POOLS {
        let polls = world.polls(pool);
        assert_eq!(world.paid(pool), (1..=OF_EACH).collect::<Vec<_>>(), "seed {seed}: {polls:#?}");
        assert_eq!(world.nonce(pool), OF_EACH, "seed {seed}");
    }
}
