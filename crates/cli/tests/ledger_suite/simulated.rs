//! What the harnesses of both simulated ledgers have in common.

use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::ledger::LedgerFacts;
use grid_batch_core::{Clock, ItemId, MonotonicTime, SystemClock, Timestamp};
use grid_batch_ledger_sim::{
    Entry, ExecutionResult, Fault as SimFault, LedgerSim, LedgerSimBuilder, RequestKind, When,
};
use grid_batch_ledger_tests::{BatchKind, Fault, Harness, NotPossible, TestBatch};
use grid_batch_support::lock;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_of_transactions, encode_batch_list},
    http::send,
    wait::wait_until,
};

/// How long a batch is pending, and how long it is voted on.
const STEP: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_hours(1);

/// What differs between the simulated ledgers.
pub trait SimulatedLedger {
    /// The service of its batches.
    const SERVICE: &'static str;

    fn facts(&self) -> LedgerFacts;

    /// A node of the ledger.
    fn builder(&self) -> LedgerSimBuilder;

    /// The table `ledger` without its URLs. The operator gives each ledger a name, if it needs one.
    fn settings(&self, name: &str) -> String;

    /// Another client's request to submit these bytes.
    fn submission(&self, bytes: &[u8]) -> Vec<u8>;

    /// Begins a fault that the two ledgers have in different ways, or that only one of them has.
    fn fault(&mut self, node: &LedgerSim, fault: Fault) -> Result<(), NotPossible>;

    /// Another node, if there is one.
    fn second_node(&self) -> Option<&LedgerSim> {
        None
    }

    /// A batch was made.
    fn made(&mut self, _batch: ItemId) {}
}

/// A simulated node. Its clock can be stopped: then it applies nothing.
pub struct SimulatedHarness<L> {
    ledger: L,
    node: LedgerSim,
    clock: Arc<StoppableClock>,
    /// A node of another ledger, and whether it is configured.
    other: Option<(LedgerSim, bool)>,
    batches: TestBatches,
    database: Option<TestDatabase>,
}

impl<L: SimulatedLedger> SimulatedHarness<L> {
    pub fn start(ledger: L) -> Self {
        let clock = Arc::new(StoppableClock::default());
        let batches = TestBatches::new(L::SERVICE);
        let builder = ledger.builder().clock(clock.clone()).pending_for(STEP).valid_for(STEP);
        let node = batches.with_invalid(builder).start().unwrap();
        Self { ledger, node, clock, other: None, batches, database: None }
    }
}

impl<L: SimulatedLedger> Harness for SimulatedHarness<L> {
    fn facts(&self) -> LedgerFacts {
        self.ledger.facts()
    }

    fn server(&self, configuration: &Path) -> Command {
        crate::serve(configuration)
    }

    fn configuration(&self) -> String {
        let (name, urls) = match &self.other {
            Some((other, true)) => ("other", vec![other.url()]),
            _ => {
                let nodes = [&self.node].into_iter().chain(self.ledger.second_node());
                ("test", nodes.map(LedgerSim::url).collect())
            }
        };
        let settings = self.ledger.settings(name);
        format!(
            "[testing]\nsilence_timeout = \"1500ms\"\nreconnect_first = \"10ms\"\n\
             reconnect_longest = \"200ms\"\n[ledger]\nurls = {urls:?}\n{settings}"
        )
    }

    fn service(&self) -> Option<String> {
        Some(L::SERVICE.to_owned())
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        if kind == BatchKind::AppliedForAnother {
            let theirs = test_batch(&self.batches.for_another());
            self.deliver(&theirs)?;
        }
        let batch = self.batches.next(kind)?;
        self.ledger.made(batch.batch_id);
        Ok(test_batch(&batch))
    }

    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible> {
        let (fault, when) = match fault {
            Fault::Busy => (SimFault::Busy, When::Always),
            Fault::LosesRequest => (SimFault::ResetBefore, When::Next(1)),
            Fault::LosesAnswer => (SimFault::ResetAfter, When::Next(1)),
            Fault::HoldsRequest => (SimFault::LateArrival(NEVER), When::Next(1)),
            Fault::HoldsAnswer => (SimFault::LateAnswer(NEVER), When::Next(1)),
            Fault::AppliesNothing => {
                self.clock.stop();
                return Ok(());
            }
            Fault::OtherLedger => {
                self.other = Some((self.ledger.builder().start().unwrap(), true));
                return Ok(());
            }
            Fault::SendsNoEvents => {
                self.node.stop_sending_events();
                return Ok(());
            }
            Fault::Refuses | Fault::SecondNodeLags => {
                return self.ledger.fault(&self.node, fault);
            }
        };
        self.node.inject(fault, when);
        Ok(())
    }

