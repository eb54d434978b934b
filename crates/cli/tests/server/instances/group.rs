use std::time::{Duration, Instant};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query,
    sql_types::{BigInt, Nullable, Text},
};
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::LedgerSimBuilder;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

pub const EXPIRY_1: Duration = Duration::from_secs(2);
pub const EXPIRY_2: Duration = Duration::from_secs(8);
/// Instances check for claims at intervals, and later on a busy machine.
pub const SCHEDULING_SLACK: Duration = Duration::from_secs(1);

/// A submission times out late enough for a test to see it, and before the second expiry.
const FLAGS: &[(&str, &str)] = &[
    ("--testing-lock-timeout", "1s"),
    ("--ledger-request-timeout", "1800ms"),
    ("--testing-sending-limit", "1900ms"),
    ("--testing-total-limit", "3s"),
    ("--testing-drain-limit", "2s"),
    ("--testing-accept-absence-after", "2s"),
    ("--claims-idle-expiry", "2s"),
    ("--claims-full-expiry", "8s"),
];

/// Instances with the same database and ledger.
pub struct InstanceGroup {
    pub harness: BatchHarness,
    url: String,
    _database: Option<TestDatabase>,
}

impl InstanceGroup {
    pub fn new(services: usize) -> Self {
        Self::with_ledger(services, |ledger| ledger)
    }

    pub fn with_ledger(
        services: usize,
        configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
    ) -> Self {
        let database = TestDatabase::create();
        let url = database.url().to_owned();
        let harness = BatchHarness::scabbard_with(services, configure).with_database(&url);
        Self { harness, url, _database: Some(database) }
    }

    /// A group with the database of this URL.
    pub fn with_database(url: String, services: usize) -> Self {
        let harness = BatchHarness::scabbard(services).with_database(&url);
        Self { harness, url, _database: None }
    }

    /// Starts an instance with this name.
    pub fn start(&self, name: &str) -> BatchServer {
        self.start_with(name, &[])
    }

    pub fn start_with(&self, name: &str, extra: &[(&str, &str)]) -> BatchServer {
        self.harness.serve_with(&Self::flags(name, extra))
    }

    /// The flags of an instance; the extra ones replace those of the group.
    pub fn flags<'a>(name: &'a str, extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let is_replaced = |flag: &str| extra.iter().any(|(other, _)| *other == flag);
        let mut flags = FLAGS.to_vec();
        flags.retain(|(flag, _)| !is_replaced(flag));
        [&flags, &[("--claims-name", name)][..], extra].concat()
    }

    /// The batch with this number for each service.
    pub fn batches(&self, number: usize) -> Vec<SignedBatch> {
        self.harness.services.iter().map(|service| signed_batch(service, number)).collect()
    }

    /// How many services the instance with this name has claimed.
    pub fn claimed_by(&self, name: &str) -> usize {
        let claims = self.claims();
        claims.iter().filter(|claim| claim.is_claimed_by(name)).count()
    }

    pub fn wait_until_claimed_by(&self, name: &str, services: usize) {
        wait_until(&format!("{name} has claimed {services} services"), || {
            self.claimed_by(name) == services
        });
    }

    /// All claims, by service.
    pub fn claims(&self) -> Vec<Claim> {
        let select =
            "select service_id, claimant, epoch from service_id_claims order by service_id";
        sql_query(select).load(&mut self.connect()).unwrap()
    }

    /// The runs of instances with this name that are before their first expiry, by the database's
    /// clock.
    pub fn active_runs(&self, name: &str) -> Vec<InstanceRun> {
        let select = "select instance_id, expiry_1 from instances
            where expiry_1 > extract(epoch from clock_timestamp()) * 1000000";
        let mut runs: Vec<InstanceRun> = sql_query(select).load(&mut self.connect()).unwrap();
        runs.retain(|run| is_run_of(&run.instance_id, name));
        runs
    }

    pub fn connect(&self) -> PgConnection {
        PgConnection::establish(&self.url).unwrap()
    }

    /// Freezes the ledger and waits until this instance is submitting these batches.
    pub fn submit_to_frozen_ledger(&self, instance: &BatchServer, batches: &[SignedBatch]) {
        self.harness.ledger.freeze();
        instance.submit(batches);
        let store = self.harness.store();
        wait_until("all batches are submitting", || {
            count_in_state(&store, BatchState::Submitting) == batches.len()
        });
    }
}

#[derive(Debug, PartialEq, Eq, QueryableByName)]
pub struct Claim {
    #[diesel(sql_type = Text)]
    pub service_id: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub claimant: Option<String>,
    #[diesel(sql_type = BigInt)]
    pub epoch: i64,
}

impl Claim {
    fn is_claimed_by(&self, name: &str) -> bool {
        self.claimant.as_ref().is_some_and(|claimant| is_run_of(claimant, name))
    }
}

#[derive(Debug, QueryableByName)]
pub struct InstanceRun {
    #[diesel(sql_type = Text)]
    pub instance_id: String,
    #[diesel(sql_type = BigInt)]
    pub expiry_1: i64,
}

/// An instance id is the name, a dash, and a unique suffix.
fn is_run_of(instance_id: &str, name: &str) -> bool {
    instance_id.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// Waits until the condition holds, and returns and prints the time since `started`.
pub fn measure_until(
    description: &str,
    started: Instant,
    condition: impl FnMut() -> bool,
) -> Duration {
    wait_until(description, condition);
    let took = started.elapsed();
    println!("{description} after {took:.2?}");
    took
}
