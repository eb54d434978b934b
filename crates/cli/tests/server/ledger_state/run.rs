use std::{collections::HashSet, time::Duration};

use fastrand::Rng;
use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, DeclaredAccess, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::{AfterInvalid, Scheduling, SchedulingRules, StrategyKind};
use grid_batch_ledger_sim::{
    AuditedBatches, ExecutionResult, Fault, LedgerSimBuilder, RandomBatches, StateAudit, When,
};
use grid_batch_protocol::{Batch, Limits, Message, list_of_one, verify_list};
use grid_batch_store::{Store, StoreOptions};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{batches::SignedBatch, wait::wait_until};

use super::decisions::Decisions;
use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// So that several batches are in a block.
const BLOCK_INTERVAL: Duration = Duration::from_millis(50);

const FAULTS: [(Fault, f64); 6] = [
    (Fault::Busy, 0.05),
    (Fault::TimedOut, 0.01),
    (Fault::ResetBefore, 0.01),
    (Fault::ResetAfter, 0.01),
    (Fault::StatusesFail, 0.03),
    (Fault::StatusesReset, 0.03),
];

/// So that the successor of a killed server does not wait long for its claims.
const SHORT_CLAIMS: [(&str, &str); 2] =
    [("--claims-idle-expiry", "1s"), ("--claims-full-expiry", "5s")];

/// The ledger restarts after one in this many requests of the client.
const RESTARTS: usize = 12;

/// One in so many requests of the client is followed by a transaction that was sent before. A request has six
/// to seven batches.
const REPEATED: usize = 3;

pub(super) struct Run {
    pub(super) harness: BatchHarness,
    pub(super) random: Rng,
    pub(super) generator: RandomBatches,
    /// In the order in which they were accepted.
    pub(super) accepted: Vec<Accepted>,
    /// What another client has sent to the ledger.
    pub(super) of_others: Vec<Batch>,
    count: usize,
    strategy: StrategyKind,
    after_invalid: AfterInvalid,
    is_repeating: bool,
    instances: usize,
}

/// A batch that the server has accepted.
pub(super) struct Accepted {
    pub(super) id: ItemId,
    pub(super) batch: Batch,
    pub(super) access: DeclaredAccess,
}

impl Run {
    /// The seed is that of the variable `GRID_BATCH_TEST_STATE_SEED`, or a random one.
    pub(super) fn new(strategy: StrategyKind, count: usize) -> Self {
        let given = std::env::var("GRID_BATCH_TEST_STATE_SEED").ok();
        let seed = given.map_or_else(|| fastrand::u64(..1_000_000), |text| text.parse().unwrap());
        println!("{strategy:?} with the seed {seed}");
        let ledger = |ledger: LedgerSimBuilder| {
            let ledger = ledger.seed(seed).block_interval(BLOCK_INTERVAL);
            let ledger = match strategy {
                StrategyKind::Pipeline => ledger.keeps_order(),
                StrategyKind::Serial | StrategyKind::Parallel => ledger,
            };
            FAULTS.into_iter().fold(ledger, |ledger, (fault, probability)| {
                ledger.fault(fault, When::Sometimes(probability))
            })
        };
        Self {
            harness: BatchHarness::sawtooth_with(ledger),
            random: Rng::with_seed(seed),
            generator: RandomBatches::new(seed),
            accepted: Vec::new(),
            of_others: Vec::new(),
            count,
            strategy,
            after_invalid: AfterInvalid::Continue,
            is_repeating: false,
            instances: 1,
        }
    }

    pub(super) fn on_postgres(self, database: &TestDatabase) -> Self {
        Self { harness: self.harness.with_database(database.url()), ..self }
    }

    /// Clients use so many servers on one database.
    pub(super) fn with_instances(self, instances: usize) -> Self {
        Self { instances, ..self }
    }

    /// Clients send transactions again that they have sent before, to the server and to the ledger.
    pub(super) fn with_repeated(self) -> Self {
        Self { is_repeating: true, ..self }
    }

    /// Where invalid batches stop others, decisions are taken at random.
    pub(super) fn after_invalid(self, after_invalid: AfterInvalid) -> Self {
        Self { after_invalid, ..self }
    }

    fn serve(&self) -> BatchServer {
        let keeps_order = if self.strategy == StrategyKind::Pipeline { "true" } else { "false" };
        let scheduling = [
            ("--services-strategy", self.strategy.as_str()),
            ("--ledger-keeps-order", keeps_order),
            ("--services-after-invalid", self.after_invalid.as_str()),
        ];
        self.harness.serve_with(&[SHORT_CLAIMS.as_slice(), &scheduling].concat())
    }

    /// The store as operators with the settings of the servers open it.
    fn store(&self) -> Store {
        let (strategy, after_invalid) = (self.strategy, self.after_invalid);
        let lanes = if strategy == StrategyKind::Serial { 1 } else { 100 };
        let default = Scheduling { strategy, after_invalid, lanes };
        let rules =
            SchedulingRules { default, uses_declared_access: true, ..SchedulingRules::default() };
        let options = StoreOptions { scheduling: rules.into(), ..StoreOptions::default() };
        self.harness.store_with(options)
    }