    fn heal(&mut self) {
        self.node.heal();
        self.clock.resume();
        if let Some((_, is_configured)) = &mut self.other {
            *is_configured = false;
        }
    }

    fn applied(&self) -> Vec<ItemId> {
        let other = self.other.as_ref().map(|(other, _)| other);
        self.batches.applied([&self.node].into_iter().chain(other))
    }

    fn arrivals(&self) -> usize {
        let requests = self.node.requests();
        requests.iter().filter(|request| request.kind == RequestKind::Submission).count()
    }

    fn release(&mut self) -> Result<(), NotPossible> {
        self.node.deliver_late();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), NotPossible> {
        self.node.restart();
        Ok(())
    }

    /// A batch that arrives again is executed again only if the ledger applies it again.
    fn deliver(&mut self, batch: &TestBatch) -> Result<(), NotPossible> {
        let record = self.node.record();
        let submission = self.ledger.submission(&batch.bytes);
        assert_eq!(send(self.node.address(), &submission).unwrap().status, 202);
        if record.iter().all(|entry| entry.batch_id != batch.id) {
            wait_until("the batch is executed", || self.node.record().len() > record.len());
        }
        Ok(())
    }

    fn postgres(&mut self) -> Result<String, NotPossible> {
        Ok(self.database.get_or_insert_with(TestDatabase::create).url().to_owned())
    }
}

/// The batches of a harness: what nodes must find invalid, and what other clients have sent.
struct TestBatches {
    service: &'static str,
    transactions: usize,
    invalid: Arc<Mutex<Vec<ItemId>>>,
    of_others: Vec<ItemId>,
}

impl TestBatches {
    fn new(service: &'static str) -> Self {
        Self { service, transactions: 0, invalid: Arc::default(), of_others: Vec::new() }
    }

    /// A node that finds those batches invalid that must be.
    fn with_invalid(&self, builder: LedgerSimBuilder) -> LedgerSimBuilder {
        let invalid = Arc::clone(&self.invalid);
        builder.refuse(move |batch| {
            let is_invalid = invalid.lock().unwrap().contains(&batch.id());
            is_invalid.then(|| "it is invalid".to_owned())
        })
    }

    /// A batch that another client sends.
    fn for_another(&mut self) -> SignedBatch {
        let batch = self.signed(0);
        self.of_others.push(batch.batch_id);
        batch
    }

    /// The next batch. One that was applied for another client has the transaction of the batch before it.
    fn next(&mut self, kind: BatchKind) -> Result<SignedBatch, NotPossible> {
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
    fn applied<'a>(&self, ledgers: impl Iterator<Item = &'a LedgerSim>) -> Vec<ItemId> {
        let applied = |entry: &Entry| {
            entry.result == ExecutionResult::Applied && !self.of_others.contains(&entry.batch_id)
        };
        let records = ledgers.flat_map(LedgerSim::record);
        records.filter(applied).map(|entry| entry.batch_id).collect()
    }
}

/// The batch as clients post it.
fn test_batch(batch: &SignedBatch) -> TestBatch {
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
        lock(&self.stopped).since.get_or_insert(now);
    }

    fn resume(&self) {
        let mut stopped = lock(&self.stopped);
        if let Some(since) = stopped.since.take() {
            stopped.before = SystemClock.now().since(since);
        }
    }
}

impl Clock for StoppableClock {
    fn now(&self) -> Timestamp {
        let stopped = lock(&self.stopped);
        stopped.since.unwrap_or_else(|| SystemClock.now().minus(stopped.before))
    }

    fn monotonic(&self) -> MonotonicTime {
        SystemClock.monotonic()
    }
}
