use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::{
    AttemptId, BatchId, BatchState, Change, Event, HeaderId, LedgerStatus, PollPace, ServiceId,
    Timestamp,
};

use crate::{
    Store, StoreError,
    dialect::Dialect,
    rows::{HandedOutRow, claimed_by, in_states, limit, names},
    statement::Statement,
};

/// A batch that the ledger is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
    /// The attempt that is under way, counted from 1.
    pub attempt: u32,
    /// The service's epoch.
    pub epoch: u64,
    text: String,
}

impl PendingBatch {
    pub(crate) fn new(service_id: ServiceId, batch_id: HeaderId, attempt: u32, epoch: u64) -> Self {
        Self { service_id, batch_id, attempt, epoch, text: batch_id.to_string() }
    }
}

impl BatchId for PendingBatch {
    fn get_id(&self) -> &str {
        &self.text
    }

    fn get_service_id(&self) -> &str {
        self.service_id.as_str()
    }
}

impl Store {
    pub(crate) fn due(
        &self,
        instance: &str,
        now: Timestamp,
        pace: PollPace,
        limit: usize,
    ) -> Result<Vec<PendingBatch>, StoreError> {
        let statement = due(self.pools.dialect(), instance, now, pace, limit);
        let rows: Vec<PendingRow> = self.pools.read()?.load(&statement)?;
        rows.iter().map(PendingRow::read).collect()
    }

    pub(crate) fn pending_of(
        &self,
        instance: &str,
        services: &[ServiceId],
        limit: usize,
    ) -> Result<Vec<PendingBatch>, StoreError> {
        let statement = pending_of(self.pools.dialect(), instance, services);
        let mut rows: Vec<PendingRow> = self.pools.read()?.load(&statement)?;
        rows.sort_by(|one, other| one.place().cmp(&other.place()));
        rows.iter().take(limit).map(PendingRow::read).collect()
    }

    pub(crate) fn mark_checked(&self, batches: &[PendingBatch]) -> Result<(), StoreError> {
        let nothing_new = |batch: &PendingBatch| {
            let event =
                Event::Status { attempt: Some(batch.attempt), status: LedgerStatus::NotReported };
            let change = Change::new(batch.service_id.clone(), batch.batch_id, event);
            Change { epoch: Some(batch.epoch), ..change }
        };
        self.record(&batches.iter().map(nothing_new).collect::<Vec<_>>()).map(drop)
    }
}

const PENDING_COLUMNS: &str =
    "s.service_id, s.batch_id, s.attempts, s.epoch, s.checked_at, s.submitted_at";

/// Core's [`PollPace::next_check`], turned round so that no sum overflows: with `part` for
/// `(last - submitted_at) / 4`, next is `last + max(interval, min(longest, part))`.
///
/// Reads the lanes that are busy and sorts them: their number is that of the services with open
/// batches, whatever waits behind them. An index in this order would have to follow each change.
fn due<'a>(
    dialect: Dialect,
    instance: &'a str,
    now: Timestamp,
    pace: PollPace,
    count: usize,
) -> Statement<'a> {
    let claimed = claimed_by("s");
    let states = in_states("s", BatchState::awaits_poller);
    let last = "coalesce(s.checked_at, s.submitted_at)";
    let part = PollPace::PART;
    let ago = |pause: Duration| {
        now.as_micros().saturating_sub(i64::try_from(pause.as_micros()).unwrap_or(i64::MAX))
    };
    Statement::new(
        dialect,
        format!(
            "-- due
             select {PENDING_COLUMNS} from batch_statuses s
             where s.busy and {states} and {last} <= ? and (
                 {last} <= ?
                 or (s.held_at is null and {last} + ({last} - s.submitted_at) / {part} <= ?)) and {claimed}
             order by s.checked_at nulls first, s.submitted_at, s.service_id limit ?"
        ),
    )
    .long(ago(pace.interval))
    .long(ago(pace.longest))
    .long(now.as_micros())
    .text(instance)
    .long(limit(count))
}

fn pending_of<'a>(dialect: Dialect, instance: &'a str, services: &'a [ServiceId]) -> Statement<'a> {
    let claimed = claimed_by("s");
    let states = in_states("s", BatchState::awaits_poller);
    Statement::new(
        dialect,
        format!(
            "-- pending_of
             select {PENDING_COLUMNS}
             from {{x}} join batch_statuses s on s.service_id = x.service_id
             where {states} and {claimed}"
        ),
    )
    .rows(names(services))
    .text(instance)
}

#[derive(QueryableByName)]
struct PendingRow {
    #[diesel(embed)]
    handed_out: HandedOutRow,
    #[diesel(sql_type = Nullable<BigInt>)]
    checked_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    submitted_at: Option<i64>,
}

impl PendingRow {
    /// By what they are ordered.
    fn place(&self) -> (Option<i64>, Option<i64>, &str) {
        (self.checked_at, self.submitted_at, &self.handed_out.service_id)
    }

    fn read(&self) -> Result<PendingBatch, StoreError> {
        let (service_id, batch_id, AttemptId { attempt, epoch }) = self.handed_out.read()?;
        Ok(PendingBatch::new(service_id, batch_id, attempt, epoch))
    }
}
