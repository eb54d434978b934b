//! Nothing is lost, however it ends.

use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    GlobalScopeId, Outcome, RunnableSubmitter, RunningSubmitter, ShutdownHandle, Submission,
};
use grid_batch_submitter::{BatchRunningSubmitter, SubmitterOptions};

use crate::support::*;

/// A submitter with 20 sendings under way.
fn twenty_under_way(
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
fn a_stop_with_twenty_sendings_under_way_delivers_twenty_outcomes() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let mut running = twenty_under_way(100, &gate, &recorder);
    running.signal_shutdown().unwrap();
    assert_eq!(recorder.outcomes(), []);
    gate.let_through(20);
    running.stop().unwrap();
    recorder.assert_each_once(20);
    assert_eq!(recorder.tally(), [(Outcome::Accepted, 20)].into());
}

#[test]
fn what_a_stop_returns_sends_the_rest_of_the_queue() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let mut running = twenty_under_way(100, &gate, &recorder);
    running.signal_shutdown().unwrap();
    gate.let_through(100);
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
fn it_can_be_stopped_and_started_many_times() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    gate.let_through(1_000);
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
fn a_shutdown_delivers_everything() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let mut running = twenty_under_way(100, &gate, &recorder);
    running.signal_shutdown().unwrap();
    running.signal_shutdown().unwrap();
    gate.let_through(20);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(20);
}

#[test]
fn a_dropped_handle_delivers_everything() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let running = twenty_under_way(100, &gate, &recorder);
    let counters = running.counters();
    drop(running);
    gate.let_through(100);
    recorder.wait_for(20);
    // The last clone of the recorder but ours goes when all threads have ended.
    while Arc::strong_count(&recorder) > 1 {
        std::thread::yield_now();
    }
    recorder.assert_each_once(20);
    assert_eq!(counters.read().taken, 20);
}

#[test]
fn what_is_still_being_sent_at_the_deadline_is_in_doubt() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let short = SubmitterOptions { drain_limit: Duration::from_millis(10), ..options() };
    let running = run(builder(5, gate.sender(), &recorder).with_options(short));
    gate.arrived.wait_until(|arrived| *arrived == 5);
    running.stop().unwrap();
    recorder.assert_each_once(5);
    assert_eq!(recorder.tally(), [(Outcome::Ambiguous, 5)].into());
}

#[test]
fn what_waits_to_be_sent_again_does_not_hold_up_a_stop() {
    let called = Arc::new(Watched::<usize>::default());
    let sender = {
        let called = Arc::clone(&called);
        Arc::new(Sender(move |submission: &Submission<GlobalScopeId>| {
            called.change(|count| *count += 1);
            let even = submission.batch_header().ends_with(['0', '2', '4', '6', '8']);
            let mut answer = answer(if even { Outcome::Busy } else { Outcome::NotSent });
            answer.retry_after = Some(Duration::from_secs(500));
            Box::pin(async { answer }) as Answering
        }))
    };
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(10, sender, &recorder));
    called.wait_until(|count| *count == 10);
    // Both limits are more than the runner of this test would wait for.
    running.stop().unwrap();
    recorder.assert_each_once(10);
    assert_eq!(recorder.tally(), [(Outcome::Busy, 5), (Outcome::NotSent, 5)].into());
}

#[test]
fn it_can_be_run_and_stopped_from_within_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
        gate.let_through(1);
        let running = run(builder(1, gate.sender(), &recorder));
        recorder.wait_for(1);
        running.stop().unwrap();
    });
}
