use std::time::Duration;

use diesel::{
    dsl::{count, not},
    prelude::*,
};
use grid_batch_core::batches::DltStatus;
use grid_batch_core::queries::ServiceCounts;

use super::pauses::{count_different_states, count_paused};
use crate::{
    halts::count_halted,
    sql::{Connection, Statement, Store, StoreError, query::single_count, schema::lanes},
};

/// All batches of a service may wait without a lane: for a missing transaction, another service, or an operator's
/// decision about an invalid batch. For each service that has batches without a lane, one row is read.
const OPEN: &str = "-- open_services
     with recursive waiting(service_id) as (
         select (select w.service_id from waiting_batches w where w.service_id > ''
                 order by w.service_id, w.batch_seq limit 1)
         union all
         select (select w.service_id from waiting_batches w where w.service_id > r.service_id
                 order by w.service_id, w.batch_seq limit 1)
         from waiting r where r.service_id is not null
     )
     select count(x.service_id) as count from (
         select s.service_id from lanes s where s.busy
         union select r.service_id from waiting r
     ) as x";

/// The hold of a batch that waits behind another one begins with its turn. A batch that misses a transaction has no
/// turn.
const HELD: &str = "
         select s.service_id from lanes s where s.busy and s.held_at is not null
         union
         select (select w.service_id from waiting_batches w
                 where w.batch_seq = h.batch_seq
                     and (w.position is null or h.cause = 'MISSING_TRANSACTION'))
         from waiting_holds h where h.batch_seq > 0";

fn held_services(store: &Store) -> String {
    let others = store.scheduler.hooks().held_services();
    let others = others.map(|query| format!(" union {query}")).unwrap_or_default();
    format!("-- held_services\n select count(x.service_id) as count from ({HELD}{others}) as x")
}

/// If the database never went back, no lane is read.
const RESTORED: &str = "-- restored_services
     select count(distinct s.service_id) as count
     from database_state d cross join lanes s
     where d.id = 1 and d.restored_seq is not null and s.busy and s.batch_seq <= d.restored_seq";

fn count_services(connection: &mut Connection, sql: impl Into<String>) -> Result<u64, StoreError> {
    single_count(&connection.load_column(&Statement::new(sql))?)
}

impl Store {
    /// How many services have open batches, and how many of them are in trouble. The cost grows with their
    /// number.
    pub fn service_counts(&self) -> Result<ServiceCounts, StoreError> {
        let mut connection = self.pools.read()?;
        let open = count_services(&mut connection, OPEN)?;
        let held = count_services(&mut connection, held_services(self))?;
        let restored = count_services(&mut connection, RESTORED)?;
        // The error of a batch that the ledger has by now no longer matters.
        let not_at_ledger = lanes::dlt_status.is_null().or(lanes::dlt_status
            .ne(DltStatus::Pending.as_str())
            .and(lanes::dlt_status.ne(DltStatus::Valid.as_str())));
        // A batch behind a closed gate has no failed attempt.
        let is_delayed = lanes::dlt_status.eq(DltStatus::Delayed.as_str());
        let has_error =
            lanes::last_error.is_not_null().and(lanes::dlt_status.is_null().or(not(is_delayed)));
        let has_failed = lanes::delays.gt(0).or(has_error);
        let failing = lanes::table
            .filter(lanes::busy.and(lanes::held_at.is_null()))
            .filter(not_at_ledger)
            .filter(has_failed)
            .select(count(lanes::service_id).aggregate_distinct());
        let failing = single_count(&connection.load_query("failing_services", failing)?)?;
        let (halted, since) = count_halted(&mut connection)?;
        let (paused, all_paused) = count_paused(&mut connection)?;
        Ok(ServiceCounts {
            open,
            held,
            restored,
            failing,
            paused,
            all_paused,
            states_differ: count_different_states(&mut connection)?,
            halted,
            halted_for: since.map_or(Duration::ZERO, |since| self.now().since(since)),
        })
    }
}
