//! What the simulated ledgers of both kinds can do.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use grid_batch_core::{Clock, ItemId, MonotonicTime, SystemClock, Timestamp};
use grid_batch_ledger_sim::{
    ExecutionResult, Fault, LedgerSim, LedgerSimBuilder, RequestKind, When,
};
use grid_batch_ledger_tests::{Fault as NodeFault, NotPossible, TestBatch};
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list},
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

    /// The batches that it has applied, in order.
    pub fn applied(&self) -> Vec<ItemId> {
        let record = self.ledger.record();
        let applied = record.iter().filter(|entry| entry.result == ExecutionResult::Applied);
        applied.map(|entry| entry.batch_id).collect()
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
