//! The row of an instance: inserted at its start, updated by each renewal, removed at its end.

use std::sync::{Arc, PoisonError, RwLock, atomic::Ordering::Relaxed};

use grid_batch_core::claims::{ClaimKeeper, InstanceId, SubmittedBatch, Takeover};
use grid_batch_core::ledger::LedgerIdentity;
use grid_batch_core::{BatchResult, ServiceId, Timestamp};
use log::info;

use super::{
    ledger,
    release::{release_all, release_drained},
    scheduled::check_scheduling,
    take,
};
use crate::{
    operator::set_draining,
    restored,
    sql::{
        ClaimOptions, ClaimStore, Connection, Dialect, Rows, Statement, Store, StoreError,
        claim_handle::micros, error::ClaimError, file_lock::FileLock, find_locked::forget_unlocked,
        rows::confirmed_ledger,
    },
    submission,
};

impl ClaimStore {
    /// Registers a new instance without claims, for a ledger that can have every service.
    pub fn register(store: Store, options: ClaimOptions) -> Result<Self, StoreError> {
        Self::register_for(store, options, |_| true)
    }

    /// Registers a new instance without claims.
    ///
    /// Fails if open batches of a service that the ledger can have were stored with other rules about declared access.
    /// Batches of other services are ignored, because the caller does not work on them.
    ///
    /// If an earlier run has the same name, its idle expiry must have passed. Its services can then be taken at once.
    ///
    /// Only one process can register with an SQLite file, until it drops this value and all its
    /// clones. All services that were claimed before can be taken at once. Reading from a store and
    /// adding to it need no registration.
    pub fn register_for(
        store: Store,
        options: ClaimOptions,
        can_have: impl Fn(&ServiceId) -> bool,
    ) -> Result<Self, StoreError> {
        options.check()?;
        let file_lock = FileLock::acquire(store.pools.url())?;
        check_scheduling(&store, can_have)?;
        if let Some(lock) = &file_lock {
            store.last_seen.keep_in(Arc::downgrade(lock));
        }
        let instance = register(&store, &options, None, file_lock.is_some())?;
        Ok(Self {
            store,
            options: Arc::new(options),
            instance: Arc::new(RwLock::new(instance)),
            ledger: Arc::default(),
            file_lock,
            draining: Arc::default(),
        })
    }

    /// The same instance with another store of its database, such as one that was opened with other rules.
    #[must_use]
    pub fn with_store(&self, store: Store) -> Self {
        Self { store, ..self.clone() }
    }
}

impl ClaimKeeper for ClaimStore {
    /// Its claims last from now until the expiries. Renew several times within the idle expiry, because a renewal may
    /// fail or be late.
    ///
    /// First checks whether the database went back to an earlier state, because a connection can survive that behind a
    /// connection pooler or while a standby is promoted.
    fn renew(&self) -> BatchResult<bool> {
        let store = &self.store;
        let renewed = renew(store, &self.instance(), &self.options)?;
        if let Some(draining) = renewed {
            self.draining.store(draining, Relaxed);
        }
        store.measure_clock()?;
        forget_unlocked(store)?;
        Ok(renewed.is_some())
    }

    /// The services that were claimed before can be taken again.
    fn register_again(&self) -> BatchResult<()> {
        let ledger = self.ledger.read().unwrap_or_else(PoisonError::into_inner).clone();
        let draining = self.is_draining();
        let former = FormerInstance { instance: self.instance(), ledger, draining };
        let exclusive = self.file_lock.is_some();
        let instance = register(&self.store, &self.options, Some(&former), exclusive)?;
        *self.instance.write().unwrap_or_else(PoisonError::into_inner) = instance;
        Ok(())
    }

    /// Takes unclaimed services, all services of instances past their full expiry, and services without a
    /// batch with a submitter of instances past their idle expiry.
    ///
    /// Each step is one commit; if a later step fails, the earlier ones remain. Batches that were with a submitter are
    /// in doubt afterwards. An instance past its own idle expiry takes nothing. A draining instance also takes nothing,
    /// and releases services that have no batch with a submitter.
    fn take(&self, limit: usize) -> BatchResult<Takeover> {
        if self.is_draining() {
            release_drained(self)?;
            return Ok(Takeover::default());
        }
        Ok(take::take(self, limit)?)
    }

    /// Takes those of these services that [`take`](Self::take) could take, for example because a
    /// batch was just added to them. It ignores the fair share.
    fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover> {
        Ok(take::take_services(self, services)?)
    }

