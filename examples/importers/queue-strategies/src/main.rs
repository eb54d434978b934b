//! Applies the strategies of the queue to a table of the program, whose rows are batches of a ledger with one order.
//!
//! `run` stands for a submitter and a poller: each batch is accepted at once, and committed when no other can be sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{error::Error, fmt::Display};

use diesel::{connection::SimpleConnection, prelude::*};
use grid_batch_core::batches::{AddressPrefix, BatchState, DeclaredAccess, Event, StoredBatch};
use grid_batch_core::claims::SubmittedBatch;
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::queue::{Scheduling, SchedulingRules, StrategyKind, TakenBatch};
use grid_batch_core::{BatchError, BatchResult, ItemId, Timestamp, batches};
use grid_batch_core::{GlobalScopeId, ScopeId, ServiceId};
use grid_batch_queuer::{BatchQueue, OpenBatchStore, QueueOptions, StrategyRoundStore, WakeUp};

/// The first two transfers write the same address.
const TRANSFERS: &str = "
    create table transfers (number text primary key, writes text, state text, tries integer);
    insert into transfers values
        ('1', 'aa', 'new', 0), ('2', 'aa', 'new', 0), ('3', 'bb', 'new', 0), ('4', 'cc', 'new', 0)";
const ACCEPT: &str = "update transfers set state = 'pending' where state = 'submitting'";
const COMMIT: &str = "update transfers set state = 'committed' where state = 'pending'";

diesel::table! {
    transfers (number) {
        number -> Text,
        writes -> Text,
        state -> Text,
        tries -> BigInt,
    }
}

/// The values of these columns. A real table has columns for all fields of `Progress`.
type Row = (String, String, String, i64);

fn to_stored(row: &Row) -> BatchResult<StoredBatch> {
    let (number, _, state, tries) = row;
    let created_at = Timestamp::from_micros(number.parse().map_err(failed)?);
    let id = number.parse::<ItemId>().map_err(failed)?;
    let mut stored = StoredBatch::new(GlobalScopeId.service_id().clone(), id, created_at);
    stored.progress.state = BatchState::named(state).ok_or_else(|| failed(state))?;
    stored.progress.attempts = u32::try_from(*tries).map_err(failed)?;
    Ok(stored)
}

fn failed(error: impl Display) -> BatchError {
    BatchError::InternalError(error.to_string())
}

/// The store. Clones share the connection.
#[derive(Clone)]
struct TransferStore(Arc<Mutex<SqliteConnection>>);

impl TransferStore {
    fn connection(&self) -> MutexGuard<'_, SqliteConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: ItemId) -> BatchResult<Row> {
        transfers::table.find(id.to_string()).first(&mut *self.connection()).map_err(failed)
    }

    /// Applies an event to a batch, unless its row has changed since it was read. Returns the number of its attempts.
    fn apply(&self, batch: &StoredBatch, event: Event) -> BatchResult<Option<u32>> {
        let to = batches::transition(batch.progress, event).map_err(failed)?;
        let unchanged = transfers::table
            .find(batch.batch_id.to_string())
            .filter(transfers::state.eq(batch.progress.state.as_str()))
            .filter(transfers::tries.eq(i64::from(batch.progress.attempts)));
        let (state, tries) = (to.state.as_str(), i64::from(to.attempts));
        let next = (transfers::state.eq(state), transfers::tries.eq(tries));
        let updated = diesel::update(unchanged).set(next).execute(&mut *self.connection());
        Ok((updated.map_err(failed)? == 1).then_some(to.attempts))
    }
}

impl OpenBatchStore for TransferStore {
    fn services(&self, after: Option<&ServiceId>, _: usize) -> BatchResult<Vec<ServiceId>> {
        let open = self.open_batches(GlobalScopeId.service_id(), after.map_or(1, |_| 0))?;
        Ok(open.into_iter().map(|batch| batch.service_id).collect())
    }

    fn open_batches(&self, _: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>> {
        let open = transfers::table
            .filter(transfers::state.ne_all(["committed", "invalid"]))
            .order((transfers::state.eq("new"), transfers::number))
            .limit(i64::try_from(limit).map_err(failed)?);
        let open: Vec<Row> = open.load(&mut *self.connection()).map_err(failed)?;
        open.iter().map(to_stored).collect()
    }

    fn declared_access(&self, batch: &StoredBatch) -> BatchResult<DeclaredAccess> {
        Ok(DeclaredAccess::new([], [AddressPrefix::new(&self.find(batch.batch_id)?.1)], []))
    }

    fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize> {
        Ok(batch.batch_id.as_bytes().len())
    }

    fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>> {
        let (service_id, batch_id) = (batch.service_id.clone(), batch.batch_id);
        Ok(self.apply(batch, Event::Taken)?.map(|attempt| {
            let attempt_id = AttemptId { attempt, epoch: 0 };
            let submitted = SubmittedBatch { service_id, batch_id, attempt_id };
            let serialized_batch = batch_id.as_bytes().to_vec();
            TakenBatch { serialized_batch, ..TakenBatch::without_bytes(submitted) }
        }))
    }

    fn unmark(&self, taken: &[TakenBatch]) -> BatchResult<()> {
        taken.iter().try_for_each(|taken| {
            let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
            self.apply(&to_stored(&self.find(taken.batch_id)?)?, event).map(drop)
        })
    }
}

/// Sends the transfers, and checks which were sent before each commit.
fn run(strategy: StrategyKind, expected: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut connection = SqliteConnection::establish(":memory:")?;
    connection.batch_execute(TRANSFERS)?;
    let store = TransferStore(Arc::new(Mutex::new(connection)));
    let default = Scheduling { strategy, lanes: 3, ..Scheduling::SERIAL };
    let rules = SchedulingRules { default, uses_declared_access: true, ..Default::default() };
    let rounds = StrategyRoundStore::new(store.clone()).with_rules(Arc::new(rules));
    let (wake_up, options) = (WakeUp::new(|| ()), QueueOptions::default());
    let mut queue = BatchQueue::<GlobalScopeId, _>::new(rounds, wake_up.clone(), options);
    for expected in expected {
        let mut sent = Vec::new();
        for submission in queue.by_ref() {
            sent.push(submission.batch_header().to_owned());
            store.connection().batch_execute(ACCEPT)?;
            wake_up.wake(GlobalScopeId.service_id().clone());
        }
        println!("{}: {}", strategy.as_str(), sent.join(" "));
        assert_eq!(sent.join(" "), *expected);
        store.connection().batch_execute(COMMIT)?;
        wake_up.wake(GlobalScopeId.service_id().clone());
    }
    assert!(queue.next().is_none(), "every transfer was sent");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(StrategyKind::Serial, &["1", "2", "3", "4"])?;
    run(StrategyKind::Parallel, &["1 3 4", "2"])?;
    run(StrategyKind::Pipeline, &["1 2 3", "4"])
}
