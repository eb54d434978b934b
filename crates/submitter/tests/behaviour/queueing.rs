//! Polling and waking.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{GlobalScopeId, ShutdownHandle, Submission};
use grid_batch_submitter::{SubmitterOptions, SubmitterWaker};

use crate::support::*;

/// A queue that others can put something into, and that says how often it was asked in vain.
#[derive(Clone, Default)]
struct SharedQueue {
    waiting: Arc<Mutex<VecDeque<Submission<GlobalScopeId>>>>,
    empty_polls: Arc<Watched<usize>>,
}

impl Iterator for SharedQueue {
    type Item = Submission<GlobalScopeId>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.waiting.lock().unwrap().pop_front();
        if next.is_none() {
            self.empty_polls.change(|count| *count += 1);
        }
        next
    }
}

#[test]
fn an_idle_submitter_polls_at_once_when_it_is_woken() {
    let (queue, waker) = (SharedQueue::default(), SubmitterWaker::new());
    let gate = Gate::closed();
    gate.let_through(1);
    let recorder = Arc::new(Recorder::default());
    let builder = builder(0, gate.sender(), &recorder).with_queue(queue.clone());
    // The poll interval is an hour.
    let running = run(builder.with_waker(waker.clone()));
    queue.empty_polls.wait_until(|count| *count == 1);

    queue.waiting.lock().unwrap().extend(submissions(0..1));
    waker.wake();
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn an_idle_submitter_polls_again_after_the_poll_interval() {
    let queue = SharedQueue::default();
    let recorder = Arc::new(Recorder::default());
    let short = SubmitterOptions { poll_interval: Duration::from_millis(1), ..options() };
    let builder = builder(0, Gate::closed().sender(), &recorder).with_queue(queue.clone());
    let running = run(builder.with_options(short));
    queue.empty_polls.wait_until(|count| *count >= 3);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn a_wake_up_is_not_lost_when_the_submitter_is_busy() {
    let (queue, waker) = (SharedQueue::default(), SubmitterWaker::new());
    let recorder = Arc::new(Recorder::default());
    let builder = builder(0, Gate::closed().sender(), &recorder).with_queue(queue.clone());
    // Woken before it runs: it polls, and once more.
    waker.wake();
    let running = run(builder.with_waker(waker));
    queue.empty_polls.wait_until(|count| *count == 2);
    running.wait_for_shutdown().unwrap();
}
