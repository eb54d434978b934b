//! Batches that must not be sent because of another one.

use std::collections::HashMap;

use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Decision, Event};
use grid_batch_core::queue::Strategy;
use grid_batch_core::{ServiceId, Timestamp};

use super::{AttemptLog, WaitingEnd, end_all_waiting, record_locked};
use crate::{
    halts::{HaltOrigin, Stops, set_ends_until},
    scheduling::EndReason,
    sql::{
        Connection, Rows, Scheduler, StoreError, result_row,
        rows::{batch_id, service_id},
    },
};

/// A batch that must not be sent, and the reason.
pub(crate) type Unsendable = (i64, EndReason);

/// Ends batches of locked services that must not be sent, unless they may be at the ledger. Returns how many ended.
pub(crate) fn end_unsendable(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[Unsendable],
    now: Timestamp,
) -> Result<usize, StoreError> {
    if batches.is_empty() {
        return Ok(0);
    }
    let named = load_names(connection, batches)?;
    let mut waiting = Vec::new();
    let mut in_lanes = Vec::new();
    for (seq, reason) in batches {
        let Some(name) = named.get(seq) else { continue };
        let change = name.change(reason)?;
        match name.attempts {
            Some(_) => in_lanes.push((*seq, reason, change)),
            None => waiting.push((*seq, name.stops(scheduler, reason, &change.service_id), change)),
        }
    }
    let ends: Vec<WaitingEnd<'_>> = waiting
        .iter()
        .map(|(batch_seq, stops, change)| WaitingEnd {
            batch_seq: *batch_seq,
            submitted: None,
            change,
            stops: *stops,
        })
        .collect();
    let mut outcomes = end_all_waiting(connection, scheduler, &ends, now)?;
    let changes: Vec<Change> = in_lanes.iter().map(|(_, _, change)| change.clone()).collect();
    outcomes.extend(record_locked(connection, scheduler, &changes, AttemptLog::default(), now)?);
    let all = waiting.iter().map(|(.., change)| change).chain(&changes);
    let ended: Vec<_> = all
        .zip(outcomes)
        .filter(|(_, outcome)| matches!(outcome, ChangeOutcome::Applied { .. }))
        .map(|(change, _)| (change.batch_id, BatchState::Invalid))
        .collect();
    let count = ended.len();
    scheduler.add_ended(ended);
    for (seq, reason, _) in in_lanes {
        if let EndReason::Halt { until } = reason {
            set_ends_until(connection, seq, *until, HaltOrigin::Following)?;
        }
    }
    Ok(count)
}

/// The text for a batch that was stored before the database was restored.
const MAY_HAVE_BEEN_SENT: &str = "the batch was stored before the database was restored, and may have been \
    sent in the time that was lost: look for it at the ledger";

/// The names of open batches, by their numbers.
fn load_names(
    connection: &mut Connection,
    batches: &[Unsendable],
) -> Result<HashMap<i64, NameRow>, StoreError> {
    let rows: Vec<NameRow> = connection.load_rows(
        "-- find_unsendable
         select b.seq, b.service_id, b.batch_id, s.attempts,
             (select o.service_id from batches o where o.seq = x.blocker_seq) as blocker_service_id,
             coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false)
                 as restored
         from {x} join batches b on b.seq = x.batch_seq
         left join lanes s on s.service_id = b.service_id and s.batch_seq = b.seq
         where b.ended_at is null",
        Rows::default().long("batch_seq", batches.iter().map(|(seq, _)| *seq)).optional_long(
            "blocker_seq",
            batches.iter().map(|(_, reason)| match reason {
                EndReason::Dependency(invalid) => Some(invalid.seq),
                EndReason::Halt { .. } => None,
            }),
        ),
    )?;
    Ok(rows.into_iter().map(|row| (row.seq, row)).collect())
}

result_row! {
    struct NameRow {
        seq: i64,
        service_id: String,
        batch_id: Vec<u8>,
        /// Set if the batch is in a lane.
        attempts: Option<i32>,
        blocker_service_id: Option<String>,
        /// Whether it was stored before the database was restored.
        restored: bool,
    }
}

impl NameRow {
    fn change(&self, reason: &EndReason) -> Result<Change, StoreError> {
        let attempt = u32::try_from(self.attempts.unwrap_or(0)).map_err(StoreError::corrupt)?;
        let (event, error) = match reason {
            EndReason::Dependency(invalid) => (Event::DependencyInvalid, invalid.reason()),
            EndReason::Halt { .. } => {
                let event = Event::Decided { attempt, decision: Decision::Invalid };
                (event, "an operator ended what follows an invalid batch".to_owned())
            }
        };
        let sending = match (attempt, self.restored) {
            (0, false) => "the batch was not sent",
            (0, true) => MAY_HAVE_BEEN_SENT,
            _ => "the batch is not sent again",
        };
        let (service_id, id) = (service_id(&self.service_id)?, batch_id(&self.batch_id)?);
        let error = format!("{error}; {sending}");
        Ok(Change { error: Some(error), ..Change::new(service_id, id, event) })
    }

    /// Whether the batch stops others; `None`: the policy of its service decides. If an invalid batch of the same
    /// service is the reason for its end, an operator has already decided about the batches that the invalid one stops.
    fn stops(
        &self,
        scheduler: &Scheduler,
        reason: &EndReason,
        service_id: &ServiceId,
    ) -> Option<Stops> {
        match reason {
            EndReason::Halt { until } if !scheduler.strategy(service_id).keeps_order() => {
                Some(Stops::FollowingForGood(*until))
            }
            EndReason::Halt { .. } => Some(Stops::Nothing),
            EndReason::Dependency(_) => {
                let same = self.blocker_service_id.as_deref() == Some(self.service_id.as_str());
                same.then_some(Stops::Nothing)
            }
        }
    }
}
