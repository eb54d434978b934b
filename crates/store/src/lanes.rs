//! The rows in which batches change: what is next or under way of each service.

use std::collections::{BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer, Text},
};
use grid_batch_core::{
    AttemptId, BatchState, Change, Event, HeaderId, Hold, Progress, ServiceId, Stale, Timestamp,
    transition,
};

use crate::{
    StoreError,
    connection::Connection,
    dialect::Dialect,
    rows::{STANDING_COLUMNS, StandingRow, attempts, batch_id, presentable, service_id},
    statement::{Rows, Statement},
};

/// A batch, in the way in which the rows of a group are matched.
pub(crate) type Key = (ServiceId, HeaderId);

/// The lanes of a group of batches, locked to the end of the transaction.
pub(crate) struct Lanes {
    dialect: Dialect,
    by_batch: HashMap<Key, Lane>,
}

impl Lanes {
    /// Locks the lanes that hold one of these batches, in one order for all who do so.
    pub(crate) fn lock(
        connection: &mut Connection,
        batches: &BTreeSet<Key>,
    ) -> Result<Self, StoreError> {
        let dialect = connection.dialect();
        let rows: Vec<LaneRow> = connection.load(&lock_lanes(dialect, batches))?;
        let by_batch = rows
            .into_iter()
            .map(|row| {
                let lane = row.into_lane()?;
                Ok((lane.key(), lane))
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(Self { dialect, by_batch })
    }

    pub(crate) fn holds(&self, batch: &Key) -> bool {
        self.by_batch.contains_key(batch)
    }

    pub(crate) fn get(&self, batch: &Key) -> Option<&Lane> {
        self.by_batch.get(batch)
    }

    pub(crate) fn get_mut(&mut self, batch: &Key) -> Option<&mut Lane> {
        self.by_batch.get_mut(batch)
    }

    /// Writes the lanes that changed. Of those whose batch ended, the batch is written, and the
    /// next of its service installed: answered are the batches that have one after them.
    pub(crate) fn write(
        &self,
        connection: &mut Connection,
        now: Timestamp,
    ) -> Result<BTreeSet<Key>, StoreError> {
        let (ended, moved): (Vec<&Lane>, Vec<&Lane>) = self
            .by_batch
            .values()
            .filter(|lane| lane.touched)
            .partition(|lane| lane.progress.state.is_terminal());
        let written = connection.execute(&write_lanes(self.dialect, &moved))?;
        expect_all(written, moved.len())?;
        let written = connection.execute(&end_batches(self.dialect, &ended, now))?;
        expect_all(written, ended.len())?;
        let freed: Vec<FreedRow> = connection.load(&install_next_heads(self.dialect, &ended))?;
        expect_all(freed.len(), ended.len())?;
        let busy: BTreeSet<(&str, i32)> = freed
            .iter()
            .filter(|row| row.busy)
            .map(|row| (row.service_id.as_str(), row.lane))
            .collect();
        let has_next = |lane: &&Lane| busy.contains(&(lane.service_id.as_str(), lane.lane));
        Ok(ended.into_iter().filter(has_next).map(Lane::key).collect())
    }
}

/// Rows that are locked cannot have moved: fewer would mean that the lock was none.
fn expect_all(written: usize, expected: usize) -> Result<(), StoreError> {
    if written == expected {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!("{written} of {expected} rows just locked")))
    }
}

/// A lane with the batch in it.
pub(crate) struct Lane {
    service_id: ServiceId,
    lane: i32,
    epoch: u64,
    pub(crate) batch_seq: i64,
    batch_id: HeaderId,
    pub(crate) progress: Progress,
    pub(crate) submitted_at: Option<i64>,
    since: Option<i64>,
    checked_at: Option<i64>,
    pub(crate) next_try_at: Option<i64>,
    last_error: Option<String>,
    held: Option<Hold>,
    touched: bool,
}

