use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text},
};
use grid_batch_core::{
    BatchState, Event, HeaderId, Outcome, Progress, Receipt, ServiceId, Timestamp, TransitionError,
    transition,
};
use thiserror::Error;

use crate::{
    Store, StoreError,
    connection::Connection,
    dialect::Dialect,
    rows::{BATCH_COLUMNS, BatchRow, WITH_LANE, attempts, batch_id, progress},
    statement::{Rows, Statement},
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
    /// What happened.
    pub event: Event,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// Where the batch is delayed: until when.
    pub retry_at: Option<Timestamp>,
    /// Where the batch is invalid: why.
    pub receipts: Vec<Receipt>,
}

impl Change {
    /// The change that `event` alone makes, in whatever epoch.
    pub fn new(service_id: ServiceId, batch_id: HeaderId, event: Event) -> Self {
        let receipts = Vec::new();
        Self { service_id, batch_id, epoch: None, event, error: None, retry_at: None, receipts }
    }
}

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
}

impl Store {
    /// Records what happened to batches, all in one commit, and says of each what became of it.
    ///
    /// A batch that ends gives its place to the next one of its service.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<Recorded>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let mut connection = self.pools.write()?;
        connection.transaction(|connection| {
            self.lock_services(connection, changes)?;
            let mut lanes = self.lock_lanes(connection, changes)?;
            let waiting_or_ended = self.find_elsewhere(connection, changes, &lanes)?;
            let mut notes = Notes::default();
            let mut recorded: Vec<Recorded> = changes
                .iter()
                .map(|change| match lanes.get_mut(&key(change)) {
                    Some(lane) => lane.apply(change, now, &mut notes),
                    None => refuse(change, waiting_or_ended.get(&key(change))),
                })
                .collect();
            self.write_lanes(connection, &lanes)?;
            let with_next = self.end_batches(connection, &lanes, now)?;
            self.write_notes(connection, &notes)?;
            for (change, recorded) in changes.iter().zip(&mut recorded) {
                if let Recorded::Done { state, next_waits } = recorded {
                    *next_waits = state.is_terminal() && with_next.contains(&key(change));
                }
            }
            Ok(recorded)
        })
    }

    /// Where a batch may end, its service is locked as when batches are added: one that is added
    /// meanwhile is either seen as the next head, or sees that the service has none.
    fn lock_services(
        &self,
        connection: &mut Connection,
        changes: &[Change],
    ) -> Result<(), StoreError> {
        let services: BTreeSet<&str> = changes
            .iter()
            .filter(|change| change.event.may_end())
            .map(|change| change.service_id.as_str())
            .collect();
        let lock = self.pools.dialect().for_update("v");
        let statement = self
            .statement(format!(
                "-- lock_services
                 select v.service_id from {{x}} join services v on v.service_id = x.service_id
                 order by v.service_id {lock}"
            ))
            .rows(Rows::default().text("service_id", services));
        connection.load::<LockedRow>(&statement).map(drop)
    }

    fn lock_lanes(
        &self,
        connection: &mut Connection,
        changes: &[Change],
    ) -> Result<HashMap<Key, Lane>, StoreError> {
        let keys: BTreeSet<Key> = changes.iter().map(key).collect();
        let rows: Vec<LaneRow> = connection.load(&lock_lanes(self.pools.dialect(), &keys))?;
        rows.into_iter()
            .map(|row| {
                let lane = row.into_lane()?;
                Ok((lane.key(), lane))
            })
            .collect()
    }

    /// The progress of the batches that are in no lane: not yet their turn, or ended.
    fn find_elsewhere(
        &self,
        connection: &mut Connection,
        changes: &[Change],
        lanes: &HashMap<Key, Lane>,
    ) -> Result<HashMap<Key, Progress>, StoreError> {
        let keys: BTreeSet<Key> =
            changes.iter().map(key).filter(|key| !lanes.contains_key(key)).collect();
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
                Ok(((batch.service_id.as_str().to_owned(), batch.batch_id), batch.progress))
            })
            .collect()
    }

    fn write_lanes(
        &self,
        connection: &mut Connection,
        lanes: &HashMap<Key, Lane>,
    ) -> Result<(), StoreError> {
        let moved: Vec<&Lane> = lanes
            .values()
            .filter(|lane| lane.touched && !lane.progress.state.is_terminal())
            .collect();
        let written = connection.execute(&write_lanes(self.pools.dialect(), &moved))?;
        expect_all(written, moved.len())
    }

    /// Writes what became of the batches that ended, and installs the next heads: the services
    /// that have one are answered, with the batch that ended.
    fn end_batches(
        &self,
        connection: &mut Connection,
        lanes: &HashMap<Key, Lane>,
        now: Timestamp,
    ) -> Result<BTreeSet<Key>, StoreError> {
        let ended: Vec<&Lane> =
            lanes.values().filter(|lane| lane.progress.state.is_terminal()).collect();
        let dialect = self.pools.dialect();
        let written = connection.execute(&end_batches(dialect, &ended, now))?;
        expect_all(written, ended.len())?;
        let freed: Vec<FreedRow> = connection.load(&install_next_heads(dialect, &ended))?;
        expect_all(freed.len(), ended.len())?;
        let busy: BTreeSet<(String, i32)> = freed
            .into_iter()
            .filter(|row| row.busy)
            .map(|row| (row.service_id, row.lane))
            .collect();
        Ok(ended
            .into_iter()
            .filter(|lane| busy.contains(&(lane.service_id.clone(), lane.lane)))
            .map(Lane::key)
            .collect())
    }

    fn write_notes(
        &self,
        connection: &mut Connection,
        notes: &Notes<'_>,
    ) -> Result<(), StoreError> {
        for statement in notes.statements(self.pools.dialect()) {
            connection.execute(&statement)?;
        }
        Ok(())
    }
}

