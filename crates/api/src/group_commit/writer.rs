use grid_batch_core::BatchResult;
use grid_batch_support::catch_panic;
use log::{debug, error, warn};
use tokio::sync::mpsc::Receiver;

use super::{CommitProgress, WriteQueue, WriteRequest};

/// The most batches and the most bytes in one commit. A single request may exceed them.
const MAX_GROUP: GroupSize = GroupSize { batches: 500, bytes: 32 * 1024 * 1024 };

/// How much of a commit something takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupSize {
    pub(crate) batches: usize,
    pub(crate) bytes: usize,
}

impl GroupSize {
    fn plus(self, other: Self) -> Self {
        Self { batches: self.batches + other.batches, bytes: self.bytes + other.bytes }
    }

    fn fits(self) -> bool {
        self.batches <= MAX_GROUP.batches && self.bytes <= MAX_GROUP.bytes
    }
}

/// Stores items of one kind in groups.
pub(crate) trait GroupStore {
    /// What one request stores.
    type Item;
    /// The answer to the request after the commit.
    type Answer;

    /// What the items are, for the log.
    const ITEMS: &'static str;

    fn size(item: &Self::Item) -> GroupSize;

    /// Stores items in one commit, and returns the answer of each.
    fn store(&self, items: &[Self::Item]) -> BatchResult<Vec<Self::Answer>>;
}

/// The queue of a writer with a store of this type.
pub(crate) type QueueOf<S> = WriteQueue<<S as GroupStore>::Item, <S as GroupStore>::Answer>;

/// A request to a store of this type.
type Request<S> = WriteRequest<<S as GroupStore>::Item, <S as GroupStore>::Answer>;

/// Takes requests from the write queue, stores groups of them in one commit, and answers each.
pub(crate) struct GroupWriter<S: GroupStore> {
    queue: Receiver<Request<S>>,
    store: S,
    /// Shows how long a commit takes.
    progress: CommitProgress,
    /// A request that was taken from the queue and did not fit into the last group.
    next: Option<Request<S>>,
}

impl<S: GroupStore> GroupWriter<S> {
    pub(crate) fn new(queue: Receiver<Request<S>>, store: S, progress: CommitProgress) -> Self {
        Self { queue, store, progress, next: None }
    }

    /// Writes until all senders of the queue are dropped and all requests are answered.
    pub(crate) fn run(mut self) {
        while let Some(group) = self.next_group() {
            self.write(group);
        }
    }

    /// Waits for one request, and adds those that are in the queue already.
    fn next_group(&mut self) -> Option<Vec<Request<S>>> {
        let first = self.next.take().or_else(|| self.queue.blocking_recv())?;
        let mut size = S::size(&first.item);
        let mut group = vec![first];
        while let Ok(request) = self.queue.try_recv() {
            size = size.plus(S::size(&request.item));
            if !size.fits() {
                self.next = Some(request);
                break;
            }
            group.push(request);
        }
        Some(group)
    }

    fn write(&self, group: Vec<Request<S>>) {
        let requests = group.len();
        let (items, callers): (Vec<_>, Vec<_>) =
            group.into_iter().map(|request| (request.item, request.answer)).unzip();
        let answers = self.store(&items);
        debug!(requests, answered = answers.len(); "group of {} written", S::ITEMS);
        // The callers without an answer are dropped, which tells them.
        for (caller, answer) in callers.into_iter().zip(answers) {
            // The client may have disconnected.
            let _ = caller.send(answer);
        }
    }

    /// Stores a group in one commit, and returns the answers: none, if it failed.
    fn store(&self, items: &[S::Item]) -> Vec<S::Answer> {
        let requests = items.len();
        let _in_progress = self.progress.begin();
        match catch_panic(|| self.store.store(items)) {
            Ok(Ok(answers)) => {
                self.progress.succeeded();
                answers
            }
            Ok(Err(error)) => {
                self.progress.failed_by(&error);
                warn!(requests, error:%; "storing a group of {} failed", S::ITEMS);
                Vec::new()
            }
            Err(panic) => {
                error!(requests, panic:%; "storing a group of {} panicked", S::ITEMS);
                Vec::new()
            }
        }
    }
}
