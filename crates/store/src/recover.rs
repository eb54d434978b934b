use diesel::{QueryableByName, sql_types::Integer};
use grid_batch_core::{BatchState, Event, Ticket, Timestamp};

use crate::{
    Change, Recorded, Store, StoreError,
    rows::{HandedOutRow, in_states},
    statement::Statement,
};

/// How many are read and written at once.
const STEP: usize = 500;

impl Store {
    /// Puts batches in doubt that were handed to a submitter at `submitted_by` or before and are
    /// still said to be with it; answers how many those were.
    ///
    /// After a start, where nobody else works on the database, that is all of them: whoever had
    /// them is gone, and may have sent them. While submitters are at work it is those that were
    /// handed out longer ago than any submission lasts: a round may have been marked whose answer
    /// never came back, and nobody has it.
    pub fn recover(&self, submitted_by: Timestamp) -> Result<usize, StoreError> {
        let mut recovered = 0;
        let mut after = (String::new(), 0);
        loop {
            let orphans: Vec<OrphanRow> =
                self.pools.read()?.load(&self.orphans(submitted_by, &after))?;
            let Some(last) = orphans.last() else { return Ok(recovered) };
            after = (last.handed_out.service_id.clone(), last.lane);
            let changes =
                orphans.into_iter().map(OrphanRow::into_change).collect::<Result<Vec<_>, _>>()?;
            let done = self.record(&changes)?;
            recovered += done.iter().filter(|done| matches!(done, Recorded::Done { .. })).count();
        }
    }

    fn orphans<'a>(&self, submitted_by: Timestamp, after: &'a (String, i32)) -> Statement<'a> {
        let with_submitter = in_states("s", |state| state == BatchState::Submitting);
        self.statement(format!(
            "-- orphans
             select s.service_id, s.lane, s.batch_id, s.attempts, s.epoch from batch_statuses s
             where s.busy and {with_submitter} and s.submitted_at <= ?
                 and (s.service_id, s.lane) > (?, ?)
             order by s.service_id, s.lane limit {STEP}"
        ))
        .long(submitted_by.as_micros())
        .text(&after.0)
        .long(after.1.into())
    }
}

#[derive(QueryableByName)]
struct OrphanRow {
    #[diesel(embed)]
    handed_out: HandedOutRow,
    #[diesel(sql_type = Integer)]
    lane: i32,
}

impl OrphanRow {
    fn into_change(self) -> Result<Change, StoreError> {
        let (service_id, batch_id, Ticket { attempt, epoch }) = self.handed_out.read()?;
        Ok(Change {
            epoch: Some(epoch),
            error: Some("the submitter that had it is gone, and may have sent it".to_owned()),
            ..Change::new(service_id, batch_id, Event::OwnerLost { attempt })
        })
    }
}
