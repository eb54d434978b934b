//! Changes that commit after a statement has read a row but before it locks the row, on PostgreSQL. When the lock is
//! held, what was read has changed.

use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::ClaimStore;

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, service, wait_until_blocked};

/// Until the value is dropped, statements with one name wait after they have read claims and before they lock them.
struct BlockedBeforeLock {
    watcher: PgConnection,
    statement: &'static str,
}

impl BlockedBeforeLock {
    fn start(db: &Database, statement: &'static str) -> Self {
        db.execute(&format!(
            "create function wait_before_lock(service_id text) returns boolean language plpgsql as $$
             begin
                 if current_query() like '-- {statement}%' then
                     perform pg_advisory_xact_lock_shared(hashtext(current_schema), 1);
                 end if;
                 return true;
             end $$;
             alter table service_id_claims rename to stored_claims;
             create view service_id_claims as
                 select * from stored_claims where wait_before_lock(service_id)"
        ))
        .unwrap();
        let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
        watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema), 1)").unwrap();
        Self { watcher, statement }
    }

    fn wait(&mut self) {
        wait_until_blocked(&mut self.watcher, self.statement);
    }
}

/// An instance that claims this service, which has batch 1.
fn owner_of(db: &Database, name: &str) -> ClaimStore {
    let owner = db.instance();
    owner.store().add_all(&[batch(name, 1)]);
    assert_eq!(owner.take_all(), [name]);
    owner
}

/// The owner takes the batch just before its idle expiry. A takeover that has read the lane before must not take the
/// service, because its batch is being sent and the full expiry has not passed.
#[test]
fn takeover_after_idle_expiry_checks_again_under_lock() {
    let db = Database::postgres();
    let owner = owner_of(&db, "a::b");
    let other = db.instance();
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema), 2); return new; end';
         create trigger hold_up before update on lanes for each row
             when (new.submitted) execute function hold_up()",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema), 2)").unwrap();
    let mut blocked = BlockedBeforeLock::start(&db, "lock_idle_expired");
    let (taken, taken_over) = thread::scope(|scope| {
        let taking = scope.spawn(|| owner.take_batch("a::b"));
        wait_until_blocked(&mut watcher, "take_round");
        db.pass_idle_expiry(&owner);
        let taking_over = scope.spawn(|| other.take_all());
        blocked.wait();
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema), 2)").unwrap();
        let taken = taking.join().unwrap();
        drop(blocked);
        (taken, taking_over.join().unwrap())
    });
    assert!(taken_over.is_empty(), "{taken_over:?}");
    owner.store().outcome(&taken, Outcome::Accepted);
    assert_eq!(owner.store().one("a::b", 1).progress.state, BatchState::Pending);
}

#[test]
fn release_checks_again_under_lock() {
    let db = Database::postgres();
    let owner = owner_of(&db, "a::b");
    let mut blocked = BlockedBeforeLock::start(&db, "lock_own_claims_named");
    let released = thread::scope(|scope| {
        let releasing = scope.spawn(|| owner.release_services(&[service("a::b")]).unwrap());
        blocked.wait();
        owner.take_batch("a::b");
        drop(blocked);
        releasing.join().unwrap()
    });
    assert_eq!((released, db.claimed_by(&owner)), (0, 1));
}

/// The batch that a round has read ends, and the next one, which the round cannot see, becomes the head.
#[test]
fn round_does_not_take_a_head_installed_meanwhile() {
    let db = Database::postgres();
    let owner = owner_of(&db, "a::b");
    let first = owner.take_batch("a::b");
    owner.store().outcome(&first, Outcome::Ambiguous);
    owner.store().evidence(&first, Evidence::Absent);
    let mut blocked = BlockedBeforeLock::start(&db, "take_round");
    thread::scope(|scope| {
        let taking = scope.spawn(|| owner.take_next(&[service("a::b")]).unwrap());
        blocked.wait();
        owner.store().add_all(&[batch("a::b", 2)]);
        owner.store().status(&first, LedgerStatus::Committed);
        drop(blocked);
        assert!(taking.join().unwrap().is_empty());
    });
    let next = owner.take_batch("a::b");
    assert_eq!((next.batch_id, next.serialized_batch), (id(2), b"the bytes of 2".to_vec()));
}
