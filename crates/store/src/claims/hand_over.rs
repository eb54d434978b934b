use std::collections::HashSet;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Claim, HeaderId, InstanceId, ServiceId, Takeover,
};

use super::{ClaimStore, free::Found};
use crate::{
    StoreError,
    connection::Connection,
    notes::Notes,
    recover::{owner_lost, with_submitter},
    rows::{HandedOutRow, names, service_id},
    statement::Rows,
};

impl ClaimStore {
    /// Takes services that are locked, and puts in doubt what their owners were sending. Only now,
    /// under the lock, is it certain whether they are.
    pub(super) fn hand_over(
        &self,
        connection: &mut Connection,
        found: Vec<Found>,
        instance: &InstanceId,
    ) -> Result<Takeover, StoreError> {
        let mut lost = self.find_lost(connection, &found)?;
        let sending: HashSet<ServiceId> =
            lost.iter().map(|change| change.service_id.clone()).collect();
        let services: Vec<ServiceId> = found
            .into_iter()
            .filter(|found| found.sending_too || !sending.contains(&found.service_id))
            .map(|found| found.service_id)
            .collect();
        let claims = self.change_claimant(connection, &services, instance)?;
        let taken: HashSet<&ServiceId> = services.iter().collect();
        lost.retain(|change| taken.contains(&change.service_id));
        let in_doubt = self.put_in_doubt(connection, &lost)?;
        Ok(Takeover { claims, in_doubt })
    }

    /// What is with a submitter: whoever has it will not be the owner any more, and may have sent it.
    fn find_lost(
        &self,
        connection: &mut Connection,
        found: &[Found],
    ) -> Result<Vec<Change>, StoreError> {
        let with_submitter = with_submitter("s");
        let services = found.iter().map(|found| found.service_id.as_str());
        let statement = self
            .store
            .statement(format!(
                "-- find_lost
                 select s.service_id, s.batch_id, s.attempts, s.epoch
                 from {{x}} join batch_statuses s on s.service_id = x.service_id
                 where {with_submitter}"
            ))
            .rows(Rows::default().text("service_id", services));
        let rows: Vec<HandedOutRow> = connection.load(&statement)?;
        // In whichever epoch: the one that they are in is just being raised.
        rows.iter().map(|row| Ok(Change { epoch: None, ..owner_lost(row)? })).collect()
    }

    /// A lane has the epoch of its service's claim: so what is recorded is fenced by the row in which
    /// it is written.
    fn change_claimant(
        &self,
        connection: &mut Connection,
        services: &[ServiceId],
        instance: &InstanceId,
    ) -> Result<Vec<Claim>, StoreError> {
        let change = self
            .store
            .statement(
                "-- change_claimant
                 update service_id_claims set claimant = ?, epoch = service_id_claims.epoch + 1
                 from {x} where service_id_claims.service_id = x.service_id
                 returning service_id_claims.service_id, service_id_claims.epoch",
            )
            .text(instance.as_str())
            .rows(names(services));
        let rows: Vec<ClaimRow> = connection.load(&change)?;
        let raise = self
            .store
            .statement(
                "-- raise_epochs
                 update batch_statuses as s set epoch = x.epoch
                 from {x} where s.service_id = x.service_id",
            )
            .rows(
                Rows::default()
                    .text("service_id", rows.iter().map(|row| row.service_id.as_str()))
                    .long("epoch", rows.iter().map(|row| row.epoch)),
            );
        connection.execute(&raise)?;
        rows.iter().map(ClaimRow::read).collect()
    }

    fn put_in_doubt(
        &self,
        connection: &mut Connection,
        lost: &[Change],
    ) -> Result<Vec<(ServiceId, HeaderId)>, StoreError> {
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let recorded = self.store.record_locked(connection, lost, Notes::default())?;
        let in_doubt = ChangeOutcome::Applied { state: BatchState::InDoubt, next_waits: false };
        Ok(lost
            .iter()
            .zip(recorded)
            .filter(|(_, recorded)| *recorded == in_doubt)
            .map(|(change, _)| (change.service_id.clone(), change.batch_id))
            .collect())
    }
}

#[derive(QueryableByName)]
struct ClaimRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    epoch: i64,
}

impl ClaimRow {
    fn read(&self) -> Result<Claim, StoreError> {
        let epoch = u64::try_from(self.epoch).map_err(StoreError::corrupt)?;
        Ok(Claim { service_id: service_id(&self.service_id)?, epoch })
    }
}
