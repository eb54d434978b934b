use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Integer, Text},
};
use grid_batch_core::{BatchState, Event};

use crate::{
    Change, Recorded, Store, StoreError,
    rows::{batch_id, in_states, service_id},
};

impl Store {
    /// Puts every batch in doubt that is with a submitter, and says how many those were.
    ///
    /// For the time between a start and the first round: whoever had them is gone, and may have
    /// sent them. They are read and written in steps of some hundreds.
    pub fn recover(&self) -> Result<usize, StoreError> {
        let mut recovered = 0;
        let mut after = String::new();
        loop {
            let found = self.with_submitter(&after)?;
            let Some(last) = found.last() else {
                return Ok(recovered);
            };
            after.clone_from(&last.service_id);
            let changes =
                found.into_iter().map(OrphanRow::into_change).collect::<Result<Vec<_>, _>>()?;
            let done = self.record(&changes)?;
            recovered += done.iter().filter(|done| matches!(done, Recorded::Done { .. })).count();
        }
    }

    /// The batches with a submitter of the next services after `after`, whole services at a time.
    fn with_submitter(&self, after: &str) -> Result<Vec<OrphanRow>, StoreError> {
        let state = in_states("s", |state| state == BatchState::Submitting);
        let statement = self
            .statement(format!(
                "-- with_submitter
                 select s.service_id, s.batch_id, s.attempts, s.epoch from batch_statuses s
                 where s.busy and {state} and s.service_id in (
                     select distinct f.service_id from batch_statuses f
                     where f.busy and f.service_id > ? order by f.service_id limit 500)
                 order by s.service_id, s.lane"
            ))
            .text(after);
        self.pools.read()?.load(&statement)
    }
}

#[derive(QueryableByName)]
struct OrphanRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = BigInt)]
    epoch: i64,
}

impl OrphanRow {
    fn into_change(self) -> Result<Change, StoreError> {
        let attempt = u32::try_from(self.attempts).map_err(StoreError::corrupt)?;
        let service_id = service_id(&self.service_id)?;
        let batch_id = batch_id(&self.batch_id)?;
        Ok(Change {
            epoch: Some(u64::try_from(self.epoch).map_err(StoreError::corrupt)?),
            error: Some("the submitter that had it is gone, and may have sent it".to_owned()),
            ..Change::new(service_id, batch_id, Event::OwnerLost { attempt })
        })
    }
}
