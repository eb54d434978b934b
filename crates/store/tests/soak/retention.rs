//! Retention as in the server, with one pass after the other.

use std::{
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use grid_batch_core::batches::RetentionStore;
use grid_batch_store::Store;

const STEP: usize = 200;

/// A thread that removes ended batches in steps, with pauses as long as the steps.
pub struct RetentionThread {
    requests: Sender<SyncSender<()>>,
    thread: JoinHandle<usize>,
}

impl RetentionThread {
    pub fn start(store: Store, age: Duration) -> Self {
        let (requests, requested) = channel();
        let thread = thread::spawn(move || remove_until_stopped(&store, age, &requested));
        Self { requests, thread }
    }

    /// Waits until a pass that starts now has ended.
    pub fn finish_pass(&self) {
        let (done, wait) = sync_channel(1);
        self.requests.send(done).unwrap();
        wait.recv().unwrap();
    }

    /// Stops it, and returns how many batches it has removed.
    pub fn stop(self) -> usize {
        drop(self.requests);
        self.thread.join().unwrap()
    }
}

fn remove_until_stopped(
    store: &Store,
    age: Duration,
    requests: &Receiver<SyncSender<()>>,
) -> usize {
    let mut removed = 0;
    loop {
        // A pass that is requested starts after the request.
        let request = match requests.recv_timeout(Duration::from_millis(5)) {
            Ok(done) => Some(done),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return removed,
        };
        removed += pass(store, age);
        request.into_iter().for_each(|done| done.send(()).unwrap());
    }
}

fn pass(store: &Store, age: Duration) -> usize {
    let (mut removed, mut from) = (0, None);
    loop {
        let started = Instant::now();
        let step = store.remove_ended_before(age, from, STEP).unwrap();
        removed += step.batches;
        from = step.next;
        if from.is_none() {
            return removed;
        }
        thread::sleep(started.elapsed());
    }
}