impl Lane {
    fn key(&self) -> Key {
        (self.service_id.clone(), self.batch_id)
    }

    /// The batch is still with the submitter that was given this attempt id, and not yet proved to be
    /// committed.
    pub(crate) fn is_turn_of(&self, AttemptId { attempt, epoch }: AttemptId) -> bool {
        let Progress { state, attempts, commit_proven } = self.progress;
        state == BatchState::Submitting
            && !commit_proven
            && (attempts, self.epoch) == (attempt, epoch)
    }

    /// Moves the batch as the change says, or says why it does not move.
    pub(crate) fn apply(&mut self, change: &Change, now: Timestamp) -> Result<(), Stale> {
        if let Some(given) = change.epoch
            && given != self.epoch
            && !change.event.is_proof_of_commit()
        {
            return Err(Stale::Epoch { given, present: self.epoch });
        }
        let before = self.progress.state;
        self.progress = transition(self.progress, change.event)?;
        self.touched = true;
        if self.progress.state != before {
            self.since = Some(now.as_micros());
            self.held = None;
        }
        if self.progress.state.awaits_poller() && self.held.is_none() {
            self.held = change.hold.as_deref().map(|reason| held(reason, now));
        }
        self.next_try_at = match self.progress.state {
            BatchState::Delayed => change.retry_at.map(Timestamp::as_micros),
            _ => None,
        };
        if let Event::Status { .. } | Event::Evidence { .. } = change.event {
            self.checked_at = Some(now.as_micros());
        }
        if let Some(error) = &change.error {
            self.last_error = Some(presentable(error).into_owned());
        }
        Ok(())
    }

    fn status(&self) -> Option<&'static str> {
        self.progress.state.dlt_status().map(|status| status.as_str())
    }

    fn held_at(&self) -> Option<i64> {
        self.held.as_ref().map(|held| held.since.as_micros())
    }

    fn held_reason(&self) -> Option<&str> {
        self.held.as_ref().map(|held| held.reason.as_str())
    }
}

fn held(reason: &str, since: Timestamp) -> Hold {
    Hold { since, reason: presentable(reason).into_owned() }
}

fn lock_lanes(dialect: Dialect, keys: &BTreeSet<Key>) -> Statement<'_> {
    let lock = dialect.locking("for update of s");
    Statement::new(
        dialect,
        format!(
            "-- lock_lanes
             select s.service_id, s.lane, s.epoch, s.batch_seq, s.batch_id, {STANDING_COLUMNS}
             from {{x}} join batch_statuses s on s.service_id = x.service_id
             where s.batch_id = x.batch_id
             order by s.service_id, s.lane {lock}"
        ),
    )
    .rows(key_rows(keys))
}

fn write_lanes<'a>(dialect: Dialect, lanes: &[&'a Lane]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- write_lanes
         update batch_statuses as s
         set submitted = x.submitted, dlt_status = x.dlt_status, commit_proven = x.commit_proven,
             since = x.since, checked_at = x.checked_at,
             next_try_at = x.next_try_at, last_error = x.last_error,
             held_at = x.held_at, held_reason = x.held_reason
         from {x}
         where s.service_id = x.service_id and s.lane = x.lane
             and s.batch_seq = x.batch_seq and s.attempts = x.attempts",
    )
    .rows(
        lane_rows(lanes)
            .int("attempts", lanes.iter().map(|lane| attempts(lane.progress.attempts)))
            .bool("submitted", lanes.iter().map(|lane| lane.progress.state.submitted()))
            .bool("commit_proven", lanes.iter().map(|lane| lane.progress.commit_proven))
            .optional_text("dlt_status", lanes.iter().map(|lane| lane.status()))
            .optional_long("since", lanes.iter().map(|lane| lane.since))
            .optional_long("checked_at", lanes.iter().map(|lane| lane.checked_at))
            .optional_long("next_try_at", lanes.iter().map(|lane| lane.next_try_at))
            .optional_text("last_error", lanes.iter().map(|lane| lane.last_error.as_deref()))
            .optional_long("held_at", lanes.iter().map(|lane| lane.held_at()))
            .optional_text("held_reason", lanes.iter().map(|lane| lane.held_reason())),
    )
}

