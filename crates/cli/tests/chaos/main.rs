//! Several server instances over one PostgreSQL and one ledger, while everything fails that can.
//!
//! Clients post batches; each answer 202 is a promise. Meanwhile instances are killed, stopped, and
//! paused past both expiries, also inside a transaction; instances of another ledger are started on
//! the same database; the database restarts, refuses connections, runs out of them, and has rows that
//! others lock; the ledger is busy, closes connections, freezes, and forgets batches, and on Sawtooth
//! a POST arrives long after its client gave up. After the run time all faults end. Then every
//! promised batch must end, the ledger's record is compared with what was promised and with what the
//! store reports, and the other ledger must have received nothing. In the strategy parallel, the ledger
//! executes random batches, of which many conflict, and its state must be that of applying them one by one.
//!
//! | variable | meaning |
//! |---|---|
//! | `GRID_BATCH_TEST_CHAOS_SECONDS` | the run time |
//! | `GRID_BATCH_TEST_CHAOS_SEED` | the seed of all random numbers; printed |
//! | `GRID_BATCH_TEST_CHAOS_INSTANCES` | the number of instances |
//! | `GRID_BATCH_TEST_CHAOS_SERVICES` | the number of Scabbard services |
//! | `GRID_BATCH_TEST_CHAOS_UPGRADE_FROM` | a program of an earlier release: each slot starts with it, and goes on with this one after the first fault that ends it |
//!
//! # Assumptions
//!
//! - An instance that was paused may send a batch when it continues, although its services have
//!   another owner by then. Scabbard applies a batch again that it receives again, so only proof
//!   protects: the new owner never proves absence, and the operator decides. The operator of this
//!   test decides "absent" only when no process can send the batch any more: no instance is paused,
//!   and the time of a whole submission has passed since the batch was taken and since the last
//!   pause.
//! - A batch that the ledger refuses is refused each time. If a batch were refused at random, an
//!   instance that continues after a pause could send it again, and it could be applied.
//! - For the same reason, in the strategy parallel the ledger gets only batches whose result does not depend on
//!   its state.
//! - A POST that arrives after its absence was accepted is applied again by Scabbard, so only Sawtooth
//!   gets such POSTs.
//! - Committed data is on the database's disk and survives its restarts.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod audit;
mod clients;
mod downtime;
mod event_log;
mod faults;
mod harness;
mod operator;
mod parameters;
mod seeded_random;
mod settings;
mod stop_signal;

use std::{
    panic::resume_unwind,
    thread::{Scope, ScopedJoinHandle, scope},
};

use grid_batch_core::queue::StrategyKind;
use grid_batch_test_support::{instance::Instance, process::Binary};

use clients::{CLIENTS, Promise};
use harness::ChaosHarness;
use parameters::Parameters;
use seeded_random::SeededRandom;
use stop_signal::RequestOnDrop;

const GRID_BATCH: Binary = Binary(env!("CARGO_BIN_EXE_grid-batch"));

#[test]
fn no_promise_is_broken_under_chaos_on_scabbard() {
    let parameters = Parameters::from_env();
    let harness =
        ChaosHarness::scabbard(parameters.services, parameters.instances, parameters.seed);
    run_chaos(&harness, parameters);
}

#[test]
fn no_promise_is_broken_under_chaos_on_sawtooth_serial() {
    run_on_sawtooth(StrategyKind::Serial);
}

#[test]
fn no_promise_is_broken_under_chaos_on_sawtooth_parallel() {
    run_on_sawtooth(StrategyKind::Parallel);
}

fn run_on_sawtooth(strategy: StrategyKind) {
    let parameters = Parameters::from_env();
    let harness = ChaosHarness::sawtooth(strategy, parameters.instances, parameters.seed);
    run_chaos(&harness, parameters);
}

fn run_chaos(harness: &ChaosHarness, parameters: Parameters) {
    println!("{parameters:?}, logs in {}", harness.path().display());
    // Before this release opens the database: an earlier one would not start any more.
    let first = (0..harness.slots.len()).map(|slot| faults::instances::start_first(harness, slot));
    let first: Vec<Instance> = first.collect();
    let (promises, instances) = scope(|scope| {
        let _end_operator = RequestOnDrop(&harness.stop_operator);
        scope.spawn(|| operator::decide_held_batches(harness));
        let (promises, instances) = run_faults(harness, parameters, first);
        audit::wait_until_all_ended(&audit::open_store(harness), promises.len());
        (promises, instances)
    });
    for (slot, instance) in instances.into_iter().enumerate() {
        faults::instances::stop(harness, slot, instance);
    }
    assert_promises_kept(harness, &promises, parameters);
}

/// Runs clients and faults for the run time. Returns what was promised, and instances that serve.
fn run_faults(
    harness: &ChaosHarness,
    parameters: Parameters,
    first: Vec<Instance>,
) -> (Vec<Promise>, Vec<Instance>) {
    let random = |stream| SeededRandom::new(parameters.seed, stream);
    scope(|scope| {
        let _end_faults = RequestOnDrop(&harness.stop_faults);
        let run = |(slot, instance)| {
            let random = random(100 + slot as u64);
            scope.spawn(move || faults::instances::run(harness, slot, random, instance))
        };
        let instances: Vec<_> = first.into_iter().enumerate().map(run).collect();
        let clients = spawn_each(scope, CLIENTS, |client| {
            clients::submit(harness, client, random(200 + client as u64), parameters.seed)
        });
        let others = [
            scope.spawn(|| faults::database::run(harness, random(1))),
            scope.spawn(|| faults::ledger::run(harness, random(2))),
            scope.spawn(|| faults::strays::run(harness, random(3))),
        ];
        harness.stop_faults.sleep(parameters.run_time);
        harness.stop_faults.request();
        others.into_iter().for_each(join);
        let instances = instances.into_iter().map(join).collect();
        (clients.into_iter().flat_map(join).collect(), instances)
    })
}

fn spawn_each<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    count: usize,
    work: impl Fn(usize) -> T + Send + Clone + 'scope,
) -> Vec<ScopedJoinHandle<'scope, T>> {
    let spawn = |number| {
        let work = work.clone();
        scope.spawn(move || work(number))
    };
    (0..count).map(spawn).collect()
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn assert_promises_kept(harness: &ChaosHarness, promises: &[Promise], parameters: Parameters) {
    let promised: Vec<_> = promises
        .iter()
        .map(|Promise { batch, .. }| (batch.service_id.clone(), batch.batch_id))
        .collect();
    let store = audit::open_store(harness);
    let misreported = audit::find_misreported(harness, &store, promises);
    if harness.is_parallel() {
        let audit = harness.ledger.audit_state(&audit::in_accepted_order(&store, promises));
        audit::print_state_summary(harness, &audit, misreported.len());
        assert!(audit.is_clean(), "{audit:#?} ({parameters:?})");
        assert!(audit.accepted == promises.len(), "{audit} ({parameters:?})");
    } else {
        let audit = harness.ledger.audit(&promised);
        audit::print_summary(harness, promises, &audit, misreported.len());
        assert!(audit.is_clean(), "{audit:?} ({parameters:?})");
    }
    assert!(misreported.is_empty(), "{misreported:#?} ({parameters:?})");
    let sent = harness.other_ledger.record();
    assert!(sent.is_empty(), "sent to another ledger: {sent:?} ({parameters:?})");
    for (slot, log) in harness.logs() {
        assert!(!log.contains("panicked"), "{} panicked ({parameters:?})", slot.name);
    }
}
