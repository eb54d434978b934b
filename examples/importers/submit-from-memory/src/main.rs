//! Submits batches from a queue in memory to a ledger that is busy at first.
//!
//! The store is a list, the queue an iterator over it, and the group observer writes the outcomes back. A `RetryQueue`
//! around the queue has batches sent again for which the ledger was too busy, in order and after delays that grow.

use std::{
    error::Error,
    future::ready,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use grid_batch_core::ledger::{
    GroupObserver, Outcome, Submission, SubmissionAnswer, SubmissionOutcome,
};
use grid_batch_core::queue::DelayOptions;
use grid_batch_core::{BatchResult, GlobalScopeId};
use grid_batch_nodes::NodePool;
use grid_batch_submitter::{
    RetryQueue, RunnableSubmitter, ShutdownHandle, SubmissionSender, SubmitterBuilder,
};

const BATCHES: usize = 5;
const BUSY_ANSWERS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Submitted,
    Ended(Outcome),
}

#[derive(Debug)]
struct Row {
    batch_header: String,
    bytes: Vec<u8>,
    state: State,
}

/// The store. Clones share the rows.
#[derive(Debug, Clone)]
struct OwnStore(Arc<Mutex<Vec<Row>>>);

impl OwnStore {
    fn new() -> Self {
        let row = |number: usize| Row {
            batch_header: format!("batch-{number}"),
            bytes: format!("the bytes of batch {number}").into_bytes(),
            state: State::New,
        };
        Self(Arc::new(Mutex::new((0..BATCHES).map(row).collect())))
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_open_batches(&self) -> bool {
        self.rows().iter().any(|row| !matches!(row.state, State::Ended(_)))
    }
}

/// The queue: it marks each batch as submitted before it hands it out.
impl Iterator for OwnStore {
    type Item = Submission<GlobalScopeId>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows = self.rows();
        let row = rows.iter_mut().find(|row| row.state == State::New)?;
        row.state = State::Submitted;
        Some(Submission::new(row.batch_header.clone(), GlobalScopeId, row.bytes.clone()))
    }
}

/// The observer: it writes the outcomes of a whole group at a time. It gets none after which the batch is sent again.
impl GroupObserver for OwnStore {
    type Id = GlobalScopeId;

    fn notify_group(&self, outcomes: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
        let mut rows = self.rows();
        for outcome in outcomes {
            if let Some(row) = rows.iter_mut().find(|row| row.batch_header == outcome.batch_header)
            {
                row.state = State::Ended(outcome.answer.outcome);
            }
        }
        Ok(())
    }
}

/// The adapter: a ledger in this process, with what it was sent.
#[derive(Debug, Default)]
struct BusyLedger(Mutex<Vec<String>>);

impl BusyLedger {
    fn sent(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SubmissionSender for BusyLedger {
    type Id = GlobalScopeId;

    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<GlobalScopeId>,
    ) -> Pin<Box<dyn Future<Output = SubmissionAnswer> + Send + 'a>> {
        let mut sent = self.sent();
        let is_busy = sent.len() < BUSY_ANSWERS;
        sent.push(submission.batch_header().to_owned());
        let (outcome, status) =
            if is_busy { (Outcome::Busy, 503) } else { (Outcome::Accepted, 202) };
        println!("{} to {url}: {outcome}", submission.batch_header());
        let (status, message, retry_after) = (Some(status), None, None);
        Box::pin(ready(SubmissionAnswer { outcome, status, message, retry_after }))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (store, ledger) = (OwnStore::new(), Arc::new(BusyLedger::default()));
    let queue = RetryQueue::new(store.clone(), DelayOptions::default());
    let running = SubmitterBuilder::new()
        .with_retry_queue(&queue)
        .with_sender(Arc::<BusyLedger>::clone(&ledger))
        .with_url_resolver(NodePool::new(["http://localhost:8008"]).resolver())
        .with_group_observer(Arc::new(store.clone()))
        .build()?
        .run()?;

    while store.has_open_batches() {
        thread::sleep(Duration::from_millis(10));
    }
    let stats = running.stats();
    running.wait_for_shutdown()?;
    println!("{} submissions, {} accepted", stats.taken, stats.accepted);

    let accepted = store.rows().iter().all(|row| row.state == State::Ended(Outcome::Accepted));
    assert!(accepted, "every batch was accepted");
    let in_order = (0..BATCHES).map(|number| format!("batch-{number}"));
    let first = vec!["batch-0".to_owned(); BUSY_ANSWERS];
    assert_eq!(*ledger.sent(), first.into_iter().chain(in_order).collect::<Vec<_>>());
    Ok(())
}