    fn with_submitter(&self) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(submission::find_with_submitter(&self.store, self.instance().as_str())?)
    }

    /// While a submitter runs, an orphan is a batch that has been with it for longer than any submission lasts, because
    /// the answer of the take was lost. Batches of a previous owner are put in doubt by the takeover. If another
    /// transaction keeps a row of a service locked, its batches are left for a later call.
    fn recover(&self, orphans: &[SubmittedBatch]) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(submission::recover(&self.store, orphans)?)
    }

    /// Also removes the instance, so that others can take its services at once. If a service has a batch with a
    /// submitter, the instance stays registered until its full expiry, so stop the submitter first.
    fn release(&self) -> BatchResult<usize> {
        Ok(release_all(self)?)
    }
}

/// Registers a new instance, and expires instances that certainly do not run: an earlier run of the same name past its
/// idle expiry, or all if the database is `exclusive` to this process.
///
/// An instance that is registered again keeps the `ledger` that it confirmed, unless the database was bound to another
/// one since. If it was draining, it continues to drain.
fn register(
    store: &Store,
    options: &ClaimOptions,
    former: Option<&FormerInstance>,
    exclusive: bool,
) -> Result<InstanceId, StoreError> {
    let instance = InstanceId::new(unique_id(options.name.as_deref()));
    let registrations = store.pools.write()?.write_transaction(|connection| {
        let dialect = connection.dialect();
        // This locks the row of `database_state` before those of instances, in the same order as a pause of all
        // services.
        let rules = store.scheduler.rules().to_string();
        let registrations = count_registration(connection, &rules)?;
        if let Some(name) = &options.name {
            let clock = dialect.clock();
            let expire = Statement::new(format!(
                "-- expire_earlier_run
                 update instances set name = null, expiry_1 = 0, expiry_2 = 0
                 where name = ? and expiry_1 <= {clock}"
            ));
            connection.execute(&expire.text(name))?;
        }
        if exclusive {
            connection.execute(&Statement::new(
                "-- expire_all_instances
                 update instances set name = null, expiry_1 = 0, expiry_2 = 0",
            ))?;
        }
        let inserted = connection.execute(&insert_instance(dialect, &instance, options))?;
        match &options.name {
            Some(name) if inserted == 0 => return Err(name_in_use(connection, name)?),
            _ => {}
        }
        // The new instance is paused if all services are. Pausing all services and counting registrations both lock the
        // row of `database_state`, so no instance is missed.
        let take_on_pause = Statement::new(
            "-- take_on_pause
             update instances set paused = true
             where instance_id = ? and exists (
                 select 1 from database_state d where d.id = 1 and d.paused_at is not null)",
        );
        connection.execute(&take_on_pause.text(instance.as_str()))?;
        if let Some(former) = former {
            if let Some(ledger) = &former.ledger {
                ledger::confirm(connection, &instance, ledger, store.now())?;
            }
            if former.drains(connection)? {
                set_draining(connection, &instance, true)?;
            }
        }
        Ok(registrations)
    })?;
    store.last_seen.registered(instance.as_str(), registrations);
    store.scheduler.events().set_instance(instance.as_str());
    info!(instance:% = instance; "registered the instance");
    Ok(instance)
}

/// What a process was before it registers again.
struct FormerInstance {
    instance: InstanceId,
    ledger: Option<LedgerIdentity>,
    /// Whether it was draining at its last renewal.
    draining: bool,
}

impl FormerInstance {
    /// Whether it drains, according to its row, which an operator may have changed since the last renewal.
    fn drains(&self, connection: &mut Connection) -> Result<bool, StoreError> {
        let statement = Statement::new(
            "-- former_instance
             select i.draining from instances i where i.instance_id = ?",
        )
        .text(self.instance.as_str());
        let draining: Vec<bool> = connection.load_column(&statement)?;
        Ok(draining.first().copied().unwrap_or(self.draining))
    }
}

/// Extends the lease of an instance, and returns whether an operator has requested that it release its services.
/// `None`: another instance has expired it.
fn renew(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
) -> Result<Option<bool>, StoreError> {
    let clock = store.dialect().clock();
    // The clock is read only once, because with two reads the expiries could be in the wrong order.
    let statement = Statement::new(format!(
        "-- renew
         update instances set expiry_1 = t.now + ?, expiry_2 = t.now + ?,
             renewals = instances.renewals + 1
         from (select {clock} as now) as t
         where instance_id = ? and expiry_2 > 0
         returning renewals, draining"
    ))
    .long(micros(options.idle_expiry))
    .long(micros(options.full_expiry))
    .text(instance.as_str());
    let mut connection = store.pools.write()?;
    restored::check(&mut connection, &store.last_seen, store.scheduler.events(), store.clock())?;
    let rows: Vec<(i64, bool)> = connection.load_tuples(&statement)?;
    let Some((renewals, draining)) = rows.into_iter().next() else { return Ok(None) };
    store.last_seen.renewed(instance.as_str(), renewals);
    Ok(Some(draining))
}

