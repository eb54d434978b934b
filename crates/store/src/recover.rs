use diesel::{QueryableByName, sql_types::Integer};
use grid_batch_core::{AttemptId, BatchState, Change, ChangeOutcome, Event, Timestamp};

use crate::{
    Store, StoreError,
    rows::{HandedOutRow, claimed_by, in_states},
    statement::Statement,
};

/// How many are read and written at once.
const STEP: usize = 500;

impl Store {
    /// Puts batches in doubt that were handed to a submitter at `submitted_by` or before and are
    /// still said to be with it; answers how many those were.
    pub(crate) fn recover(
        &self,
        instance: &str,
        submitted_by: Timestamp,
    ) -> Result<usize, StoreError> {
        let mut recovered = 0;
        let mut after = (String::new(), 0);
        loop {
            let orphans: Vec<OrphanRow> =
                self.pools.read()?.load(&self.orphans(instance, submitted_by, &after))?;
            let Some(last) = orphans.last() else { return Ok(recovered) };
            after = (last.handed_out.service_id.clone(), last.lane);
            let lost = |orphan: &OrphanRow| owner_lost(&orphan.handed_out);
            let changes = orphans.iter().map(lost).collect::<Result<Vec<_>, _>>()?;
            let done = self.record(&changes)?;
            recovered +=
                done.iter().filter(|done| matches!(done, ChangeOutcome::Applied { .. })).count();
        }
    }

    fn orphans<'a>(
        &self,
        instance: &'a str,
        submitted_by: Timestamp,
        after: &'a (String, i32),
    ) -> Statement<'a> {
        let claimed = claimed_by("s");
        let with_submitter = with_submitter("s");
        self.statement(format!(
            "-- orphans
             select s.service_id, s.lane, s.batch_id, s.attempts, s.epoch from batch_statuses s
             where s.busy and {with_submitter} and s.submitted_at <= ?
                 and (s.service_id, s.lane) > (?, ?) and {claimed}
             order by s.service_id, s.lane limit {STEP}"
        ))
        .long(submitted_by.as_micros())
        .text(&after.0)
        .long(after.1.into())
        .text(instance)
    }
}

#[derive(QueryableByName)]
struct OrphanRow {
    #[diesel(embed)]
    handed_out: HandedOutRow,
    #[diesel(sql_type = Integer)]
    lane: i32,
}

/// The condition that the batch of `lane` is said to be with a submitter.
pub(crate) fn with_submitter(lane: &str) -> String {
    in_states(lane, |state| state == BatchState::Submitting)
}

/// The condition that no lane of the service of `row` is as `lane` says of the lane `s`.
///
/// It counts: a planner makes a join of `not exists`, and may then read all lanes.
pub(crate) fn no_lane(row: &str, lane: &str) -> String {
    format!(
        "(select count(*) from batch_statuses s where s.service_id = {row}.service_id and {lane}) = 0"
    )
}

/// Nobody will report on this attempt any more.
pub(crate) fn owner_lost(handed_out: &HandedOutRow) -> Result<Change, StoreError> {
    let (service_id, batch_id, AttemptId { attempt, epoch }) = handed_out.read()?;
    Ok(Change {
        epoch: Some(epoch),
        error: Some("the submitter that had it is gone, and may have sent it".to_owned()),
        ..Change::new(service_id, batch_id, Event::OwnerLost { attempt })
    })
}