/// A batch, in the way in which the rows of a group are matched.
type Key = (String, HeaderId);

fn key(change: &Change) -> Key {
    (change.service_id.as_str().to_owned(), change.batch_id)
}

fn key_rows(keys: &BTreeSet<Key>) -> Rows<'_> {
    Rows::default()
        .text("service_id", keys.iter().map(|key| key.0.as_str()))
        .bytes("batch_id", keys.iter().map(|key| &key.1.as_bytes()[..]))
}

/// Rows that are locked cannot have moved: fewer would mean that the lock was none.
fn expect_all(written: usize, expected: usize) -> Result<(), StoreError> {
    if written == expected {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!("{written} of {expected} rows just locked")))
    }
}

/// What a change to a batch that is in no lane comes to.
fn refuse(change: &Change, progress: Option<&Progress>) -> Recorded {
    let Some(progress) = progress else {
        return Recorded::NotFound;
    };
    match transition(*progress, change.event) {
        Err(error) => Recorded::Stale(error.into()),
        // It is not its turn: nothing can have happened to it.
        Ok(_) => Recorded::Stale(Stale::Transition(TransitionError::NotDrawn {
            state: progress.state,
            event: change.event,
        })),
    }
}

/// A lane with the batch in it, locked to the end of the transaction.
pub(crate) struct Lane {
    service_id: String,
    lane: i32,
    epoch: u64,
    batch_seq: i64,
    batch_id: HeaderId,
    progress: Progress,
    submitted_at: Option<i64>,
    checked_at: Option<i64>,
    next_try_at: Option<i64>,
    last_error: Option<String>,
    touched: bool,
}

impl Lane {
    fn key(&self) -> Key {
        (self.service_id.clone(), self.batch_id)
    }

    fn apply<'a>(&mut self, change: &'a Change, now: Timestamp, notes: &mut Notes<'a>) -> Recorded {
        if let Some(given) = change.epoch
            && given != self.epoch
        {
            return Recorded::Stale(Stale::Epoch { given, present: self.epoch });
        }
        let next = match transition(self.progress, change.event) {
            Ok(next) => next,
            Err(error) => return Recorded::Stale(error.into()),
        };
        self.progress = next;
        self.touched = true;
        let error = change.error.as_deref().map(presentable);
        self.next_try_at = match next.state {
            BatchState::Delayed => change.retry_at.map(Timestamp::as_micros),
            _ => None,
        };
        if let Event::Status(_) | Event::Evidence { .. } = change.event {
            self.checked_at = Some(now.as_micros());
        }
        if let Some(error) = &error {
            self.last_error = Some(error.clone().into_owned());
        }
        notes.take(self, change, error, now);
        Recorded::Done { state: next.state, next_waits: false }
    }

    fn status(&self) -> Option<&'static str> {
        self.progress.state.dlt_status().map(|status| status.as_str())
    }
}

