use diesel::{QueryableByName, sql_types::BigInt};

use super::{ClaimStore, release::Part};
use crate::StoreError;

impl ClaimStore {
    /// How many of `count` services may be taken so that no instance has more than its share. Of
    /// what the instance has more than that, it gives back a step.
    ///
    /// Instances that count at the same time may count differently, and are even after some rounds.
    pub(super) fn even_out(&self, count: usize) -> Result<usize, StoreError> {
        let instance = self.instance();
        let clock = self.store.pools.dialect().clock();
        let statement = self
            .store
            .statement(format!(
                "-- share
                 select (select count(*) from service_id_claims) as services,
                     (select count(*) from service_id_claims c where c.claimant = ?) as own,
                     (select count(*) from instances i where i.expiry_1 > {clock}) as instances"
            ))
            .text(instance.as_str());
        let rows: Vec<ShareRow> = self.store.pools.read()?.load(&statement)?;
        let Some(ShareRow { services, own, instances }) = rows.first() else { return Ok(0) };
        let whole = |number: &i64| usize::try_from(*number).unwrap_or(0);
        let (own, share) = (whole(own), whole(services).div_ceil(whole(instances).max(1)));
        if let Some(surplus) = own.checked_sub(share).filter(|surplus| *surplus > 0) {
            self.give_up(&instance, Part::Surplus, surplus.min(self.step()))?;
        }
        Ok(count.min(share.saturating_sub(own)))
    }
}

#[derive(QueryableByName)]
struct ShareRow {
    #[diesel(sql_type = BigInt)]
    services: i64,
    #[diesel(sql_type = BigInt)]
    own: i64,
    #[diesel(sql_type = BigInt)]
    instances: i64,
}
