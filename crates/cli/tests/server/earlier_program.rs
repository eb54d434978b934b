//! The program of the release that was recorded last, and this one, take turns with a database under load.

use std::{
    env, fs,
    net::SocketAddr,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use grid_batch_core::batches::BatchState;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, signed_batch},
    instance::{Instance, InstanceSlot},
    wait::{wait_for, wait_until},
};

use crate::{
    harness::{BatchHarness, count_in_state, submit_list, unused_address},
    upgrades::Database,
};

const CLIENTS: usize = 3;

/// The batches that the ledger applies in each turn at least.
const BATCHES_A_TURN: usize = 40;

/// The same command, with the program of the earlier release.
fn earlier(command: &Command) -> Command {
    let program = env::var_os("GRID_BATCH_TEST_CHAOS_UPGRADE_FROM").expect(
        "set GRID_BATCH_TEST_CHAOS_UPGRADE_FROM to the program of an earlier release, as `scripts/test --upgrade` does",
    );
    let mut other = Command::new(program);
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    other.args(command.get_args()).env_clear().envs(variables);
    other
}

/// Posts batches until it is told to end, whichever program listens.
fn submit_until(
    is_over: &AtomicBool,
    address: SocketAddr,
    numbers: &AtomicUsize,
) -> Vec<SignedBatch> {
    let mut accepted = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let batch = signed_batch("global", numbers.fetch_add(1, Ordering::Relaxed));
        submit_list(address, std::slice::from_ref(&batch));
        accepted.push(batch);
    }
    accepted
}

/// Starts a server, again until it gets the claims of its predecessor, and waits until the ledger has applied enough
/// batches.
fn take_turn(harness: &BatchHarness, command: impl Fn() -> Command) -> Instance {
    let before = harness.ledger.record().len();
    let log = harness.path().join("server.log");
    let slot = InstanceSlot { name: "server".to_owned(), log: log.clone() };
    let instance = wait_for("a server starts", || slot.start(command()));
    wait_until("the server has sent batches", || {
        harness.ledger.record().len() >= before + BATCHES_A_TURN
    });
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    instance
}

/// Forward after a stop and after a kill, and back by the rules of the manual.
fn assert_programs_take_turns(kind: &str) {
    let harness = BatchHarness::sawtooth().with_default_settings();
    let database = Database::create(kind, harness.path());
    let harness = harness.with_database(&database.url());
    let address = unused_address();
    let listen = address.to_string();
    let flags =
        [("--listen", listen.as_str()), ("--claims-name", "test"), ("--claims-idle-expiry", "3s")];
    let this = || harness.command(&flags);
    let (is_over, numbers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (last, accepted) = thread::scope(|scope| {
        let client = || scope.spawn(|| submit_until(&is_over, address, &numbers));
        let clients: Vec<_> = (0..CLIENTS).map(|_| client()).collect();
        let server = take_turn(&harness, || earlier(&this()));
        let known = database.known();
        assert!(server.stop().unwrap().success());
        take_turn(&harness, this).kill();
        database.roll_back(kind, &known);
        take_turn(&harness, || earlier(&this())).kill();
        let last = take_turn(&harness, this);
        is_over.store(true, Ordering::Relaxed);
        let accepted = clients.into_iter().flat_map(|it| it.join().unwrap());
        (last, accepted.collect::<Vec<_>>())
    });
    let store = harness.store();
    wait_until("all batches are committed", || {
        count_in_state(&store, BatchState::Committed) == accepted.len()
    });
    assert!(last.stop().unwrap().success());
    println!("{kind}: {} batches", accepted.len());
    let audit = harness.ledger.audit(&batch_ids(&accepted));
    assert_eq!(audit.applied, accepted.len(), "{audit:?}");
    assert_eq!(harness.ledger.record().len(), accepted.len(), "{audit:?}");
}

#[test]
fn programs_take_turns_with_sqlite() {
    assert_programs_take_turns("sqlite");
}

#[test]
fn programs_take_turns_with_postgres() {
    assert_programs_take_turns("postgres");
}
