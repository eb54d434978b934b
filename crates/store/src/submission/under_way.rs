use diesel::prelude::*;
use grid_batch_core::{ItemId, ServiceId};

use crate::sql::{
    ClaimStore, StoreError,
    rows::{batch_id, service_id},
    schema::{lanes, service_id_claims},
};

impl ClaimStore {
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
