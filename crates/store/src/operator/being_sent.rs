//! Batches that are with a submitter although an operator has stopped them, or while one is about to.

use grid_batch_core::{InstanceId, OperatorTarget, ServiceId, SubmittedBatch};

use crate::sql::{
    ClaimStore, Dialect, Rows, Statement, Store, StoreError,
    rows::{AttemptRow, with_submitter},
};

/// The batches of this target that are with a submitter of any instance.
pub(super) fn being_sent(
    store: &Store,
    target: &OperatorTarget,
) -> Result<Vec<SubmittedBatch>, StoreError> {
    let dialect = store.dialect();
    let statement = match target {
        OperatorTarget::Batch { service_id, .. }
        | OperatorTarget::Service(service_id)
        | OperatorTarget::Nonces { service_id, .. } => of_service(dialect, service_id),
        OperatorTarget::AllServices => of_all(dialect),
        OperatorTarget::Instance(instance) => of_instance(dialect, instance),
    };
    let mut found = load(store, &statement)?;
    if let Some((batch_id, _)) = target.batch() {
        found.retain(|batch| batch.batch_id == *batch_id);
    }
    Ok(found)
}

impl ClaimStore {
    /// The batches of these services that are recorded as being with the submitter of this instance, and that it
    /// must not begin to send: the service or the instance is paused, the instance drains, or the batch is held.
    pub fn stopped(&self, services: &[ServiceId]) -> Result<Vec<SubmittedBatch>, StoreError> {
        if services.is_empty() {
            return Ok(Vec::new());
        }
        let instance = self.instance();
        load(&self.store, &stopped(self.store.dialect(), instance.as_str(), services))
    }
}

fn load(store: &Store, statement: &Statement<'_>) -> Result<Vec<SubmittedBatch>, StoreError> {
    let rows: Vec<AttemptRow> = store.pools.read()?.load(statement)?;
    let read = |row: &AttemptRow| {
        let (service_id, batch_id, attempt_id) = row.read()?;
        Ok(SubmittedBatch { service_id, batch_id, attempt_id })
    };
    rows.iter().map(read).collect()
}

fn of_service(dialect: Dialect, service_id: &ServiceId) -> Statement<'_> {
    let with_submitter = with_submitter("s");
    Statement::new(
        dialect,
        format!(
            "-- being_sent_of_service
             select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
             where s.service_id = ? and s.busy and {with_submitter}
             order by s.lane"
        ),
    )
    .text(service_id.as_str())
}

fn of_all(dialect: Dialect) -> Statement<'static> {
    let with_submitter = with_submitter("s");
    Statement::new(
        dialect,
        format!(
            "-- being_sent
             select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
             where s.busy and {with_submitter}
             order by s.service_id, s.lane"
        ),
    )
}

fn of_instance(dialect: Dialect, instance: &InstanceId) -> Statement<'_> {
    let with_submitter = with_submitter("s");
    Statement::new(
        dialect,
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

fn stopped<'a>(dialect: Dialect, instance: &'a str, services: &'a [ServiceId]) -> Statement<'a> {
    let with_submitter = with_submitter("s");
    Statement::new(
        dialect,
        format!(
            "-- find_stopped
             select s.service_id, s.batch_id, s.attempts, s.epoch
             from {{x}}
             join service_id_claims c on c.service_id = x.service_id
             join lanes s on s.service_id = x.service_id
             where coalesce(c.claimant, null) = ? and s.busy and {with_submitter}
                 and (c.paused_at is not null or s.held_at is not null or exists (
                     select 1 from instances i
                     where i.instance_id = ? and (i.paused or i.draining)))"
        ),
    )
    .rows(Rows::default().text("service_id", services.iter().map(ServiceId::as_str)).in_chunks())
    .text(/* claimant */ instance)
    .text(/* instance_id */ instance)
}