/// Whether the instance may take services: it is not past its idle expiry, does not drain, and has confirmed its
/// ledger. Its row is locked, so it cannot be removed until the end of the transaction.
pub(super) fn lock_live_instance(
    connection: &mut Connection,
    instance: &InstanceId,
) -> Result<bool, StoreError> {
    let dialect = connection.dialect();
    let (clock, lock) = (dialect.clock(), dialect.locking("for key share of i"));
    let confirmed = confirmed_ledger("i");
    let statement = Statement::new(
        format!(
            "-- lock_live_instance
             select i.instance_id, i.expiry_1 from instances i
             where i.instance_id = ? and i.expiry_1 > {clock} and not i.draining and {confirmed} {lock}"
        ),
    )
    .text(instance.as_str());
    Ok(!connection.load_tuples::<(String, i64)>(&statement)?.is_empty())
}

/// Removes the rows of instances past their full expiry that have no claims left. Returns those that no later run has
/// replaced.
pub(super) fn remove_expired_instances(
    connection: &mut Connection,
) -> Result<Vec<InstanceId>, StoreError> {
    let dialect = connection.dialect();
    let (clock, lock) = (dialect.clock(), dialect.locking("for update of i skip locked"));
    let statement = Statement::new(format!(
        "-- remove_expired_instances
         delete from instances where instance_id in (
             select i.instance_id from instances i
             where i.expiry_2 <= {clock} and not exists (
                 select 1 from service_id_claims c where c.claimant = i.instance_id)
             {lock})
         returning instance_id, expiry_2"
    ));
    let removed: Vec<(String, i64)> = connection.load_tuples(&statement)?;
    let lost = removed.into_iter().filter(|(_, expiry)| *expiry > 0);
    Ok(lost.map(|(instance, _)| InstanceId::new(&instance)).collect())
}

/// Removes the row of an instance unless it has claims left.
pub(super) fn unregister(store: &Store, instance: &InstanceId) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "-- unregister
         delete from instances where instance_id = ? and not exists (
             select 1 from service_id_claims c where c.claimant = instances.instance_id)",
    )
    .text(instance.as_str());
    Ok(store.pools.write()?.execute(&statement)? > 0)
}

/// An id that is unique among all runs of all instances.
fn unique_id(name: Option<&str>) -> String {
    let number = fastrand::u128(..);
    match name {
        Some(name) => format!("{name}-{number:032x}"),
        None => format!("{number:032x}"),
    }
}

fn insert_instance<'a>(
    dialect: Dialect,
    instance: &'a InstanceId,
    options: &'a ClaimOptions,
) -> Statement<'a> {
    let clock = dialect.clock();
    Statement::new(format!(
        "-- insert_instance
         insert into instances (instance_id, name, settings, expiry_1, expiry_2)
         select x.instance_id, x.name, x.settings, t.now + x.expiry_1, t.now + x.expiry_2
         from {{x}} cross join (select {clock} as now) as t where true
         on conflict (name) do nothing"
    ))
    .rows(
        Rows::default()
            .text("instance_id", [instance.as_str()])
            .optional_text("name", [options.name.as_deref()])
            .optional_text("settings", [options.settings.as_deref()])
            .long("expiry_1", [micros(options.idle_expiry)])
            .long("expiry_2", [micros(options.full_expiry)]),
    )
}

/// Records the rules of the instance, which commands on the database follow. Returns how often any instance has
/// registered.
fn count_registration(connection: &mut Connection, rules: &str) -> Result<i64, StoreError> {
    let statement = Statement::new(
        "-- count_registration
         update database_state set registrations = registrations + 1, scheduling = ? where id = 1
         returning registrations",
    )
    .text(rules);
    let registrations: Vec<i64> = connection.load_column(&statement)?;
    let missing = || StoreError::corrupt("database_state has no row");
    registrations.into_iter().next().ok_or_else(missing)
}

fn name_in_use(connection: &mut Connection, name: &str) -> Result<StoreError, StoreError> {
    let statement = Statement::new(
        "-- find_instance_by_name
         select instance_id, expiry_1 from instances where name = ?",
    )
    .text(name);
    let rows: Vec<(String, i64)> = connection.load_tuples(&statement)?;
    Ok(match rows.first() {
        Some((holder, expiry)) => ClaimError::NameInUse {
            name: name.to_owned(),
            holder: InstanceId::new(holder),
            until: Timestamp::from_micros(*expiry),
        }
        .into(),
        None => {
            let cause = format!("the instance with the name {name:?} has just been removed");
            StoreError::Locked { source: cause.into() }
        }
    })
}
