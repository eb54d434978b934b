//! Scabbard batches that may have been committed before this database followed their service.

use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, encode_batch_list, signed_batch},
    http::{request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const OCTETS: &str = "content-type: application/octet-stream";
/// Many more transactions than a node replays.
const MANY: usize = 150;

/// Sends batches to the node as another client does, and waits until they are committed.
fn commit_for_another_client(ledger: &LedgerSim, batches: &[SignedBatch]) {
    let token = CylinderToken::new(&SigningKey::from_seed(9));
    let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
    for batch in batches {
        let (circuit, service) = batch.service_id.as_str().split_once("::").unwrap();
        let path = format!("/scabbard/{circuit}/{service}/batches");
        let body = encode_batch_list(std::slice::from_ref(batch));
        let request = request("POST", &path, &[OCTETS, &authorization], &body);
        assert_eq!(send(ledger.address(), &request).unwrap().status, 202);
    }
    wait_until("all are executed", || ledger.record().len() == batches.len());
}

fn is_held(store: &Store, batch: &SignedBatch) -> bool {
    store.find(&batch.batch_id).unwrap()[0].held.is_some()
}

fn state(store: &Store, batch: &SignedBatch) -> BatchState {
    store.find(&batch.batch_id).unwrap()[0].progress.state
}

fn submit_as_new(server: &BatchServer, batch: &SignedBatch) {
    let path = format!("/batches?service_id={}&new=true", batch.service_id);
    let body = encode_batch_list(std::slice::from_ref(batch));
    let response = send(server.address, &request("POST", &path, &[OCTETS], &body)).unwrap();
    assert_eq!(response.status, 202, "{response:?}");
}

/// A new database over a service with a long history, whose node has restarted.
#[test]
fn old_batch_is_held_and_one_that_is_declared_new_is_sent() {
    let harness = BatchHarness::scabbard_with(1, |ledger| ledger.without_back_pressure());
    let service = &harness.services[0];
    let old: Vec<SignedBatch> = (0..MANY).map(|number| signed_batch(service, number)).collect();
    commit_for_another_client(&harness.ledger, &old);
    harness.ledger.restart();
    let server = harness.serve();
    let store = harness.store();
    // The replay names the others, which end as committed.
    let held = old.iter().find(|batch| {
        server.submit(std::slice::from_ref(batch));
        wait_until("the batch has ended or is held", || {
            state(&store, batch) == BatchState::Committed || is_held(&store, batch)
        });
        is_held(&store, batch)
    });
    let held = held.expect("the replay omits a batch");
    let stored = store.find(&held.batch_id).unwrap().remove(0);
    let reason = stored.held.unwrap().reason;
    assert!(reason.starts_with("not proved to be new: the service may have committed"), "{reason}");
    let shown = server.get(&format!("/v1/batches/{}", held.batch_id)).to_string();
    assert!(shown.contains("not proved to be new"), "{shown}");

    let attempt = stored.progress.attempts;
    store.decide(&stored.service_id, &held.batch_id, attempt, Decision::Committed).unwrap();
    let new = signed_batch(service, 10_000);
    submit_as_new(&server, &new);
    wait_until("the new batch is committed", || state(&store, &new) == BatchState::Committed);
    // An operator says that another one is new.
    let other = signed_batch(service, 10_001);
    server.submit(std::slice::from_ref(&other));
    wait_until("it is held", || is_held(&store, &other));
    store.release_batch(&stored.service_id, &other.batch_id, None).unwrap();
    wait_until("it is committed", || state(&store, &other) == BatchState::Committed);
    let sent: Vec<_> = old.iter().chain([&new, &other]).cloned().collect();
    for batch in &sent {
        assert_eq!(harness.ledger.times_received(&batch.batch_id), 1);
    }
    server.stop();
}

/// The node remembers a batch that this database knows as committed.
#[test]
fn restart_holds_no_batch_of_a_followed_service() {
    let harness = BatchHarness::scabbard(1);
    let batches: Vec<SignedBatch> =
        (0..80).map(|number| signed_batch(&harness.services[0], number)).collect();
    let store = harness.store();
    for (part, count) in [(&batches[..70], 70), (&batches[70..], 80)] {
        let server = harness.serve();
        server.submit(part);
        wait_until("all batches are committed", || {
            assert!(store.held_batches(None, 1).unwrap().is_empty());
            count_in_state(&store, BatchState::Committed) == count
        });
        server.stop();
    }
    let audit = harness.ledger.audit(&batch_ids(&batches));
    assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
}
