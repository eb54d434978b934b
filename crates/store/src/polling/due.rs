use std::time::Duration;

use diesel::QueryableByName;
use grid_batch_core::batches::{BatchState, DltStatus, LedgerStatus};
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::polling::{BatchId, PollPace};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use crate::sql::{
    Statement, Store, StoreError, result_row,
    rows::{AttemptRow, claimed_by, in_states, limit, service_rows},
};

/// A batch that the ledger may be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: ItemId,
    /// The current attempt, counted from 1.
    pub attempt: u32,
    /// The epoch of the service.
    pub epoch: u64,
    /// Whether it is held for an operator.
    pub held: bool,
    pub(super) recorded: RecordedStatus,
    id_text: String,
}

/// What was recorded about the last answer for a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordedStatus {
    /// The status that does not change the batch; `None`: any status may change it.
    status: Option<LedgerStatus>,
    /// When the ledger was last asked.
    checked_at: Option<Timestamp>,
}

impl RecordedStatus {
    /// How often an answer that changes nothing is recorded. A service may have a hundred batches under way and be
    /// polled several times per second.
    const PAUSE: Duration = Duration::from_secs(1);

    /// Whether an answer with this status need not be recorded now.
    pub(super) fn covers(&self, status: LedgerStatus, now: Timestamp) -> bool {
        let is_recent = |at: Timestamp| now >= at && now.since(at) < Self::PAUSE;
        let changes_nothing =
            self.status.is_some_and(|same| status == same || status == LedgerStatus::NotReported);
        changes_nothing && self.checked_at.is_some_and(is_recent)
    }
}

impl PendingBatch {
    pub(crate) fn new(service_id: ServiceId, batch_id: ItemId, attempt: u32, epoch: u64) -> Self {
        let id_text = batch_id.to_string();
        let recorded = RecordedStatus::default();
        Self { service_id, batch_id, attempt, epoch, held: false, recorded, id_text }
    }
}

impl BatchId for PendingBatch {
    fn get_id(&self) -> &str {
        &self.id_text
    }

    fn get_service_id(&self) -> &str {
        self.service_id.as_str()
    }

    fn is_held(&self) -> bool {
        self.held
    }
}

/// Up to `count` due batches of claimed services: the least recently checked first, then in the order of submission. A
/// held batch is due at the longest interval. A batch that was checked or submitted in the future is due, because the
/// clock was set back since.
///
/// Selects by core's [`PollPace::next_check`], rearranged so that no sum overflows: with `part` for
/// `(last - submitted_at) / PART`, the next check is at `last + max(interval, min(longest, part))`.
///
/// It reads and sorts all busy lanes. There are as many as services with open batches, however long their queues are.
/// An index in this order would have to change with each check.
pub(super) fn due_batches(
    store: &Store,
    instance: &str,
    now: Timestamp,
    pace: PollPace,
    count: usize,
) -> Result<Vec<PendingBatch>, StoreError> {
    let (states, claimed) = (in_states("s", BatchState::awaits_poller), claimed_by("s"));
    let last = "coalesce(s.checked_at, s.submitted_at)";
    let part = PollPace::PART;
    let ago = |interval: Duration| {
        now.as_micros().saturating_sub(i64::try_from(interval.as_micros()).unwrap_or(i64::MAX))
    };
    let statement = Statement::new(format!(
        "-- due_batches
         select {PENDING_COLUMNS} from lanes s
         where s.busy and {states} and ({last} > ? or ({last} <= ? and (
             {last} <= ?
             or (s.held_at is null and {last} + ({last} - s.submitted_at) / {part} <= ?))))
             and {claimed}
         order by s.checked_at nulls first, s.submitted_at, s.service_id limit ?"
    ))
    .long(now.as_micros())
    .long(ago(pace.interval))
    .long(ago(pace.longest))
    .long(now.as_micros())
    .text(/* claimant */ instance)
    .long(limit(count));
    let rows: Vec<PendingRow> = store.pools.read()?.load(&statement)?;
    rows.iter().map(PendingRow::read).collect()
}

/// Up to `count` batches of these services, due or not, in the same order.
pub(super) fn pending_batches(
    store: &Store,
    instance: &str,
    services: &[ServiceId],
    count: usize,
) -> Result<Vec<PendingBatch>, StoreError> {
    let (states, claimed) = (in_states("s", BatchState::awaits_poller), claimed_by("s"));
    let statement = Statement::new(format!(
        "-- pending_batches
         select {PENDING_COLUMNS}
         from {{x}} join lanes s on s.service_id = x.service_id
         where {states} and {claimed}"
    ))
    .rows(service_rows(services).in_chunks())
    .text(/* claimant */ instance);
    let mut rows: Vec<PendingRow> = store.pools.read()?.load(&statement)?;
    rows.sort_by(|one, other| one.order().cmp(&other.order()));
    rows.iter().take(count).map(PendingRow::read).collect()
}

const PENDING_COLUMNS: &str =
    "s.service_id, s.batch_id, s.attempts, s.epoch, s.checked_at, s.submitted_at, s.held_at,
                 s.dlt_status, s.invalid_reported";

result_row! {
    struct PendingRow {
        checked_at: Option<i64>,
        submitted_at: Option<i64>,
        held_at: Option<i64>,
        dlt_status: Option<String>,
        invalid_reported: bool,
        #[diesel(embed)]
        attempt: AttemptRow,
    }
}

impl PendingRow {
    fn order(&self) -> (Option<i64>, Option<i64>, &str) {
        (self.checked_at, self.submitted_at, &self.attempt.service_id)
    }

    fn read(&self) -> Result<PendingBatch, StoreError> {
        let (service_id, batch_id, AttemptId { attempt, epoch }) = self.attempt.read()?;
        let batch = PendingBatch::new(service_id, batch_id, attempt, epoch);
        Ok(PendingBatch { held: self.held_at.is_some(), recorded: self.recorded(), ..batch })
    }

    fn recorded(&self) -> RecordedStatus {
        let status = [
            (DltStatus::Unknown, LedgerStatus::NotReported),
            (DltStatus::Pending, LedgerStatus::Pending),
            (DltStatus::Valid, LedgerStatus::Valid),
        ];
        let is_same =
            |(stored, _): &(DltStatus, _)| self.dlt_status.as_deref() == Some(stored.as_str());
        let status = status.into_iter().find(is_same).filter(|_| !self.invalid_reported);
        RecordedStatus {
            status: status.map(|(_, reported)| reported),
            checked_at: self.checked_at.map(Timestamp::from_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    #[test]
    fn answer_that_changes_nothing_is_recorded_once_a_second() {
        use LedgerStatus::{Committed, Invalid, NotReported, Pending, Valid};
        let recorded = RecordedStatus { status: Some(Pending), checked_at: Some(at(5_000)) };
        let covered =
            |status| [4_999, 5_000, 5_999, 6_000].map(|now| recorded.covers(status, at(now)));
        for status in [Pending, NotReported] {
            assert_eq!(covered(status), [false, true, true, false], "{status:?}");
        }
        for status in [Valid, Committed, Invalid] {
            assert_eq!(covered(status), [false; 4], "{status:?}");
        }
        let first = RecordedStatus { checked_at: None, ..recorded };
        assert!(!first.covers(Pending, at(5_000)), "the first answer");
        let invalid = RecordedStatus { status: None, ..recorded };
        assert!(!invalid.covers(NotReported, at(5_000)), "an attempt was reported as invalid");
    }
}
