//! Stops and shutdowns lose nothing.

use std::{sync::Arc, time::Duration};

use grid_batch_core::GlobalScopeId;
use grid_batch_core::ledger::Outcome;
use grid_batch_submitter::{
    BatchRunningSubmitter, RunnableSubmitter, RunningSubmitter, ShutdownHandle, SubmitterOptions,
};

use crate::support::*;

/// A submitter with 20 attempts in flight.
fn run_until_20_in_flight(
    count: usize,
    gate: &Gate,
    recorder: &Arc<Recorder>,
) -> BatchRunningSubmitter<GlobalScopeId> {
    let twenty = SubmitterOptions { concurrency: 20, ..options() };
    let running = run(builder(count, gate.sender(), recorder).with_options(twenty));
    gate.arrived.wait_until(|arrived| *arrived == 20);
    running
}

#[test]
fn stop_delivers_all_outcomes_in_flight() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let mut running = run_until_20_in_flight(100, &gate, &recorder);
    running.signal_shutdown().unwrap();
    assert_eq!(recorder.outcomes(), []);
    gate.allow(20);
    running.stop().unwrap();
    recorder.assert_each_once(20);
    assert_eq!(recorder.count_by_outcome(), [(Outcome::Accepted, 20)].into());
}

#[test]
fn stopped_submitter_runs_again() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let mut running = run_until_20_in_flight(100, &gate, &recorder);
    running.signal_shutdown().unwrap();
    gate.allow(100);
    let stopped = running.stop().unwrap();
    assert!(stopped.undelivered().is_empty());
    recorder.assert_each_once(20);

    let running = stopped.run().unwrap();
    recorder.wait_for(100);
    assert_eq!(running.stats().accepted, 100);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(100);
}

#[test]
fn submitter_can_be_stopped_and_started_many_times() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    gate.allow(1_000);
    let few = SubmitterOptions { concurrency: 2, ..options() };
    let builder = builder(1_000, gate.sender(), &recorder).with_options(few);
    let mut stopped = builder.build().unwrap();
    for _ in 0..20 {
        stopped = stopped.run().unwrap().stop().unwrap();
    }
    let running = stopped.run().unwrap();
    recorder.wait_for(1_000);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(1_000);
}

#[test]
fn shutdown_delivers_all_outcomes() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let mut running = run_until_20_in_flight(100, &gate, &recorder);
    running.signal_shutdown().unwrap();
    running.signal_shutdown().unwrap();
    gate.allow(20);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(20);
}

#[test]
fn dropped_handle_delivers_all_outcomes() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let running = run_until_20_in_flight(100, &gate, &recorder);
    let counters = running.counters();
    drop(running);
    gate.allow(100);
    recorder.wait_for(20);
    // When all threads have ended, this is the last reference to the recorder.
    while Arc::strong_count(&recorder) > 1 {
        std::thread::yield_now();
    }
    recorder.assert_each_once(20);
    assert_eq!(counters.read().taken, 20);
}

#[test]
fn attempt_in_flight_at_the_deadline_is_ambiguous() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let short = SubmitterOptions { drain_limit: Duration::from_millis(10), ..options() };
    let running = run(builder(5, gate.sender(), &recorder).with_options(short));
    gate.arrived.wait_until(|arrived| *arrived == 5);
    running.stop().unwrap();
    recorder.assert_each_once(5);
    assert_eq!(recorder.count_by_outcome(), [(Outcome::Ambiguous, 5)].into());
}

#[test]
fn submitter_runs_and_stops_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
        gate.allow(1);
        let running = run(builder(1, gate.sender(), &recorder));
        recorder.wait_for(1);
        running.stop().unwrap();
    });
}
