use std::time::{Duration, Instant};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query,
    sql_types::{BigInt, Nullable, Text},
};
use grid_batch_core::BatchState;
use grid_batch_test_postgres::TestDatabase;

use crate::{
    batches::{Made, batch},
    bench::{Bench, Serving, count},
    until::until,
};

pub const EXPIRY_1: Duration = Duration::from_secs(2);
pub const EXPIRY_2: Duration = Duration::from_secs(6);
/// An instance looks for services now and then, and a busy machine looks late.
pub const LATENESS: Duration = Duration::from_secs(1);

/// What is being sent is given up late enough to be seen, and early enough for the second expiry.
const FLAGS: &[(&str, &str)] = &[
    ("--store-patience", "1s"),
    ("--ledger-request-limit", "1800ms"),
    ("--submit-sending-limit", "1900ms"),
    ("--submit-total-limit", "2s"),
    ("--submit-drain-limit", "2s"),
    ("--poll-believe-absence-after", "2s"),
    ("--claims-expiry-1", "2s"),
    ("--claims-expiry-2", "6s"),
];

/// Instances that are to be, over one database and one ledger.
pub struct Group {
    pub bench: Bench,
    url: String,
    _database: Option<TestDatabase>,
}

impl Group {
    pub fn new(services: usize) -> Self {
        let database = TestDatabase::create();
        let url = database.url().to_owned();
        Self { _database: Some(database), ..Self::over(url, services) }
    }

    /// Instances over the database of this URL.
    pub fn over(url: String, services: usize) -> Self {
        let bench = Bench::scabbard(services).stored_in(&url);
        Self { bench, url, _database: None }
    }

    /// An instance of this name.
    pub fn start(&self, name: &str) -> Serving {
        self.start_with(name, &[])
    }

    pub fn start_with(&self, name: &str, more: &[(&str, &str)]) -> Serving {
        self.bench.serve_with(&Self::flags(name, more))
    }

    pub fn flags<'a>(name: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        [FLAGS, &[("--claims-name", name)], more].concat()
    }

    /// The batch of this number of each service.
    pub fn batches(&self, number: usize) -> Vec<Made> {
        self.bench.services.iter().map(|service| batch(service, number)).collect()
    }

    /// How many services the instance of this name claims.
    pub fn claimed_by(&self, name: &str) -> usize {
        let claims = self.claims();
        claims.iter().filter(|claim| claim.is_by(name)).count()
    }

    pub fn until_claimed_by(&self, name: &str, services: usize) {
        until(&format!("{name} claims {services} services"), || self.claimed_by(name) == services);
    }

    /// Who claims which service.
    pub fn claims(&self) -> Vec<Claim> {
        let claims =
            "select service_id, claimant, epoch from service_id_claims order by service_id";
        sql_query(claims).load(&mut self.connect()).unwrap()
    }

    /// The runs of instances of this name that live: in the first expiry, by the database's clock.
    pub fn living(&self, name: &str) -> Vec<Run> {
        let living = "select instance_id, expiry_1 from instances
            where expiry_1 > extract(epoch from clock_timestamp()) * 1000000";
        let mut runs: Vec<Run> = sql_query(living).load(&mut self.connect()).unwrap();
        runs.retain(|run| is_of(&run.instance_id, name));
        runs
    }

    fn connect(&self) -> PgConnection {
        PgConnection::establish(&self.url).unwrap()
    }

    /// Holds the ledger while this instance sends these batches, and ends when it does.
    pub fn send_into_the_void(&self, instance: &Serving, batches: &[Made]) {
        self.bench.ledger.freeze();
        instance.hand_in(batches);
        let store = self.bench.store();
        until("they are being sent", || count(&store, BatchState::Submitting) == batches.len());
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
    fn is_by(&self, name: &str) -> bool {
        self.claimant.as_ref().is_some_and(|claimant| is_of(claimant, name))
    }
}

#[derive(Debug, QueryableByName)]
pub struct Run {
    #[diesel(sql_type = Text)]
    pub instance_id: String,
    #[diesel(sql_type = BigInt)]
    pub expiry_1: i64,
}

/// An instance's id is its name and what no other start has.
fn is_of(instance_id: &str, name: &str) -> bool {
    instance_id.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// How long it takes until it is so.
pub fn measured(what: &str, since: Instant, is_so: impl FnMut() -> bool) -> Duration {
    until(what, is_so);
    let took = since.elapsed();
    println!("{what} after {took:.2?}");
    took
}
