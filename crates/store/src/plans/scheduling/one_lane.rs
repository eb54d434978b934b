//! The statements about invalid batches that stop services with one lane, and about commands that run beside a server.

use std::sync::Arc;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{Decision, NewBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::{AfterInvalid, Scheduling, SchedulingRules};

use super::dependencies::halting;
use crate::{
    ClaimStore, DatabaseUrl, Store, StoreOptions,
    plans::{add, new_batch},
};

const BATCHES: u64 = 700;

fn one_lane() -> ServiceId {
    "plan::one-lane".parse().unwrap()
}

fn batch(number: u64) -> NewBatch {
    new_batch(one_lane(), 50_000 + number)
}

fn open(url: &DatabaseUrl) -> Store {
    let default = Scheduling { after_invalid: AfterInvalid::Halt, ..Scheduling::SERIAL };
    let rules = SchedulingRules { default, ..SchedulingRules::default() };
    Store::open(url, StoreOptions { scheduling: Arc::new(rules), ..StoreOptions::default() })
        .unwrap()
}

pub(super) fn load(url: &DatabaseUrl) {
    add(&open(url), &(0..BATCHES).map(batch).collect::<Vec<_>>());
}

pub(super) struct Stores {
    /// The store for services with one lane.
    store: Store,
    command: Store,
}

impl Stores {
    pub(super) fn open(url: &DatabaseUrl) -> Self {
        Self {
            store: open(url),
            command: Store::open_for_command(url, StoreOptions::default()).unwrap(),
        }
    }
}

/// Ends batches and those that follow them.
pub(super) fn process(claims: &ClaimStore, stores: &Stores) {
    let Stores { store, command } = stores;
    let decide = |store: &Store, number: u64| {
        store.decide(&one_lane(), &batch(number).batch_id, 0, Decision::Invalid).unwrap();
    };
    decide(store, 0);
    store.continue_after(&one_lane(), &batch(0).batch_id, None).unwrap();
    decide(store, 3);
    store.free_dependents(100).unwrap();
    store.end_following(&one_lane(), &batch(3).batch_id, "a reason").unwrap();
    let created_at = store.find(&batch(2).batch_id).unwrap()[0].created_at;
    store.ahead(&one_lane(), &[created_at]).unwrap();
    // No batch may stay open, because the services of the other instances have several lanes.
    decide(store, 1);
    decide(store, 2);

    let stopping = new_batch(halting(), 41_100).batch_id;
    command.decide(&halting(), &stopping, 0, Decision::Invalid).unwrap();
    claims.store().free_dependents(100).unwrap();
}
