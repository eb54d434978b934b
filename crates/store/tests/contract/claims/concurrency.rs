//! Many concurrent instances, on PostgreSQL.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{ChangeOutcome, LedgerStatus};
use grid_batch_core::claims::{Claim, ClaimKeeper};
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};

use crate::fixture::{Database, StoreExt, batch, service};

const INSTANCES: usize = 10;

fn instances(db: &Database, options: &ClaimOptions) -> Vec<ClaimStore> {
    let connections = StoreOptions { connections: 1, ..db.options() };
    (0..INSTANCES)
        .map(|_| {
            let store = Store::open(&db.url(), connections.clone()).unwrap();
            ClaimStore::register(store, options.clone()).unwrap()
        })
        .collect()
}

#[test]
fn concurrent_takes_claim_each_service_once() {
    const SERVICES: u64 = 3_000;
    let db = Database::postgres();
    let store = db.open();
    let all: Vec<_> = (0..SERVICES).map(|n| batch(&format!("s::{n:04}"), n)).collect();
    store.add_all(&all);
    let options = ClaimOptions { step: 50, ..ClaimOptions::default() };
    let instances = instances(&db, &options);
    let taken: Vec<Claim> = thread::scope(|scope| {
        let takers: Vec<_> = instances
            .iter()
            .map(|instance| {
                scope.spawn(|| {
                    let mut taken = Vec::new();
                    loop {
                        assert!(instance.renew().unwrap());
                        let step = instance.take(50).unwrap().claims;
                        if step.is_empty() {
                            return taken;
                        }
                        taken.extend(step);
                    }
                })
            })
            .collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    // A step skips services that another instance has locked; the next one finds them.
    let rest = instances[0].take(5_000).unwrap().claims;
    let owners: BTreeMap<ServiceId, u64> =
        taken.iter().chain(&rest).map(|claim| (claim.service_id.clone(), claim.epoch)).collect();
    assert_eq!(owners.len(), all.len());
    assert_eq!(taken.len() + rest.len(), all.len(), "a service was taken twice");
    assert!(owners.values().all(|epoch| *epoch == 1));
}

/// Each instance takes services and batches, records, renews, and sometimes expires. Triggers check epochs and order; a
/// failed transaction fails the test.
#[test]
fn order_is_kept_under_concurrent_takeovers() {
    const SERVICES: u64 = 40;
    const EACH: u64 = 5;
    let db = Database::postgres();
    let store = db.open();
    db.execute(
        "create function watch_epochs() returns trigger language plpgsql as $$ begin
             if new.epoch < old.epoch or (new.claimant is distinct from old.claimant
                 and new.claimant is not null and new.epoch = old.epoch)
             then raise exception 'a service changed hands in one epoch'; end if;
             return new;
         end $$;
         create trigger watch_epochs before update on service_id_claims
             for each row execute function watch_epochs();
         create function watch_order() returns trigger language plpgsql as $$ begin
             if exists (select 1 from batches b where b.service_id = new.service_id
                 and b.created_at < new.created_at and b.ended_at is null)
             then raise exception 'a batch ended before an earlier one'; end if;
             return new;
         end $$;
         create trigger watch_order before update on batches
             for each row execute function watch_order();",
    )
    .unwrap();
    let names: Vec<ServiceId> = (0..SERVICES).map(|n| service(&format!("s::{n:02}"))).collect();
    let batches_of_round = |at: u64| -> Vec<_> {
        (0..).zip(&names).map(|(n, name)| batch(name.as_str(), at * SERVICES + n)).collect()
    };
    let options = ClaimOptions { step: 7, fair_share: true, ..ClaimOptions::default() };
    let instances = instances(&db, &options);
    let committed = AtomicU64::new(0);
    let work = |instance: &ClaimStore| {
        if !instance.renew().unwrap() {
            instance.register_again().unwrap();
        }
        instance.take(20).unwrap();
        for taken in instance.take_next(&names).unwrap() {
            instance.store().outcome(&taken, Outcome::Accepted);
            let done = instance.store().status(&taken, LedgerStatus::Committed);
            assert!(
                matches!(done, ChangeOutcome::Applied { .. }),
                "proof of a commit counts: {done:?}"
            );
            committed.fetch_add(1, Ordering::AcqRel);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..EACH).for_each(|at| store.add_all(&batches_of_round(at))));
        for (number, instance) in instances.iter().enumerate() {
            let (db, work, committed) = (&db, &work, &committed);
            scope.spawn(move || {
                let mut step = number;
                while committed.load(Ordering::Acquire) < SERVICES * EACH {
                    work(instance);
                    step += 1;
                    match step % 5 {
                        0 => db.pass_full_expiry(instance),
                        2 => db.pass_idle_expiry(instance),
                        _ => {}
                    }
                }
            });
        }
    });
    assert_eq!(committed.into_inner(), SERVICES * EACH, "each batch is committed once");
    assert!(store.depths(None, 9).unwrap().is_empty());
}