/// What is written down beside the state: attempts that failed, and reasons.
#[derive(Default)]
struct Notes<'a> {
    attempts: Vec<AttemptNote<'a>>,
    receipts: Vec<ReceiptNote<'a>>,
}

struct AttemptNote<'a> {
    batch_seq: i64,
    attempt: i32,
    submitted_at: Option<i64>,
    ended_at: i64,
    outcome: String,
    error: Option<Cow<'a, str>>,
    next_try_at: Option<i64>,
}

struct ReceiptNote<'a> {
    batch_seq: i64,
    position: i32,
    transaction_id: Option<&'a [u8]>,
    error_message: Cow<'a, str>,
    error_data: &'a [u8],
}

impl<'a> Notes<'a> {
    /// So many failed attempts of one batch are kept, the latest.
    const ATTEMPTS_KEPT: i32 = 100;

    fn take(
        &mut self,
        lane: &Lane,
        change: &'a Change,
        error: Option<Cow<'a, str>>,
        now: Timestamp,
    ) {
        if lane.progress.state == BatchState::Invalid {
            self.take_receipts(lane.batch_seq, change, error.clone());
        }
        let outcome = match change.event {
            Event::Outcome { outcome: Outcome::Accepted, .. } => return,
            Event::Outcome { outcome, .. } => outcome.to_string(),
            Event::OwnerLost { .. } => "owner lost".to_owned(),
            _ => return,
        };
        self.attempts.push(AttemptNote {
            batch_seq: lane.batch_seq,
            attempt: attempts(lane.progress.attempts),
            submitted_at: lane.submitted_at,
            ended_at: now.as_micros(),
            outcome,
            error,
            next_try_at: lane.next_try_at,
        });
    }

    /// There is always a reason, if only that none was given.
    fn take_receipts(&mut self, batch_seq: i64, change: &'a Change, error: Option<Cow<'a, str>>) {
        if change.receipts.is_empty() {
            let error_message = error.unwrap_or("the ledger gave no reason".into());
            self.receipts.push(ReceiptNote {
                batch_seq,
                position: 0,
                transaction_id: None,
                error_message,
                error_data: &[],
            });
        }
        let receipts = (0..).zip(&change.receipts).map(|(position, receipt)| ReceiptNote {
            batch_seq,
            position,
            transaction_id: receipt.transaction_id.as_ref().map(|id| &id.as_bytes()[..]),
            error_message: presentable(&receipt.error_message),
            error_data: &receipt.error_data,
        });
        self.receipts.extend(receipts);
    }

    fn statements(&self, dialect: Dialect) -> [Statement<'_>; 3] {
        let forget = Statement::new(
            dialect,
            "-- forget_attempts
             delete from submission_attempts where exists (
                 select 1 from {x} where submission_attempts.batch_seq = x.batch_seq
                     and submission_attempts.attempt <= x.attempt)",
        )
        .rows(
            Rows::default()
                .long("batch_seq", self.attempts_to_forget().map(|note| note.batch_seq))
                .int("attempt", self.attempts_to_forget().map(|n| n.attempt - Self::ATTEMPTS_KEPT)),
        );
        let attempts = Statement::new(
            dialect,
            "-- insert_attempts
             insert into submission_attempts
                 (batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at)
             select batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at from {x}",
        )
        .rows(
            Rows::default()
                .long("batch_seq", self.attempts.iter().map(|note| note.batch_seq))
                .int("attempt", self.attempts.iter().map(|note| note.attempt))
                .optional_long("submitted_at", self.attempts.iter().map(|note| note.submitted_at))
                .long("ended_at", self.attempts.iter().map(|note| note.ended_at))
                .text("outcome", self.attempts.iter().map(|note| note.outcome.as_str()))
                .optional_text("error", self.attempts.iter().map(|note| note.error.as_deref()))
                .optional_long("next_try_at", self.attempts.iter().map(|note| note.next_try_at)),
        );
        let receipts = Statement::new(
            dialect,
            "-- insert_receipts
             insert into transaction_receipts
                 (batch_seq, position, transaction_id, error_message, error_data)
             select batch_seq, position, transaction_id, error_message, error_data from {x}",
        )
        .rows(
            Rows::default()
                .long("batch_seq", self.receipts.iter().map(|note| note.batch_seq))
                .int("position", self.receipts.iter().map(|note| note.position))
                .optional_bytes("transaction_id", self.receipts.iter().map(|n| n.transaction_id))
                .text("error_message", self.receipts.iter().map(|note| note.error_message.as_ref()))
                .bytes("error_data", self.receipts.iter().map(|note| note.error_data)),
        );
        [forget, attempts, receipts]
    }

