use std::collections::{BTreeMap, HashMap};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::NewBatch;

use crate::sql::{Connection, Rows, StoreError};

/// Allocates the `created_at` of new batches, which decides their order in their service.
///
/// Values are reserved under the lock of the service, before it is known which of the batches are
/// stored already.
pub(crate) struct CreatedAtAllocator<'a> {
    services: BTreeMap<&'a str, Reserved>,
}

/// The reserved values of one service.
struct Reserved {
    next: i64,
    count: i64,
    /// How many of the `count` values are left.
    left: i64,
    /// How many batches were added to the service before.
    added_before: i64,
}

impl<'a> CreatedAtAllocator<'a> {
    /// Locks the services of these batches until the end of the transaction, in the order of their
    /// ids, and counts the batches as added. Values increase even if the clock goes back.
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
        let rows: Vec<(String, i64, i64)> = connection.load_row_tuples(
            "-- reserve_created_at
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
            Rows::default()
                .text("service_id", counts.keys().copied())
                .long("last_created_at", counts.values().map(|count| now + count - 1))
                .long("added", counts.values().copied())
                .in_chunks(),
        )?;
        let reserved: HashMap<String, (i64, i64)> =
            rows.into_iter().map(|(service, last, added)| (service, (last, added))).collect();
        let mut services = BTreeMap::new();
        for (service, count) in counts {
            let (last, added) = reserved
                .get(service)
                .ok_or_else(|| StoreError::corrupt(format!("no row of the service {service}")))?;
            let (next, added_before) = (last - count + 1, added - count);
            services.insert(service, Reserved { next, count, left: count, added_before });
        }
        Ok(Self { services })
    }

    /// The next value of a service.
    pub(super) fn next(&mut self, service: &str) -> Timestamp {
        let reserved = self
            .services
            .get_mut(service)
            .expect("values are reserved for the service of every batch");
        let created_at = Timestamp::from_micros(reserved.next);
        reserved.next += 1;
        reserved.left -= 1;
        created_at
    }

    /// How many batches each service had ever had before.
    pub(super) fn added_before(&self) -> impl Iterator<Item = (&'a str, u64)> {
        let added = |reserved: &Reserved| u64::try_from(reserved.added_before).unwrap_or(0);
        self.services.iter().map(move |(service, reserved)| (*service, added(reserved)))
    }

    /// Creates an unclaimed claim and an empty lane for each service that gets its first batch.
    pub(super) fn open_services(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let opened = self.new_services(|reserved| reserved.left < reserved.count);
        for sql in [
            "-- insert_claims
             insert into service_id_claims (service_id) select service_id from {x} where true
             on conflict do nothing",
            "-- insert_lanes
             insert into lanes (service_id, lane) select service_id, 0 from {x} where true
             on conflict do nothing",
        ] {
            let services = Rows::default().text("service_id", opened.iter().copied());
            connection.execute_rows(sql, services)?;
        }
        Ok(())
    }

    fn new_services(&self, condition: impl Fn(&Reserved) -> bool) -> Vec<&'a str> {
        let services = self.services.iter().filter(|(_, reserved)| reserved.added_before == 0);
        services.filter(|(_, reserved)| condition(reserved)).map(|(service, _)| *service).collect()
    }

    /// Removes services that never had a batch and did not get one, because their names may be invented.
    pub(super) fn remove_unused_services(
        &self,
        connection: &mut Connection,
    ) -> Result<(), StoreError> {
        let unused = self.new_services(|reserved| reserved.left == reserved.count);
        connection.execute_rows(
            "-- remove_unused_services
             delete from services where service_id in (select x.service_id from {x}) and added = 0
                 and not exists (select 1 from service_id_claims c
                     where c.service_id = services.service_id)",
            Rows::default().text("service_id", unused),
        )
    }

    /// Subtracts the batches that were counted as added but not stored.
    pub(crate) fn release_unused(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let left = || self.services.iter().filter(|(_, reserved)| reserved.left > 0);
        connection.execute_rows(
            "-- release_created_at
             update services as s set added = s.added - x.count
             from {x} where s.service_id = x.service_id",
            Rows::default()
                .text("service_id", left().map(|(service, _)| *service))
                .long("count", left().map(|(_, reserved)| reserved.left)),
        )
    }
}
