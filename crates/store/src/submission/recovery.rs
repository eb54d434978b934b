use diesel::{QueryableByName, sql_types::Integer};
use grid_batch_core::{AttemptId, Change, ChangeOutcome, Event, ItemId, ServiceId, SubmittedBatch};

use crate::{
    batch::record,
    sql::{
        Dialect, Statement, Store, StoreError,
        groups::GroupResult,
        rows::{AttemptRow, claimed_by, with_submitter},
    },
};

/// The number of batches that are read and recovered in one step.
const STEP: usize = 500;

/// The batches of claimed services that are with a submitter.
pub(crate) fn find_with_submitter(
    store: &Store,
    instance: &str,
) -> Result<Vec<SubmittedBatch>, StoreError> {
    let mut found = Vec::new();
    let mut after = (String::new(), 0);
    loop {
        let statement = find_with_submitter_statement(store.dialect(), instance, &after);
        let rows: Vec<SubmittedRow> = store.pools.read()?.load(&statement)?;
        let Some(last) = rows.last() else { return Ok(found) };
        after = (last.attempt.service_id.clone(), last.lane);
        for row in &rows {
            let (service_id, batch_id, attempt_id) = row.attempt.read()?;
            found.push(SubmittedBatch { service_id, batch_id, attempt_id });
        }
    }
}

/// Returns the orphans that are in doubt now. The others of locked services are left for a later try.
pub(crate) fn recover(
    store: &Store,
    orphans: &[SubmittedBatch],
) -> Result<Vec<SubmittedBatch>, StoreError> {
    // An outcome may be set aside until its service is free: then that is recorded first.
    let is_free = |orphan: &&SubmittedBatch| !store.locked.contains(&orphan.service_id);
    let free: Vec<&SubmittedBatch> = orphans.iter().filter(is_free).collect();
    let mut recovered = Vec::new();
    for step in free.chunks(STEP) {
        let lost = |orphan: &&SubmittedBatch| {
            owner_lost(orphan.service_id.clone(), orphan.batch_id, orphan.attempt_id)
        };
        let GroupResult { outcomes, error } =
            record(store, &step.iter().map(lost).collect::<Vec<_>>());
        let applied = |(orphan, outcome): (&&SubmittedBatch, _)| {
            matches!(outcome, Some(ChangeOutcome::Applied { .. })).then(|| (*orphan).clone())
        };
        recovered.extend(step.iter().zip(outcomes).filter_map(applied));
        match error {
            None | Some(StoreError::ServicesLocked { .. }) => {}
            Some(error) if recovered.is_empty() => return Err(error),
            // The next try meets the error again if it lasts.
            Some(_) => break,
        }
    }
    Ok(recovered)
}

/// The change that puts a batch in doubt because no submitter will report on its attempt.
pub(crate) fn owner_lost(
    service_id: ServiceId,
    batch_id: ItemId,
    AttemptId { attempt, epoch }: AttemptId,
) -> Change {
    Change {
        epoch: Some(epoch),
        error: Some("the submitter stopped before it reported an outcome".to_owned()),
        ..Change::new(service_id, batch_id, Event::OwnerLost { attempt })
    }
}

fn find_with_submitter_statement<'a>(
    dialect: Dialect,
    instance: &'a str,
    after: &'a (String, i32),
) -> Statement<'a> {
    let (with_submitter, claimed) = (with_submitter("s"), claimed_by("s"));
    Statement::new(
        dialect,
        format!(
            "-- find_with_submitter
             select s.service_id, s.lane, s.batch_id, s.attempts, s.epoch from lanes s
             where s.busy and {with_submitter}
                 and (s.service_id, s.lane) > (?, ?) and {claimed}
             order by s.service_id, s.lane limit {STEP}"
        ),
    )
    .text(&after.0)
    .long(after.1.into())
    .text(/* claimant */ instance)
}

#[derive(QueryableByName)]
struct SubmittedRow {
    #[diesel(embed)]
    attempt: AttemptRow,
    #[diesel(sql_type = Integer)]
    lane: i32,
}
