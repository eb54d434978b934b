//! Polling of the queue and wake-ups.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::GlobalScopeId;
use grid_batch_core::ledger::Submission;
use grid_batch_submitter::{ShutdownHandle, SubmitterOptions, SubmitterWaker};

use crate::support::*;

/// A queue that a test can add to, and that counts the polls that found it empty.
#[derive(Clone, Default)]
struct SharedQueue {
    submissions: Arc<Mutex<VecDeque<Submission<GlobalScopeId>>>>,
    empty_polls: Arc<WatchedValue<usize>>,
}

impl Iterator for SharedQueue {
    type Item = Submission<GlobalScopeId>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.submissions.lock().unwrap().pop_front();
        if next.is_none() {
            self.empty_polls.change(|count| *count += 1);
        }
        next
    }
}

#[test]
fn wake_up_ends_the_wait_of_an_idle_submitter() {
    let (queue, waker) = (SharedQueue::default(), SubmitterWaker::new());
    let gate = Gate::closed();
    gate.allow(1);
    let recorder = Arc::new(Recorder::default());
    let builder = builder(0, gate.sender(), &recorder).with_queue(queue.clone());
    // The poll interval is an hour.
    let running = run(builder.with_waker(waker.clone()));
    queue.empty_polls.wait_until(|count| *count == 1);

    queue.submissions.lock().unwrap().extend(submissions(0..1));
    waker.wake();
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn idle_submitter_polls_after_the_poll_interval() {
    let queue = SharedQueue::default();
    let recorder = Arc::new(Recorder::default());
    let short = SubmitterOptions { poll_interval: Duration::from_millis(1), ..options() };
    let builder = builder(0, Gate::closed().sender(), &recorder).with_queue(queue.clone());
    let running = run(builder.with_options(short));
    queue.empty_polls.wait_until(|count| *count >= 3);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn idle_submitter_polls_when_the_queue_has_something_due() {
    let queue = SharedQueue::default();
    let recorder = Arc::new(Recorder::default());
    let builder = builder(0, Gate::closed().sender(), &recorder).with_queue(queue.clone());
    // The poll interval is an hour.
    let running = run(builder.with_next_due(|| Some(Duration::from_millis(1))));
    queue.empty_polls.wait_until(|count| *count >= 3);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn wake_up_of_a_busy_submitter_is_not_lost() {
    let (queue, waker) = (SharedQueue::default(), SubmitterWaker::new());
    let recorder = Arc::new(Recorder::default());
    let builder = builder(0, Gate::closed().sender(), &recorder).with_queue(queue.clone());
    // Woken before it runs, it polls twice.
    waker.wake();
    let running = run(builder.with_waker(waker));
    queue.empty_polls.wait_until(|count| *count == 2);
    running.wait_for_shutdown().unwrap();
}
