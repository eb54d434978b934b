//! Batches that are or were with a submitter: those that an operator stops, and those whose outcome was never reported.

use diesel::{QueryableByName, prelude::*};
use grid_batch_core::batches::{Change, ChangeOutcome, Event};
use grid_batch_core::claims::{InstanceId, SubmittedBatch};
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::operators::OperatorTarget;
use grid_batch_core::{ItemId, ServiceId};

use crate::{
    batch::record,
    sql::{
        ClaimStore, Rows, Statement, Store, StoreError,
        groups::GroupResult,
        result_row,
        rows::{AttemptRow, batch_id, claimed_by, service_id, with_submitter},
        schema::{lanes, service_id_claims},
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
        let (with_submitter, claimed) = (with_submitter("s"), claimed_by("s"));
        let statement = Statement::new(format!(
            "-- find_with_submitter
             select s.service_id, s.lane, s.batch_id, s.attempts, s.epoch from lanes s
             where s.busy and {with_submitter}
                 and (s.service_id, s.lane) > (?, ?) and {claimed}
             order by s.service_id, s.lane limit {STEP}"
        ))
        .text(&after.0)
        .long(after.1.into())
        .text(/* claimant */ instance);
        let rows: Vec<SubmittedRow> = store.pools.read()?.load(&statement)?;
        let Some(last) = rows.last() else { return Ok(found) };
        after = (last.attempt.service_id.clone(), last.lane);
        for row in &rows {
            found.push(row.attempt.submitted()?);
        }
    }
}

/// Returns the orphans that are in doubt now. Orphans of locked services are left for a later try.
pub(crate) fn recover(
    store: &Store,
    orphans: &[SubmittedBatch],
) -> Result<Vec<SubmittedBatch>, StoreError> {
    // An outcome may be set aside until its service is free. It must then be recorded first.
    let is_free = |orphan: &&SubmittedBatch| !store.locked.contains(&orphan.service_id);
    let free: Vec<&SubmittedBatch> = orphans.iter().filter(is_free).collect();
    let mut recovered = Vec::new();
    for step in free.chunks(STEP) {
        let lost = |orphan: &&SubmittedBatch| owner_lost((*orphan).clone());
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
pub(crate) fn owner_lost(batch: SubmittedBatch) -> Change {
    let AttemptId { attempt, epoch } = batch.attempt_id;
    Change {
        epoch: Some(epoch),
        error: Some("the submitter stopped before it reported an outcome".to_owned()),
        ..Change::new(batch.service_id, batch.batch_id, Event::OwnerLost { attempt })
    }
}

result_row! {
    struct SubmittedRow {
        lane: i32,
        #[diesel(embed)]
        attempt: AttemptRow,
    }
}

/// The batches of this target that are with a submitter of any instance.
pub(crate) fn being_sent(
    store: &Store,
    target: &OperatorTarget,
) -> Result<Vec<SubmittedBatch>, StoreError> {
    let statement = match target {
        OperatorTarget::Batch { service_id, .. }
        | OperatorTarget::Service(service_id)
        | OperatorTarget::Nonces { service_id, .. }
        | OperatorTarget::PaidNonce { service_id, .. } => of_service(service_id),
        OperatorTarget::AllServices => of_all(),
        OperatorTarget::Instance(instance) => of_instance(instance),
        OperatorTarget::Token(_) | OperatorTarget::Webhook(_) | OperatorTarget::Database => {
            return Ok(Vec::new());
        }
    };
    let mut found = load(store, &statement)?;
    if let Some((batch_id, _)) = target.batch() {
        found.retain(|batch| batch.batch_id == *batch_id);
    }
    Ok(found)
}

impl ClaimStore {
    /// The batches of these services that are recorded as being with the submitter of this instance but must not be
    /// sent, because the service or the instance is paused, the instance drains, or the batch is held.
    pub fn stopped(&self, services: &[ServiceId]) -> Result<Vec<SubmittedBatch>, StoreError> {
        if services.is_empty() {
            return Ok(Vec::new());
        }
        let instance = self.instance();
        load(&self.store, &stopped(instance.as_str(), services))
    }

    /// The batches of claimed services that are under way: they were submitted, have not ended and are not
    /// held.
    pub fn under_way(&self) -> Result<Vec<(ServiceId, ItemId)>, StoreError> {
        let instance = self.instance();
        let query = lanes::table
            .inner_join(
                service_id_claims::table.on(service_id_claims::service_id.eq(lanes::service_id)),
            )
            .filter(service_id_claims::claimant.eq(instance.as_str()))
            .filter(lanes::busy.and(lanes::submitted).and(lanes::held_at.is_null()))
            .select((lanes::service_id, lanes::batch_id));
        let rows: Vec<(String, Option<Vec<u8>>)> =
            self.store.pools.read()?.load_query("under_way", query)?;
        let rows = rows.iter().filter_map(|(service, batch)| Some((service, batch.as_ref()?)));
        rows.map(|(service, batch)| Ok((service_id(service)?, batch_id(batch)?))).collect()
    }
}

fn load(store: &Store, statement: &Statement<'_>) -> Result<Vec<SubmittedBatch>, StoreError> {
    let rows: Vec<AttemptRow> = store.pools.read()?.load(statement)?;
    rows.iter().map(AttemptRow::submitted).collect()
}

fn of_service(service_id: &ServiceId) -> Statement<'_> {
    let with_submitter = with_submitter("s");
    Statement::new(format!(
        "-- being_sent_of_service
         select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
         where s.service_id = ? and s.busy and {with_submitter}
         order by s.lane"
    ))
    .text(service_id.as_str())
}

fn of_all() -> Statement<'static> {
    let with_submitter = with_submitter("s");
    Statement::new(format!(
        "-- being_sent
         select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
         where s.busy and {with_submitter}
         order by s.service_id, s.lane"
    ))
}

fn of_instance(instance: &InstanceId) -> Statement<'_> {
    let with_submitter = with_submitter("s");
    Statement::new(
        format!(
            "-- being_sent_of_instance
             select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
             where s.busy and {with_submitter}
                 and (select c.claimant from service_id_claims c where c.service_id = s.service_id)
                     in (select i.instance_id from instances i where i.instance_id = ? or i.name = ?)
             order by s.service_id, s.lane"
        ),
    )
    .text(instance.as_str())
    .text(instance.as_str())
}

fn stopped<'a>(instance: &'a str, services: &'a [ServiceId]) -> Statement<'a> {
    let with_submitter = with_submitter("s");
    Statement::new(format!(
        "-- find_stopped
         select s.service_id, s.batch_id, s.attempts, s.epoch
         from {{x}}
         join service_id_claims c on c.service_id = x.service_id
         join lanes s on s.service_id = x.service_id
         where coalesce(c.claimant, null) = ? and s.busy and {with_submitter}
             and (c.paused_at is not null or s.held_at is not null or exists (
                 select 1 from instances i
                 where i.instance_id = ? and (i.paused or i.draining)))"
    ))
    .rows(Rows::default().text("service_id", services.iter().map(ServiceId::as_str)).in_chunks())
    .text(/* claimant */ instance)
    .text(/* instance_id */ instance)
}
