//! Instances and their leases. Leases follow the database's clock, which tests cannot set, so the fixture writes
//! expiries.

use std::fs;

use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::{Claim, ClaimKeeper};
use grid_batch_store::{ClaimOptions, ClaimStore};

use crate::fixture::{Database, StoreExt, service};

impl Database {
    /// Registers an instance, like another process.
    pub fn instance(&self) -> ClaimStore {
        self.instance_with(ClaimOptions::default())
    }

    /// Registers an instance without ending the others, as would happen on SQLite; only an earlier run of the same name
    /// ends.
    pub fn instance_with(&self, options: ClaimOptions) -> ClaimStore {
        if self.is_postgres() {
            return ClaimStore::register(self.open().into_store(), options).unwrap();
        }
        drop(self.open());
        self.forget_lock();
        self.execute(
            "create table if not exists kept as select * from instances where false;
             insert into kept select * from instances where name is null",
        )
        .unwrap();
        let instance = ClaimStore::register(self.open().into_store(), options).unwrap();
        self.execute(
            "update instances set expiry_1 = k.expiry_1, expiry_2 = k.expiry_2
             from kept k where k.instance_id = instances.instance_id;
             delete from kept",
        )
        .unwrap();
        instance
    }

    /// Removes the lock file, so that another instance can register.
    pub fn forget_lock(&self) {
        let _ = fs::remove_file(self.file().with_extension("db.lock"));
    }

    /// Renews the instance's lease.
    pub fn renew_lease(&self, instance: &ClaimStore) {
        self.expire_in(instance, 1_000, 2_000);
    }

    /// Puts the instance between its idle and its full expiry.
    pub fn pass_idle_expiry(&self, instance: &ClaimStore) {
        self.expire_in(instance, -1, 1_000);
    }

    /// Puts the instance past its full expiry.
    pub fn pass_full_expiry(&self, instance: &ClaimStore) {
        self.expire_in(instance, -2, -1);
    }

    /// Sets the expiries of an instance to this many seconds from now.
    pub fn expire_in(&self, instance: &ClaimStore, first: i64, second: i64) {
        let now = if self.is_postgres() {
            "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
        } else {
            "unixepoch() * 1000000"
        };
        self.execute(&format!(
            "update instances set expiry_1 = {now} + {first}000000,
                 expiry_2 = {now} + {second}000000
             where instance_id = '{}'",
            instance.instance()
        ))
        .unwrap();
    }

    /// The number of services that the instance claims.
    pub fn claimed_by(&self, instance: &ClaimStore) -> usize {
        let sql = "select count(*) as number from service_id_claims where claimant";
        self.number(&format!("{sql} = '{}'", instance.instance())) as usize
    }

    pub fn epoch(&self, name: &str) -> u64 {
        let of = |table: &str| {
            let sql = format!("select epoch as number from {table} where service_id = '{name}'");
            self.number(&sql) as u64
        };
        let epoch = of("service_id_claims");
        assert_eq!(of("lanes"), epoch, "a lane is in the epoch of its service's claim");
        epoch
    }

    pub fn state(&self, name: &str, number: u64) -> BatchState {
        self.open().one(name, number).progress.state
    }
}

/// Shortcuts for what most tests do with an instance.
pub trait ClaimExt {
    fn take_all(&self) -> Vec<String>;
    fn take_batch(&self, name: &str) -> grid_batch_core::queue::TakenBatch;
    fn takes_nothing_of(&self, name: &str) -> bool;
}

impl ClaimExt for ClaimStore {
    /// Takes all services that can be taken, and returns their names.
    fn take_all(&self) -> Vec<String> {
        sorted(self.take(1_000).unwrap().claims)
    }

    /// Takes the next batch of a service.
    fn take_batch(&self, name: &str) -> grid_batch_core::queue::TakenBatch {
        let [taken] = self.take_next(&[service(name)]).unwrap().try_into().unwrap();
        taken
    }

    fn takes_nothing_of(&self, name: &str) -> bool {
        self.take_next(&[service(name)]).unwrap().is_empty()
    }
}

/// The names of the claimed services, sorted.
pub fn sorted(claims: Vec<Claim>) -> Vec<String> {
    let mut names: Vec<String> =
        claims.into_iter().map(|claim| claim.service_id.to_string()).collect();
    names.sort();
    names
}
