//! Services that the nodes do not have.

use std::time::Instant;

use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_ledger_sim::LedgerSim;

use crate::{
    batches::{SERVICE, scope, submission},
    nodes::unused_address,
    test_ledger::TestLedger,
};

#[tokio::test]
async fn service_is_unknown_until_a_node_has_it() {
    let ledger = TestLedger::with(|_| LedgerSim::scabbard([]), []);
    let check = &ledger.scabbard;
    let service = SERVICE.parse().unwrap();
    let reason = check.has_service(&service).await.unwrap_err();
    assert!(reason.contains(&ledger.sim.url()), "{reason}");

    let sender = &ledger.scabbard;
    let answer = sender.send(&ledger.sim.url(), &submission(1, 1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Refused, Some(404)));
    let message = answer.message.unwrap();
    assert!(message.contains(&format!("does not have the service {SERVICE}")), "{message}");

    ledger.sim.add_service(scope());
    assert!(check.has_service(&service).await.is_err(), "the node was asked a moment ago");
    ledger.advance(10);
    assert_eq!(check.has_service(&service).await, Ok(true));
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
}

#[tokio::test]
async fn node_that_does_not_answer_is_asked_about_one_new_service() {
    let ledger = TestLedger::with(|ledger| ledger, []);
    let check = &ledger.scabbard;
    ledger.sim.freeze();
    let started = Instant::now();
    assert_eq!(check.has_service(&SERVICE.parse().unwrap()).await, Ok(false));
    let first = started.elapsed();
    assert_eq!(check.has_service(&"abcDE-F0123::gsYY".parse().unwrap()).await, Ok(false));
    let second = started.elapsed() - first;
    assert!(second < first / 2, "clients wait for it again: {first:?}, {second:?}");
}

#[tokio::test]
async fn service_is_not_unknown_before_all_nodes_say_so() {
    let ledger = TestLedger::with(|_| LedgerSim::scabbard([]), [unused_address()]);
    let check = &ledger.scabbard;
    assert_eq!(ledger.send(1).await, Outcome::NotSent);
    assert_eq!(check.has_service(&SERVICE.parse().unwrap()).await, Ok(false));
}