    fn attempts_to_forget(&self) -> impl Iterator<Item = &AttemptNote<'a>> {
        self.attempts.iter().filter(|note| note.attempt > Self::ATTEMPTS_KEPT)
    }
}

/// A ledger's words as they can be kept: without what PostgreSQL refuses, and not too many.
fn presentable(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 4096;
    let cut = &text[..text.floor_char_boundary(LONGEST)];
    if cut.contains('\0') { cut.replace('\0', "\u{fffd}").into() } else { cut.into() }
}

pub(crate) fn lock_lanes(dialect: Dialect, keys: &BTreeSet<Key>) -> Statement<'_> {
    let lock = dialect.for_update("s");
    Statement::new(
        dialect,
        format!(
            "-- lock_lanes
             select s.service_id, s.lane, s.epoch, s.batch_seq, s.batch_id,
                 s.submitted, s.dlt_status, s.attempts, s.submitted_at, s.checked_at,
                 s.next_try_at, s.last_error
             from {{x}} join batch_statuses s on s.service_id = x.service_id
             where s.batch_id = x.batch_id
             order by s.service_id, s.lane {lock}"
        ),
    )
    .rows(key_rows(keys))
}

pub(crate) fn write_lanes<'a>(dialect: Dialect, lanes: &[&'a Lane]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- write_lanes
         update batch_statuses as s
         set submitted = x.submitted, dlt_status = x.dlt_status, checked_at = x.checked_at,
             next_try_at = x.next_try_at, last_error = x.last_error
         from {x}
         where s.service_id = x.service_id and s.lane = x.lane
             and s.batch_seq = x.batch_seq and s.attempts = x.attempts",
    )
    .rows(
        lane_rows(lanes)
            .int("attempts", lanes.iter().map(|lane| attempts(lane.progress.attempts)))
            .bool("submitted", lanes.iter().map(|lane| lane.progress.state.submitted()))
            .optional_text("dlt_status", lanes.iter().map(|lane| lane.status()))
            .optional_long("checked_at", lanes.iter().map(|lane| lane.checked_at))
            .optional_long("next_try_at", lanes.iter().map(|lane| lane.next_try_at))
            .optional_text("last_error", lanes.iter().map(|lane| lane.last_error.as_deref())),
    )
}

pub(crate) fn end_batches<'a>(
    dialect: Dialect,
    lanes: &[&'a Lane],
    now: Timestamp,
) -> Statement<'a> {
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
pub(crate) fn install_next_heads<'a>(dialect: Dialect, lanes: &[&'a Lane]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- install_next_heads
         update batch_statuses
         set (batch_seq, batch_id, created_at) = (
                 select n.seq, n.batch_id, n.created_at from batches n
                 where n.service_id = batch_statuses.service_id
                     and n.created_at > batch_statuses.created_at and n.ended_at is null
                 order by n.service_id, n.created_at limit 1),
             submitted = false, dlt_status = null, attempts = 0, submitted_at = null,
             checked_at = null, next_try_at = null, last_error = null,
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

#[derive(QueryableByName)]
struct LockedRow {
    #[diesel(sql_type = Text)]
    #[expect(dead_code, reason = "the row is read to lock it")]
    service_id: String,
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
    #[diesel(sql_type = Bool)]
    submitted: bool,
    #[diesel(sql_type = Nullable<Text>)]
    dlt_status: Option<String>,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = Nullable<BigInt>)]
    submitted_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    checked_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    next_try_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    last_error: Option<String>,
}

impl LaneRow {
    fn into_lane(self) -> Result<Lane, StoreError> {
        Ok(Lane {
            progress: progress(self.submitted, self.dlt_status.as_deref(), self.attempts)?,
            batch_id: batch_id(&self.batch_id)?,
            epoch: u64::try_from(self.epoch).map_err(StoreError::corrupt)?,
            service_id: self.service_id,
            lane: self.lane,
            batch_seq: self.batch_seq,
            submitted_at: self.submitted_at,
            checked_at: self.checked_at,
            next_try_at: self.next_try_at,
            last_error: self.last_error,
            touched: false,
        })
    }
}
