use diesel::{QueryableByName, sql_types::Integer};
use grid_batch_core::{AttemptId, Change, ChangeOutcome, Event, Timestamp};

use crate::{
    batch::record,
    sql::{
        Dialect, Statement, Store, StoreError,
        rows::{AttemptRow, claimed_by, with_submitter},
    },
};

/// The number of batches that are read and recovered in one step.
const STEP: usize = 500;

pub(crate) fn recover(
    store: &Store,
    instance: &str,
    taken_by: Timestamp,
) -> Result<usize, StoreError> {
    let mut recovered = 0;
    let mut after = (String::new(), 0);
    loop {
        let statement = find_orphans(store.dialect(), instance, taken_by, &after);
        let orphans: Vec<OrphanRow> = store.pools.read()?.load(&statement)?;
        let Some(last) = orphans.last() else { return Ok(recovered) };
        after = (last.attempt.service_id.clone(), last.lane);
        let changes = orphans
            .iter()
            .map(|orphan| owner_lost(&orphan.attempt))
            .collect::<Result<Vec<_>, _>>()?;
        let outcomes = record(store, &changes)?;
        recovered += outcomes
            .iter()
            .filter(|outcome| matches!(outcome, ChangeOutcome::Applied { .. }))
            .count();
    }
}

/// The change that puts a batch in doubt because no submitter will report on its attempt.
pub(crate) fn owner_lost(attempt: &AttemptRow) -> Result<Change, StoreError> {
    let (service_id, batch_id, AttemptId { attempt, epoch }) = attempt.read()?;
    Ok(Change {
        epoch: Some(epoch),
        error: Some("the submitter stopped before it reported an outcome".to_owned()),
        ..Change::new(service_id, batch_id, Event::OwnerLost { attempt })
    })
}

fn find_orphans<'a>(
    dialect: Dialect,
    instance: &'a str,
    taken_by: Timestamp,
    after: &'a (String, i32),
) -> Statement<'a> {
    let (with_submitter, claimed) = (with_submitter("s"), claimed_by("s"));
    Statement::new(
        dialect,
        format!(
            "-- find_orphans
             select s.service_id, s.lane, s.batch_id, s.attempts, s.epoch from lanes s
             where s.busy and {with_submitter} and s.submitted_at <= ?
                 and (s.service_id, s.lane) > (?, ?) and {claimed}
             order by s.service_id, s.lane limit {STEP}"
        ),
    )
    .long(taken_by.as_micros())
    .text(&after.0)
    .long(after.1.into())
    .text(/* claimant */ instance)
}

#[derive(QueryableByName)]
struct OrphanRow {
    #[diesel(embed)]
    attempt: AttemptRow,
    #[diesel(sql_type = Integer)]
    lane: i32,
}
