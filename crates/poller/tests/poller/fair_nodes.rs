//! Nodes and services that do not answer leave connections to the others.

use std::{
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use grid_batch_core::batches::{
    BatchState::{Committed, Pending},
    LedgerStatus,
};
use grid_batch_nodes::{IdentityAnswer, NodePool, NodePoolOptions};
use grid_batch_poller::{MonitorOptions, ShutdownHandle};

use crate::support::*;

const CONNECTIONS: usize = 8;
const FROZEN: usize = 40;

/// The node of a service is the part of its id before the dash.
fn nodes_of(services: &[&str]) -> NodePool {
    let node_of = |service: &&str| service.split_once('-').unwrap().0.to_owned();
    let services = services.iter().map(|service| (service.parse().unwrap(), node_of(service)));
    let services = services.collect();
    NodePool::with_options(NodePoolOptions { services, ..NodePoolOptions::default() })
}

/// A ledger with a node that never answers and a node that commits.
fn ledger_with_frozen_node() -> Arc<Ledger> {
    let ledger = Ledger::new(|service, ids| {
        if service.starts_with("frozen") {
            Box::pin(pending())
        } else {
            answer(all(ids, LedgerStatus::Committed))
        }
    });
    Arc::new(ledger.with_connections(CONNECTIONS))
}

#[test]
fn frozen_node_leaves_connections_to_another_one() {
    let names: Vec<String> = (0..FROZEN).map(|number| format!("frozen-{number}")).collect();
    let services: Vec<&str> = names.iter().map(String::as_str).chain(["good-0"]).collect();
    let store = Store::with(&services);
    let ledger = ledger_with_frozen_node();
    let options = MonitorOptions { drain_limit: SECOND / 100, ..options() };
    let running =
        run(builder(&store, &ledger).with_nodes(nodes_of(&services)).with_options(options));
    store.wait_for_state(FROZEN, Committed);
    running.wait_for_shutdown().unwrap();
    assert_eq!(store.state(0), Pending);
    let (_, most) = ledger.in_flight.get();
    assert!(most <= CONNECTIONS, "{most} requests in flight");
}

/// If the nodes are not known, services that failed before get a part of the connections.
#[test]
fn services_that_fail_leave_connections_to_others() {
    let names: Vec<String> = (0..FROZEN).map(|number| format!("failing-{number}")).collect();
    let services: Vec<&str> = names.iter().map(String::as_str).collect();
    let store = Store::with(&services);
    let failed = Arc::new(WatchedValue::<std::collections::HashSet<String>>::default());
    let seen = Arc::clone(&failed);
    let ledger = Ledger::new(move |service, ids| {
        if !service.starts_with("failing") {
            return answer(all(ids, LedgerStatus::Committed));
        }
        let is_new = seen.change(|seen| seen.insert(service.to_owned()));
        if is_new { Box::pin(std::future::ready(Err(unavailable()))) } else { Box::pin(pending()) }
    });
    let ledger = Arc::new(ledger.with_connections(CONNECTIONS));
    let options = MonitorOptions { drain_limit: SECOND / 100, ..options() };
    let running = run(builder(&store, &ledger).with_options(options));
    failed.wait_until(|failed| failed.len() == FROZEN);
    until(|| running.stats().failed == FROZEN as u64);
    store.clock.advance(SECOND * 60);
    ledger.in_flight.wait_until(|(now, _)| *now == CONNECTIONS / 4);
    store.add("good", FROZEN, Pending, SECOND);
    running.trigger().trigger("good");
    store.wait_for_state(FROZEN, Committed);
    assert_eq!(ledger.in_flight.get().0, CONNECTIONS / 4);
    running.wait_for_shutdown().unwrap();
}

/// Otherwise their next polls would be later.
#[test]
fn services_that_failed_are_polled_when_a_node_is_back() {
    let services = ["node-0"];
    let (store, pool) = (Store::with(&services), nodes_of(&services));
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let ledger = Arc::new(Ledger::new(move |_, ids| {
        if up.load(Relaxed) {
            answer(all(ids, LedgerStatus::Committed))
        } else {
            Box::pin(ready(Err(unavailable())))
        }
    }));
    let running = run(builder(&store, &ledger).with_nodes(pool.clone()));
    until(|| running.stats().failed == 1);
    is_up.store(true, Relaxed);
    pool.told_identity(&pool.nodes()[0], IdentityAnswer::Confirmed, pool.monotonic(), 0);
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
}