fn end_batches<'a>(dialect: Dialect, lanes: &[&'a Lane], now: Timestamp) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- end_batches
         update batches as b
         set ended_at = x.ended_at, dlt_status = x.dlt_status, attempts = x.attempts,
             submitted_at = x.submitted_at, checked_at = x.checked_at, last_error = x.last_error
         from {x}
         where b.seq = x.batch_seq and b.ended_at is null",
    )
    .rows(
        Rows::default()
            .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq))
            .long("ended_at", lanes.iter().map(|_| now.as_micros()))
            .optional_text("dlt_status", lanes.iter().map(|lane| lane.status()))
            .int("attempts", lanes.iter().map(|lane| attempts(lane.progress.attempts)))
            .optional_long("submitted_at", lanes.iter().map(|lane| lane.submitted_at))
            .optional_long("checked_at", lanes.iter().map(|lane| lane.checked_at))
            .optional_text("last_error", lanes.iter().map(|lane| lane.last_error.as_deref())),
    )
}

/// The next head is the first open batch after the one that ended: nothing older is ever added.
fn install_next_heads<'a>(dialect: Dialect, lanes: &[&'a Lane]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- install_next_heads
         update batch_statuses
         set (batch_seq, batch_id, created_at) = (
                 select n.seq, n.batch_id, n.created_at from batches n
                 where n.service_id = batch_statuses.service_id
                     and n.created_at > batch_statuses.created_at and n.ended_at is null
                 order by n.service_id, n.created_at limit 1),
             submitted = false, dlt_status = null, commit_proven = false, attempts = 0,
             submitted_at = null, since = null, checked_at = null, next_try_at = null, last_error = null,
             held_at = null, held_reason = null,
             ended = batch_statuses.ended + 1
         from {x}
         where batch_statuses.service_id = x.service_id and batch_statuses.lane = x.lane
             and batch_statuses.batch_seq = x.batch_seq
         returning batch_statuses.service_id, batch_statuses.lane, batch_statuses.busy",
    )
    .rows(lane_rows(lanes))
}

fn lane_rows<'a>(lanes: &[&'a Lane]) -> Rows<'a> {
    Rows::default()
        .text("service_id", lanes.iter().map(|lane| lane.service_id.as_str()))
        .int("lane", lanes.iter().map(|lane| lane.lane))
        .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq))
}

pub(crate) fn key_rows(keys: &BTreeSet<Key>) -> Rows<'_> {
    Rows::default()
        .text("service_id", keys.iter().map(|key| key.0.as_str()))
        .bytes("batch_id", keys.iter().map(|key| &key.1.as_bytes()[..]))
}

#[derive(QueryableByName)]
struct FreedRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Integer)]
    lane: i32,
    #[diesel(sql_type = Bool)]
    busy: bool,
}

#[derive(QueryableByName)]
struct LaneRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Integer)]
    lane: i32,
    #[diesel(sql_type = BigInt)]
    epoch: i64,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(embed)]
    standing: StandingRow,
}

impl LaneRow {
    fn into_lane(self) -> Result<Lane, StoreError> {
        Ok(Lane {
            progress: self.standing.progress()?,
            batch_id: batch_id(&self.batch_id)?,
            epoch: u64::try_from(self.epoch).map_err(StoreError::corrupt)?,
            service_id: service_id(&self.service_id)?,
            lane: self.lane,
            batch_seq: self.batch_seq,
            submitted_at: self.standing.submitted_at,
            since: self.standing.since,
            checked_at: self.standing.checked_at,
            next_try_at: self.standing.next_try_at,
            last_error: self.standing.last_error,
            held: self.standing.held.into_held(),
            touched: false,
        })
    }
}
