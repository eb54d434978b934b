//! Random faults: lost and stale answers, errors, reorganizations, and kills.

use std::{thread, time::Duration};

use fastrand::Rng;
use grid_batch_test_chain::{Fault, FaultProxy};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

const POOLS: usize = 3;
const WITHDRAWALS_PER_POOL: u64 = 20;
const ITERATIONS: usize = 160;
const KILLS: usize = 5;

/// The calls that the server makes for a withdrawal.
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

fn random_fault(random: &mut Rng) -> Fault {
    match random.u8(0..7) {
        0 => Fault::status(429),
        1 => Fault::status(503),
        2 => Fault::LostAnswer,
        3 => Fault::NotForwarded,
        4 => Fault::Slow(Duration::from_millis(random.u64(1..50))),
        5 => Fault::Stale,
        _ => Fault::rpc_error("an internal error"),
    }
}

/// How many blocks a reorganization drops at most. The pools are older.
const DEEPEST_REORG: u64 = 3;

/// A withdrawal needs one more confirmation than a reorganization drops blocks.
fn serve(harness: &WithdrawalHarness) -> WithdrawalServer {
    let confirmations = (DEEPEST_REORG + 1).to_string();
    harness.serve_with(&[("--evm-confirmations", &confirmations), ("--log", "info")])
}

/// Anvil must not mine during a reorganization: the chain would have two transactions with the same
/// nonce.
fn reorganize(harness: &WithdrawalHarness, depth: u64) {
    harness.anvil.stop_mining().unwrap();
    harness.anvil.reorg(depth).unwrap();
    harness.anvil.start_mining().unwrap();
    harness.anvil.mine(1).unwrap();
}

#[test]
fn withdrawals_are_paid_once_under_random_faults() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let harness = WithdrawalHarness::new(POOLS);
    let mut server = serve(&harness);
    let mut ids = Vec::new();
    for amount in 1..=WITHDRAWALS_PER_POOL {
        ids.extend(
            (0..POOLS).map(|pool| server.schedule(&harness.withdrawal_request(pool, amount))),
        );
    }

    for iteration in 0..ITERATIONS {
        match random.u8(0..10) {
            0..6 => {
                let method = METHODS[random.usize(..METHODS.len())];
                harness.proxy.set_next(method, random.usize(1..4), random_fault(&mut random));
            }
            6..8 => harness.anvil.mine(1).unwrap(),
            8 => reorganize(&harness, random.u64(1..=DEEPEST_REORG)),
            _ => harness.proxy.clear(),
        }
        if iteration % (ITERATIONS / KILLS) == ITERATIONS / KILLS - 1 {
            server.process.kill();
            server = serve(&harness);
        }
        // The time between faults; nothing depends on it.
        thread::sleep(Duration::from_millis(random.u64(5..40)));
    }

    harness.proxy.clear();
    thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let harness = &harness;
        scope.spawn(move || {
            while stopped
                .recv_timeout(Duration::from_millis(50))
                .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                harness.anvil.mine(1).unwrap();
            }
        });
        server.wait_until_withdrawn(&ids);
        drop(stop);
    });
    for pool in 0..POOLS {
        let polls = harness.polls(pool);
        assert_eq!(
            harness.paid(pool),
            (1..=WITHDRAWALS_PER_POOL).collect::<Vec<_>>(),
            "seed {seed}: {polls:#?}"
        );
        assert_eq!(harness.nonce(pool), WITHDRAWALS_PER_POOL, "seed {seed}");
    }
}
