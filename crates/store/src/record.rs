use std::collections::{BTreeSet, HashMap};

use diesel::{QueryableByName, sql_types::Text};
use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Event, Progress, ServiceId, Timestamp, TransitionError,
    transition,
};

use crate::{
    Store, StoreError,
    connection::Connection,
    lanes::{Key, Lane, Lanes, key_rows},
    notes::Notes,
    rows::{BATCH_COLUMNS, BatchRow, WITH_LANE},
    statement::Rows,
};

/// Is told of each change what became of it.
pub(crate) type Told = dyn Fn(&Change, ChangeOutcome) + Send + Sync;

impl Store {
    /// Records what happened to batches, all in one commit, and says of each what became of it.
    ///
    /// A batch that ends gives its place to the next one of its service.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<ChangeOutcome>, StoreError> {
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
    ) -> Result<Vec<ChangeOutcome>, StoreError> {
        let now = self.now();
        let batches: BTreeSet<Key> = changes.iter().map(key).collect();
        let mut lanes = Lanes::lock(connection, &batches)?;
        let elsewhere = self.find_elsewhere(connection, &batches, &lanes)?;
        let moved: Vec<Result<BatchState, ChangeOutcome>> = changes
            .iter()
            .map(|change| match lanes.get_mut(&key(change)) {
                Some(lane) => apply(lane, change, now, &mut notes),
                None => Err(refuse(change, elsewhere.get(&key(change)))),
            })
            .collect();
        let with_next = lanes.write(connection, now)?;
        notes.write(connection)?;
        let recorded = |(change, moved): (&Change, Result<BatchState, ChangeOutcome>)| match moved {
            Ok(state) => ChangeOutcome::Applied {
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
) -> Result<BatchState, ChangeOutcome> {
    // To be handed out, a batch must be taken.
    if change.event == Event::Taken {
        return Err(refuse(change, Some(&lane.progress)));
    }
    lane.apply(change, now).map_err(ChangeOutcome::Stale)?;
    notes.take(lane, change, now);
    Ok(lane.progress.state)
}

/// What a change comes to that cannot be: the batch is in no lane, or is said to have been taken.
fn refuse(change: &Change, progress: Option<&Progress>) -> ChangeOutcome {
    match progress {
        None => ChangeOutcome::NotFound,
        Some(progress) => match transition(*progress, change.event) {
            Err(error) => ChangeOutcome::Stale(error.into()),
            Ok(_) => {
                let (state, event) = (progress.state, change.event);
                ChangeOutcome::Stale(TransitionError::NotPossible { state, event }.into())
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