    /// Posts all batches while ledger and server are restarted, waits for their ends, and returns the audit.
    fn run(&mut self) -> StateAudit {
        let store = self.store();
        let mut decisions = Decisions::new(self.strategy, self.random.fork());
        let mut servers: Vec<_> = (0..self.instances).map(|_| self.serve()).collect();
        let mut batches = self.generator.take(self.count);
        let mut is_killed = false;
        while !batches.is_empty() {
            let rest = batches.split_off(batches.len().min(self.random.usize(1..=12)));
            let server = self.random.usize(..servers.len());
            let server = &servers[server];
            self.submit(server, std::mem::replace(&mut batches, rest));
            if self.is_repeating && self.random.usize(..REPEATED) == 0 {
                self.submit_repeated(server, &store);
            }
            if self.random.bool() {
                decisions.decide(self, &store);
            }
            if self.random.usize(..RESTARTS) == 0 {
                self.restart_ledger();
            }
            if !is_killed && batches.len() < self.count / 2 {
                is_killed = true;
                // The first one has claimed the service.
                servers.remove(0).process.kill();
                servers.push(self.serve());
            }
        }
        self.wait_until_all_ended(&store, &mut decisions);
        servers.into_iter().for_each(BatchServer::stop);
        self.expect_states_of_the_ledger(&store);
        let accepted: Vec<Batch> = self.accepted.iter().map(|it| it.batch.clone()).collect();
        let ended = decisions.ended(self, &store);
        let (ended, of_others) = (&*ended, &*self.of_others);
        let batches = AuditedBatches { accepted: &accepted, ended, of_others };
        let audit = self.harness.ledger.audit_state(batches);
        for id in audit.lost.iter().chain(audit.wrong_results.iter().map(|it| &it.batch_id)) {
            println!("{:?}", stored(&store, id));
        }
        audit
    }

    /// Restarts the ledger, which loses its queue. In a pipeline the queue is empty: the ledger could take the next
    /// batch before the server has found out that one was lost.
    fn restart_ledger(&self) {
        match self.strategy {
            StrategyKind::Pipeline => {
                wait_until("the queue is empty", || self.harness.ledger.restart_if_idle());
            }
            StrategyKind::Serial | StrategyKind::Parallel => self.harness.ledger.restart(),
        }
    }

    pub(super) fn submit(&mut self, server: &BatchServer, batches: Vec<Batch>) {
        let list: Vec<_> =
            batches.iter().map(|batch| SignedBatch::new("global", batch.clone())).collect();
        server.submit(&list);
        self.accepted.extend(batches.into_iter().map(Accepted::new));
    }

    /// Waits as long as more batches end.
    fn wait_until_all_ended(&self, store: &Store, decisions: &mut Decisions) {
        let mut ended = count_ended(store);
        while ended < self.accepted.len() {
            wait_until("another batch ends", || {
                self.harness.decide_held_batches(store);
                decisions.decide(self, store);
                count_ended(store) > ended
            });
            ended = count_ended(store);
        }
    }

    /// The batches that are committed are those that the ledger has applied.
    #[track_caller]
    fn expect_states_of_the_ledger(&self, store: &Store) {
        let record = self.harness.ledger.record();
        let applied = record.iter().filter(|entry| entry.result == ExecutionResult::Applied);
        let applied: HashSet<ItemId> = applied.map(|entry| entry.batch_id).collect();
        for Accepted { id, .. } in &self.accepted {
            let batch = stored(store, id);
            let is_committed = batch.progress.state == BatchState::Committed;
            assert_eq!(is_committed, applied.contains(id), "{batch:?}");
        }
    }

    #[track_caller]
    pub(super) fn assert_clean(mut self) {
        let audit = self.run();
        let most = self.harness.ledger.most_waiting();
        println!("{audit}, {most} at the ledger at most");
        assert!(audit.is_clean(), "{audit:#?}");
        if self.after_invalid == AfterInvalid::Continue && !self.is_repeating {
            assert_eq!(
                most > 1,
                self.strategy != StrategyKind::Serial,
                "{most} at the ledger at most"
            );
            assert!(audit.applied > audit.invalid, "{audit}");
        }
        // About one in ten is invalid. None may be, if they are few.
        assert!(audit.applied > 0 && (audit.invalid > 0 || self.count < 100), "{audit}");
    }
}

impl Accepted {
    pub(super) fn new(batch: Batch) -> Self {
        let limits = Limits { batches: 1, transactions: usize::MAX };
        let verified = verify_list(&list_of_one(&batch.encode_to_vec()), &limits).unwrap();
        let service = "global".parse().unwrap();
        let new = verified.into_iter().next().unwrap().into_new_batch(service);
        Self { id: new.batch_id, batch, access: new.declared_access.unwrap() }
    }
}

/// A batch that is in the store.
pub(super) fn stored(store: &Store, id: &ItemId) -> StoredBatch {
    store.find(id).unwrap().remove(0)
}

fn count_ended(store: &Store) -> usize {
    count_in_state(store, BatchState::Committed) + count_in_state(store, BatchState::Invalid)
}
