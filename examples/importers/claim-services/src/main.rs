//! Two instances of a program share the services of a store, whose tables are in the database of the program beside its
//! own, some of which have the same names. The second instance takes over when the first one stops.
//!
//! `DATABASE_URL` names a PostgreSQL database, in which the program makes its tables and drops them.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::{env, error::Error, process, time::Duration};

use diesel::{
    connection::SimpleConnection,
    prelude::*,
    r2d2::{ConnectionManager, Pool},
};
use diesel_migrations::MigrationHarness;
use grid_batch_claims::{ClaimMaintainer, ClaimMaintainerOptions, ClaimRequests, Jobs};
use grid_batch_core::batches::{Change, Event, IntakeStore, LedgerStatus, NewBatch};
use grid_batch_core::claims::Claim;
use grid_batch_core::events::Recorded;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::RoundStore;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_store::{
    ClaimOptions, ClaimStore, Migrations, Namespace, SessionSettings, Store, StoreOptions,
};

type AnyError = Box<dyn Error + Send + Sync>;
type DatabasePool = Pool<ConnectionManager<PgConnection>>;

/// Tables of Grid.
const OWN_TABLES: &str = "
    create table batches (header_signature text primary key, data text not null);
    create table transactions (header_signature text primary key, batch_id text not null);
    create table transaction_receipts (transaction_id text primary key, result_valid boolean);
    insert into batches (header_signature, data) values ('5a5a', 'a batch of Grid')";

diesel::table! {
    batches (header_signature) {
        header_signature -> Text,
        data -> Text,
    }
}

/// An instance. A server would give `claims` to its queue, and the stream of what is recorded to its poller.
struct Instance {
    claims: ClaimStore,
    /// Releases the claims when it is dropped.
    maintainer: ClaimMaintainer,
    taken: Receiver<Claim>,
}

impl Instance {
    fn start(name: &str, store: &Store, jobs: &Jobs) -> Result<Self, AnyError> {
        let options = ClaimOptions { name: Some(name.to_owned()), ..ClaimOptions::default() };
        let claims = ClaimStore::register(store.clone(), options)?;
        let (sender, taken) = mpsc::channel();
        let (requests, received) = ClaimRequests::new();
        let maintainer = ClaimMaintainer::start(
            jobs,
            claims.clone(),
            ClaimMaintainerOptions::default(),
            move |entry: Recorded<'_>| report(entry, &sender),
            requests,
            received,
        )?;
        Ok(Self { claims, maintainer, taken })
    }

    fn wait_for_claims(&self, name: &str, count: usize) -> Result<(), RecvTimeoutError> {
        for _ in 0..count {
            let Claim { service_id, epoch } = self.taken.recv_timeout(Duration::from_secs(60))?;
            println!("{name} owns {service_id} in epoch {epoch}");
        }
        Ok(())
    }

    /// Takes the next batch of this service, and records that the ledger has committed it.
    fn process(&self, service: &ServiceId) -> Result<usize, AnyError> {
        let taken = self.claims.take_next(std::slice::from_ref(service))?;
        for taken in &taken {
            let change = |event| Change::new(taken.service_id.clone(), taken.batch_id, event);
            let accepted = Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted };
            let committed = Event::status(LedgerStatus::Committed);
            self.claims.store().record(&[change(accepted), change(committed)])?;
        }
        Ok(taken.len())
    }
}

fn report(entry: Recorded<'_>, sender: &Sender<Claim>) {
    let Recorded::TakenOver(takeover) = entry else { return };
    // An error means that the instance has stopped.
    takeover.claims.iter().for_each(|claim| drop(sender.send(claim.clone())));
}

fn share(store: &Store) -> Result<(), AnyError> {
    let services: [ServiceId; 2] = ["circuit::one".parse()?, "circuit::two".parse()?];
    for (number, service) in (1..).zip(&services) {
        let id = ItemId::from_bytes([number; ItemId::BYTES]);
        let batch = NewBatch::new(service.clone(), id, b"the bytes of the batch".to_vec());
        store.add(&[&[batch]])?.into_iter().try_for_each(|list| list.map(drop))?;
    }
    let jobs = Jobs::start()?;
    let first = Instance::start("first", store, &jobs)?;
    first.wait_for_claims("first", services.len())?;
    let second = Instance::start("second", store, &jobs)?;
    assert_eq!((first.process(&services[0])?, second.process(&services[1])?), (1, 0));

    drop(first.maintainer);
    second.wait_for_claims("second", services.len())?;
    assert_eq!(
        (first.claims.ready_services(None, 9)?.len(), second.process(&services[1])?),
        (0, 1)
    );
    Ok(())
}

fn main() -> Result<(), AnyError> {
    let url = env::var("DATABASE_URL").map_err(|error| format!("DATABASE_URL: {error}"))?;
    let name = format!("importer_{}", process::id());
    let namespace = Namespace::new(&name)?;
    let options = StoreOptions { namespace: namespace.clone(), ..StoreOptions::default() };
    let pool: DatabasePool = Pool::builder()
        .connection_customizer(Box::new(SessionSettings::new(&options)))
        .build(ConnectionManager::new(url))?;
    let mut connection = pool.get()?;
    connection.batch_execute(OWN_TABLES)?;
    connection.run_pending_migrations(Migrations::new(namespace))?;
    let shared =
        Store::over(pool.clone(), options).map_err(AnyError::from).and_then(|it| share(&it));
    let own: i64 = batches::table.count().get_result(&mut connection)?;
    println!("the program's table batches has {own} row");
    let drop_own = "drop table batches, transactions, transaction_receipts";
    connection.batch_execute(&format!("{drop_own}; drop schema {name} cascade"))?;
    assert_eq!(own, 1);
    shared
}
