use std::collections::{BTreeSet, HashMap};

use diesel::{QueryableByName, sql_types::Text};
use grid_batch_core::{
    BatchState, Event, HeaderId, Progress, Receipt, ServiceId, Timestamp, TransitionError,
    transition,
};
use thiserror::Error;

use crate::{
    Store, StoreError,
    connection::Connection,
    lanes::{Key, Lane, Lanes, key_rows},
    notes::Notes,
    rows::{BATCH_COLUMNS, BatchRow, WITH_LANE},
    statement::Rows,
};

/// Something that happened to a batch, to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: HeaderId,
    /// The epoch in which its sender owned the service: in another epoch nothing changes.
    /// `None`: whichever it is.
    pub epoch: Option<u64>,
    /// What happened. (That it was taken, [`Store::take_round`] says itself.)
    pub event: Event,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// Where the batch is delayed: until when.
    pub retry_at: Option<Timestamp>,
    /// Where the ledger is still to be asked for the batch: to hold it until a person decides, for
    /// this reason. A batch that is held already stays so, for its first reason.
    pub hold: Option<String>,
    /// Where the batch is invalid: why.
    pub receipts: Vec<Receipt>,
}

impl Change {
    /// The change that `event` alone makes, in whatever epoch.
    pub fn new(service_id: ServiceId, batch_id: HeaderId, event: Event) -> Self {
        Self {
            service_id,
            batch_id,
            epoch: None,
            event,
            error: None,
            retry_at: None,
            hold: None,
            receipts: Vec::new(),
        }
    }
}

/// Is told of each change what became of it.
pub(crate) type Told = dyn Fn(&Change, Recorded) + Send + Sync;

/// What became of a [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded.
    Done {
        /// Where the batch stands now.
        state: BatchState,
        /// The batch has ended, and the service has another that waits.
        next_waits: bool,
    },
    /// It came too late, or cannot be: nothing changed.
    Stale(Stale),
    /// The service has no such batch.
    NotFound,
}

/// Why a [`Change`] changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stale {
    /// The batch is not where the event could happen to it.
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// The service has changed hands.
    #[error("the service is in epoch {present}; the change is of epoch {given}")]
    Epoch {
        /// The epoch of the change.
        given: u64,
        /// The service's epoch.
        present: u64,
    },
    /// A person decided about a batch that does not wait for that.
    #[error("the batch is {state}, and not held: no person is to decide")]
    NotHeld {
        /// Where the batch stands.
        state: BatchState,
    },
}

impl Store {
    /// Records what happened to batches, all in one commit, and says of each what became of it.
    ///
    /// A batch that ends gives its place to the next one of its service.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<Recorded>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.pools.write()?.transaction(|connection| {
            self.lock_services(connection, changes.iter().map(|change| &change.service_id))?;
            self.record_locked(connection, changes, Notes::default())
        })
    }

    /// Records changes of services that are locked.
    pub(crate) fn record_locked<'a>(
        &self,
        connection: &mut Connection,
        changes: &'a [Change],
        mut notes: Notes<'a>,
    ) -> Result<Vec<Recorded>, StoreError> {
        let now = self.now();
        let batches: BTreeSet<Key> = changes.iter().map(key).collect();
        let mut lanes = Lanes::lock(connection, &batches)?;
        let elsewhere = self.find_elsewhere(connection, &batches, &lanes)?;
        let moved: Vec<Result<BatchState, Recorded>> = changes
            .iter()
            .map(|change| match lanes.get_mut(&key(change)) {
                Some(lane) => apply(lane, change, now, &mut notes),
                None => Err(refuse(change, elsewhere.get(&key(change)))),
            })
            .collect();
        let with_next = lanes.write(connection, now)?;
        notes.write(connection)?;
        let recorded = |(change, moved): (&Change, Result<BatchState, Recorded>)| match moved {
            Ok(state) => Recorded::Done {
                state,
                next_waits: state.is_terminal() && with_next.contains(&key(change)),
            },
            Err(refused) => refused,
        };
        Ok(changes.iter().zip(moved).map(recorded).collect())
    }

    /// Services are locked as when batches are added, since a batch may end: one that is added
    /// meanwhile is either seen as the next head, or sees that the service has none.
    pub(crate) fn lock_services<'a>(
        &self,
        connection: &mut Connection,
        services: impl IntoIterator<Item = &'a ServiceId>,
    ) -> Result<(), StoreError> {
        let services: BTreeSet<&str> = services.into_iter().map(ServiceId::as_str).collect();
        let lock = self.pools.dialect().locking("for update of v");
        let statement = self
            .statement(format!(
                "-- lock_services
                 select v.service_id from {{x}} join services v on v.service_id = x.service_id
                 order by v.service_id {lock}"
            ))
            .rows(Rows::default().text("service_id", services));
        connection.load::<LockedRow>(&statement).map(drop)
    }

    /// The progress of the batches that are in no lane: not yet their turn, or ended.
    fn find_elsewhere(
        &self,
        connection: &mut Connection,
        batches: &BTreeSet<Key>,
        lanes: &Lanes,
    ) -> Result<HashMap<Key, Progress>, StoreError> {
        let keys: BTreeSet<Key> = batches.iter().filter(|key| !lanes.holds(key)).cloned().collect();
        let statement = self
            .statement(format!(
                "-- find_elsewhere
                 select {BATCH_COLUMNS} from {{x}}
                 join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
                 {WITH_LANE}"
            ))
            .rows(key_rows(&keys));
        let rows: Vec<BatchRow> = connection.load(&statement)?;
        rows.into_iter()
            .map(|row| {
                let batch = row.into_batch()?;
                Ok(((batch.service_id, batch.batch_id), batch.progress))
            })
            .collect()
    }
}

fn key(change: &Change) -> Key {
    (change.service_id.clone(), change.batch_id)
}

/// What a change to a batch that is next or under way comes to.
fn apply<'a>(
    lane: &mut Lane,
    change: &'a Change,
    now: Timestamp,
    notes: &mut Notes<'a>,
) -> Result<BatchState, Recorded> {
    // To be handed out, a batch must be taken.
    if change.event == Event::Taken {
        return Err(refuse(change, Some(&lane.progress)));
    }
    lane.apply(change, now).map_err(Recorded::Stale)?;
    notes.take(lane, change, now);
    Ok(lane.progress.state)
}

/// What a change comes to that cannot be: the batch is in no lane, or is said to have been taken.
fn refuse(change: &Change, progress: Option<&Progress>) -> Recorded {
    match progress {
        None => Recorded::NotFound,
        Some(progress) => match transition(*progress, change.event) {
            Err(error) => Recorded::Stale(error.into()),
            Ok(_) => {
                let (state, event) = (progress.state, change.event);
                Recorded::Stale(TransitionError::NotDrawn { state, event }.into())
            }
        },
    }
}

#[derive(QueryableByName)]
struct LockedRow {
    #[diesel(sql_type = Text)]
    #[expect(dead_code, reason = "the row is read to lock it")]
    service_id: String,
}
