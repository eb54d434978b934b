//! What the simulated ledgers of both kinds can do.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use grid_batch_core::{Clock, ItemId, MonotonicTime, SystemClock, Timestamp};
use grid_batch_ledger_sim::{
    Entry, ExecutionResult, Fault, LedgerSim, LedgerSimBuilder, RequestKind, When,
};
use grid_batch_ledger_tests::{BatchKind, Fault as NodeFault, NotPossible, TestBatch};
use grid_batch_test_support::{
    batches::{SignedBatch, batch_of_transactions, encode_batch_list},
    wait::wait_until,
};

/// How long a batch is pending, and how long it is voted on.
const STEP: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_hours(1);

/// A simulated node whose clock can be stopped: then it applies nothing.
pub struct SimulatedNode {
    pub ledger: LedgerSim,
    clock: Arc<StoppableClock>,
}

impl SimulatedNode {
    pub fn start(builder: LedgerSimBuilder) -> Self {
        let clock = Arc::new(StoppableClock::default());
        let builder = builder.clock(clock.clone()).pending_for(STEP).valid_for(STEP);
        Self { ledger: builder.start().unwrap(), clock }
    }

    /// Begins the faults that nodes of both ledgers have.
    pub fn fault(&self, fault: NodeFault) -> Result<(), NotPossible> {
        match fault {
            NodeFault::Busy => self.ledger.inject(Fault::Busy, When::Always),
            NodeFault::LosesRequest => self.ledger.inject(Fault::ResetBefore, When::Next(1)),
            NodeFault::LosesAnswer => self.ledger.inject(Fault::ResetAfter, When::Next(1)),
            NodeFault::HoldsRequest => {
                self.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
            }
            NodeFault::HoldsAnswer => self.ledger.inject(Fault::LateAnswer(NEVER), When::Next(1)),
            NodeFault::AppliesNothing => self.clock.stop(),
            _ => return Err(NotPossible::new(format!("the simulated node has no {fault:?}"))),
        }
        Ok(())
    }

    pub fn heal(&self) {
        self.ledger.heal();
        self.clock.resume();
    }

    pub fn arrivals(&self) -> usize {
        let requests = self.ledger.requests();
        requests.iter().filter(|request| request.kind == RequestKind::Submission).count()
    }

    /// Waits until it has executed what was sent after it had executed so many batches.
    pub fn wait_for_execution_after(&self, earlier: usize) {
        wait_until("the batch is executed", || self.ledger.record().len() > earlier);
    }
}

/// The batches of a harness: what nodes must find invalid, and what other clients have sent.
pub struct TestBatches {
    service: &'static str,
    transactions: usize,
    invalid: Arc<Mutex<Vec<ItemId>>>,
    of_others: Vec<ItemId>,
}

impl TestBatches {
    pub fn new(service: &'static str) -> Self {
        Self { service, transactions: 0, invalid: Arc::default(), of_others: Vec::new() }
    }

    /// A node that finds those batches invalid that must be.
    pub fn with_invalid(&self, builder: LedgerSimBuilder) -> LedgerSimBuilder {
        let invalid = Arc::clone(&self.invalid);
        builder.refuse(move |batch| {
            let is_invalid = invalid.lock().unwrap().contains(&batch.id());
            is_invalid.then(|| "it is invalid".to_owned())
        })
    }

    /// A batch that another client sends.
    pub fn for_another(&mut self) -> SignedBatch {
        let batch = self.signed(0);
        self.of_others.push(batch.batch_id);
        batch
    }

    /// The next batch. One that was applied for another client has the transaction of the batch before it.
    pub fn next(&mut self, kind: BatchKind) -> Result<SignedBatch, NotPossible> {
        let batch = match kind {
            BatchKind::Valid | BatchKind::Invalid => self.signed(0),
            BatchKind::AppliedForAnother => self.signed(1),
            BatchKind::WithDeadline => return Err(NotPossible::new("batches do not expire")),
        };
        if kind == BatchKind::Invalid {
            self.invalid.lock().unwrap().push(batch.batch_id);
        }
        Ok(batch)
    }

    /// A batch of one new transaction behind so many that were used before.
    fn signed(&mut self, repeated: usize) -> SignedBatch {
        self.transactions += 1;
        let first = self.transactions - repeated;
        batch_of_transactions(self.service, &Vec::from_iter(first..=self.transactions))
    }

    /// What these ledgers have applied, but for what other clients have sent in other batches.
    pub fn applied<'a>(&self, ledgers: impl Iterator<Item = &'a LedgerSim>) -> Vec<ItemId> {
        let applied = |entry: &Entry| {
            entry.result == ExecutionResult::Applied && !self.of_others.contains(&entry.batch_id)
        };
        let records = ledgers.flat_map(LedgerSim::record);
        records.filter(applied).map(|entry| entry.batch_id).collect()
    }
}

/// The batch as clients post it.
pub fn test_batch(batch: &SignedBatch) -> TestBatch {
    TestBatch { id: batch.batch_id, bytes: encode_batch_list(std::slice::from_ref(batch)) }
}

/// The clock of the system, which can stand still.
#[derive(Debug, Default)]
struct StoppableClock {
    stopped: Mutex<Stopped>,
}

#[derive(Debug, Default)]
struct Stopped {
    since: Option<Timestamp>,
    /// How long it has stood still before.
    before: Duration,
}

impl StoppableClock {
    fn stop(&self) {
        let now = self.now();
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).since.get_or_insert(now);
    }

    fn resume(&self) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = stopped.since.take() {
            stopped.before = SystemClock.now().since(since);
        }
    }
}

impl Clock for StoppableClock {
    fn now(&self) -> Timestamp {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.since.unwrap_or_else(|| SystemClock.now().minus(stopped.before))
    }

    fn monotonic(&self) -> MonotonicTime {
        SystemClock.monotonic()
    }
}
