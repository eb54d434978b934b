//! Several instances of the program over one PostgreSQL and one ledger, while all fails that can.
//!
//! Clients hand batches in, and every 202 is a promise. Instances are killed, paused past both
//! expiries, and stopped; the database restarts, refuses, and runs out of connections; the ledger is
//! busy, breaks off, freezes, and forgets. Then all is well again, every promised batch must end, and
//! the ledger's own record is compared with what was promised, and with what the store says.
//!
//! | variable | what it says |
//! |---|---|
//! | `GRID_BATCH_TEST_TORTURE_SECONDS` | how long it lasts |
//! | `GRID_BATCH_TEST_TORTURE_SEED` | what chance decides; printed |
//! | `GRID_BATCH_TEST_TORTURE_INSTANCES` | how many instances there are |
//! | `GRID_BATCH_TEST_TORTURE_SERVICES` | how many services of Scabbard there are |
//!
//! # What the promises rest on
//!
//! - A paused instance may send when it wakes, though its services have long had another owner. On
//!   Scabbard, which applies again what it is sent again, only proof protects: the new owner never
//!   proves absence, and a person decides. This person says "absent" only when no process can send
//!   the batch any more: none stands still, and all have had the time of a whole submission, since
//!   the batch was handed out and since the last pause.
//! - A batch that is refused is refused whenever it comes. One that is refused by chance, and comes
//!   once more from an instance that paused, may be applied.
//! - What the database has answered is on its disk, restarts or not.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

#[path = "../service/batches.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod batches;
mod bench;
mod clients;
mod curfew;
mod diary;
mod dice;
mod instance;
mod parameters;
mod pauses;
mod person;
mod reckoning;
mod server;
mod settings;
mod trouble;
#[path = "../service/until.rs"]
mod until;

use std::{
    panic::resume_unwind,
    thread::{Scope, ScopedJoinHandle, scope},
};

use bench::Bench;
use clients::{CLIENTS, Promise};
use curfew::Ringer;
use dice::Dice;
use instance::Instance;
use parameters::Parameters;
use until::until;

#[test]
fn nothing_promised_is_lost_or_done_twice_on_scabbard_whatever_happens() {
    let parameters = Parameters::of_environment();
    torture(
        &Bench::scabbard(parameters.services, parameters.instances, parameters.seed),
        parameters,
    );
}

#[test]
fn nothing_promised_is_lost_or_done_twice_on_sawtooth_whatever_happens() {
    let parameters = Parameters::of_environment();
    torture(&Bench::sawtooth(parameters.instances, parameters.seed), parameters);
}

fn torture(bench: &Bench, parameters: Parameters) {
    println!("{parameters:?}, logs in {}", bench.path().display());
    let (promises, instances) = scope(|scope| {
        let _end = Ringer(&bench.everything);
        scope.spawn(|| person::decide(bench));
        let (promises, instances) = make_trouble(bench, parameters);
        reckoning::until_all_ended(&reckoning::store(bench), promises.len());
        (promises, instances)
    });
    for (place, instance) in instances.into_iter().enumerate() {
        trouble::instances::stop(bench, place, instance);
    }
    reckon(bench, &promises, parameters);
}

/// All trouble at once, for its time. Answers with what was promised, and instances that serve.
fn make_trouble(bench: &Bench, parameters: Parameters) -> (Vec<Promise>, Vec<Instance>) {
    let dice = |number| Dice::of(parameters.seed, number);
    scope(|scope| {
        let _end = Ringer(&bench.trouble);
        let instances = spawn_each(scope, bench.places.len(), |place| {
            trouble::instances::trouble(bench, place, dice(100 + place as u64))
        });
        until_one_serves(bench);
        let clients = spawn_each(scope, CLIENTS, |client| {
            clients::hand_in(bench, client, dice(200 + client as u64))
        });
        let others = [
            scope.spawn(|| trouble::database::trouble(bench, dice(1))),
            scope.spawn(|| trouble::ledger::trouble(bench, dice(2))),
        ];
        bench.trouble.sleep(parameters.time);
        bench.trouble.ring();
        others.into_iter().for_each(joined);
        let instances = instances.into_iter().map(joined).collect();
        (clients.into_iter().flat_map(joined).collect(), instances)
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

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The tables are there when the first instance serves.
fn until_one_serves(bench: &Bench) {
    let serves = || bench.addresses.lock().unwrap().iter().any(Option::is_some);
    until("an instance serves", serves);
}

fn reckon(bench: &Bench, promises: &[Promise], parameters: Parameters) {
    let promised: Vec<_> = promises
        .iter()
        .map(|Promise { made, .. }| (made.service_id.clone(), made.batch_id))
        .collect();
    let audit = bench.ledger.audit(&promised);
    let misreported = reckoning::misreported(bench, &reckoning::store(bench), promises);
    reckoning::print(bench, promises, &audit, misreported.len());
    assert!(audit.is_clean(), "{audit:?} ({parameters:?})");
    assert!(misreported.is_empty(), "{misreported:#?} ({parameters:?})");
    for (place, log) in bench.logs() {
        assert!(!log.contains("panicked"), "{} panicked ({parameters:?})", place.name);
    }
}
