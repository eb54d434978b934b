//! The row of an instance: made at its start, renewed while it lives, removed at its end.

use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{InstanceId, Timestamp};
use log::info;

use super::ClaimStore;
use crate::{
    ClaimError, ClaimOptions, Store, StoreError,
    connection::Connection,
    statement::{Rows, Statement},
};

impl Store {
    /// Makes a row of a new instance, and ends those that are certainly gone: an expired one of
    /// the same name, and on a database that is ours `alone` all there are.
    pub(super) fn register_instance(
        &self,
        options: &ClaimOptions,
        alone: bool,
    ) -> Result<InstanceId, StoreError> {
        let instance = InstanceId::new(unique(options.name.as_deref()));
        self.pools.write()?.transaction(|connection| {
            if let Some(name) = &options.name {
                connection.execute(&self.end_lapsed(name))?;
            }
            if alone {
                connection.execute(&self.end_all())?;
            }
            let made = connection.execute(&self.make_instance(&instance, options))?;
            match &options.name {
                Some(name) if made == 0 => Err(self.name_in_use(connection, name)?),
                _ => Ok(()),
            }
        })?;
        info!(instance:% = instance; "the instance is registered");
        Ok(instance)
    }

    fn end_lapsed<'a>(&self, name: &'a str) -> Statement<'a> {
        let clock = self.pools.dialect().clock();
        self.statement(format!(
            "-- end_lapsed
             update instances set name = null, expiry_1 = 0, expiry_2 = 0
             where name = ? and expiry_1 <= {clock}"
        ))
        .text(name)
    }

    fn end_all<'a>(&self) -> Statement<'a> {
        self.statement(
            "-- end_all
             update instances set name = null, expiry_1 = 0, expiry_2 = 0",
        )
    }

    fn make_instance<'a>(
        &self,
        instance: &'a InstanceId,
        options: &'a ClaimOptions,
    ) -> Statement<'a> {
        let clock = self.pools.dialect().clock();
        self.statement(format!(
            "-- make_instance
             insert into instances (instance_id, name, expiry_1, expiry_2)
             select x.instance_id, x.name, t.now + x.expiry_1, t.now + x.expiry_2
             from {{x}} cross join (select {clock} as now) as t where true
             on conflict (name) do nothing"
        ))
        .rows(
            Rows::default()
                .text("instance_id", [instance.as_str()])
                .optional_text("name", [options.name.as_deref()])
                .long("expiry_1", [micros(options.expiry_1)])
                .long("expiry_2", [micros(options.expiry_2)]),
        )
    }

    fn name_in_use(
        &self,
        connection: &mut Connection,
        name: &str,
    ) -> Result<StoreError, StoreError> {
        let holder = self
            .statement(
                "-- name_in_use
                 select instance_id, expiry_1 from instances where name = ?",
            )
            .text(name);
        let rows: Vec<InstanceRow> = connection.load(&holder)?;
        Ok(match rows.first() {
            Some(row) => ClaimError::NameInUse {
                name: name.to_owned(),
                holder: InstanceId::new(&row.instance_id),
                until: Timestamp::from_micros(row.expiry_1),
            }
            .into(),
            None => StoreError::Locked { message: format!("the name {name:?} is being given up") },
        })
    }
}

impl ClaimStore {
    /// Says that the instance lives: its claims last for the expiries from now on. `false`: it was
    /// given up for dead, its claims are or will be those of others, and it must
    /// [begin anew](Self::register_again) or end.
    ///
    /// Renew several times within the first expiry: a renewal may fail, or be late.
    pub fn renew(&self) -> Result<bool, StoreError> {
        let clock = self.store.pools.dialect().clock();
        let instance = self.instance();
        let options = &self.options;
        // The time is read once: two readings may stand in the wrong order.
        let statement = self
            .store
            .statement(format!(
                "-- renew
                 update instances set expiry_1 = t.now + ?, expiry_2 = t.now + ?
                 from (select {clock} as now) as t
                 where instance_id = ? and expiry_2 > 0"
            ))
            .long(micros(options.expiry_1))
            .long(micros(options.expiry_2))
            .text(instance.as_str());
        Ok(self.store.pools.write()?.execute(&statement)? > 0)
    }

    /// Whether the instance may take services: it lives, and is not removed until the transaction
    /// ends.
    pub(super) fn lives(
        &self,
        connection: &mut Connection,
        instance: &InstanceId,
    ) -> Result<bool, StoreError> {
        let dialect = self.store.pools.dialect();
        let (clock, lock) = (dialect.clock(), dialect.locking("for key share of i"));
        let statement = self
            .store
            .statement(format!(
                "-- lives
                 select i.instance_id, i.expiry_1 from instances i
                 where i.instance_id = ? and i.expiry_1 > {clock} {lock}"
            ))
            .text(instance.as_str());
        Ok(!connection.load::<InstanceRow>(&statement)?.is_empty())
    }

    /// Removes the rows of dead instances from which everything has been taken.
    pub(super) fn forget_dead(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let dialect = self.store.pools.dialect();
        let (clock, lock) = (dialect.clock(), dialect.locking("for update of i skip locked"));
        let statement = self.store.statement(format!(
            "-- forget_dead
             delete from instances where instance_id in (
                 select i.instance_id from instances i
                 where i.expiry_2 <= {clock} and not exists (
                     select 1 from service_id_claims c where c.claimant = i.instance_id)
                 {lock})"
        ));
        connection.execute(&statement).map(drop)
    }

    /// Removes the row of the instance, where it claims nothing any more.
    pub(super) fn unregister(&self, instance: &InstanceId) -> Result<bool, StoreError> {
        let statement = self
            .store
            .statement(
                "-- unregister
                 delete from instances where instance_id = ? and not exists (
                     select 1 from service_id_claims c where c.claimant = instances.instance_id)",
            )
            .text(instance.as_str());
        Ok(self.store.pools.write()?.execute(&statement)? > 0)
    }
}

/// An id that no other start of any instance has.
fn unique(name: Option<&str>) -> String {
    let number = fastrand::u128(..);
    match name {
        Some(name) => format!("{name}-{number:032x}"),
        None => format!("{number:032x}"),
    }
}

/// A duration as the databases keep it; a century at most, so that no sum overflows.
pub(super) fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 365 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(CENTURY).min(CENTURY)
}

#[derive(QueryableByName)]
struct InstanceRow {
    #[diesel(sql_type = Text)]
    instance_id: String,
    #[diesel(sql_type = BigInt)]
    expiry_1: i64,
}
