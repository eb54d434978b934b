//! The places in the order of a service: reserved under its lock, before its batches are known to
//! be new.

use std::collections::{BTreeMap, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{NewBatch, Timestamp};

use crate::{
    StoreError,
    connection::Connection,
    statement::{Rows, Statement},
};

/// The stamps that are reserved: for each service the next one, and how many are left.
pub(crate) struct Stamps<'a> {
    left: BTreeMap<&'a str, (i64, i64)>,
}

impl<'a> Stamps<'a> {
    /// Locks the services of these batches to the end of the transaction, in one order for all who
    /// do so, and counts the batches in. A stamp is later than all before it, whatever the clock.
    pub(crate) fn reserve(
        connection: &mut Connection,
        batches: &[&'a NewBatch],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for batch in batches {
            *counts.entry(batch.service_id.as_str()).or_default() += 1;
        }
        let now = now.as_micros();
        let reserve = Statement::new(
            connection.dialect(),
            "-- reserve_stamps
             insert into services (service_id, last_created_at, added)
             select service_id, last_created_at, added from {x} where true order by service_id
             on conflict (service_id) do update set
                 last_created_at = case
                     when services.last_created_at + excluded.added > excluded.last_created_at
                     then services.last_created_at + excluded.added
                     else excluded.last_created_at
                 end,
                 added = services.added + excluded.added
             returning service_id, last_created_at, added",
        )
        .rows(
            Rows::default()
                .text("service_id", counts.keys().copied())
                .long("last_created_at", counts.values().map(|count| now + count - 1))
                .long("added", counts.values().copied()),
        );
        let rows: Vec<ReservedRow> = connection.load(&reserve)?;
        let reserved: HashMap<&str, &ReservedRow> =
            rows.iter().map(|row| (row.service_id.as_str(), row)).collect();
        let mut left = BTreeMap::new();
        let mut new_services = Vec::new();
        for (service, count) in counts {
            let row = reserved
                .get(service)
                .ok_or_else(|| StoreError::corrupt(format!("no row for the service {service}")))?;
            if row.added == count {
                new_services.push(service);
            }
            left.insert(service, (row.last_created_at - count + 1, count));
        }
        make_lanes(connection, &new_services)?;
        Ok(Self { left })
    }

    /// The next stamp of a service.
    pub(crate) fn take(&mut self, service: &str) -> Timestamp {
        let (next, left) =
            self.left.get_mut(service).expect("stamps are reserved for the service of every batch");
        let stamp = Timestamp::from_micros(*next);
        *next += 1;
        *left -= 1;
        stamp
    }

    /// Counts out what was counted in and not stored.
    pub(crate) fn give_back(self, connection: &mut Connection) -> Result<(), StoreError> {
        let left = || self.left.iter().filter(|(_, (_, left))| *left > 0);
        let statement = Statement::new(
            connection.dialect(),
            "-- give_stamps_back
             update services as s set added = s.added - x.count
             from {x} where s.service_id = x.service_id",
        )
        .rows(
            Rows::default()
                .text("service_id", left().map(|(service, _)| *service))
                .long("count", left().map(|(_, (_, left))| *left)),
        );
        connection.execute(&statement).map(drop)
    }
}

/// A service that was never seen before has nobody who claims it, and an empty lane.
fn make_lanes(connection: &mut Connection, services: &[&str]) -> Result<(), StoreError> {
    for sql in [
        "-- make_claims
         insert into service_id_claims (service_id) select service_id from {x} where true
         on conflict do nothing",
        "-- make_lanes
         insert into batch_statuses (service_id, lane) select service_id, 0 from {x} where true
         on conflict do nothing",
    ] {
        let services = Rows::default().text("service_id", services.iter().copied());
        connection.execute(&Statement::new(connection.dialect(), sql).rows(services))?;
    }
    Ok(())
}

#[derive(QueryableByName)]
struct ReservedRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    last_created_at: i64,
    #[diesel(sql_type = BigInt)]
    added: i64,
}
