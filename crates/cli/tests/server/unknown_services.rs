//! Batches of Scabbard services that the node does not have.

use grid_batch_core::BatchState;
use grid_batch_test_support::{
    batches::{batch_ids, signed_batch},
    wait::wait_until,
};

use crate::harness::{BatchHarness, count_in_state};

const UNKNOWN: &str = "test-00000::zzzzz";

#[test]
fn unknown_service_waits_once_and_is_refused_until_created() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let store = harness.store();
    let [first, second] = [1, 2].map(|number| signed_batch(UNKNOWN, number));
    server.submit(std::slice::from_ref(&first));
    wait_until("the first batch says why it waits", || {
        let error = store.find(&first.batch_id).unwrap().remove(0).last_error;
        error.is_some_and(|error| error.contains(&format!("does not have the service {UNKNOWN}")))
    });

    let refused = server.post(std::slice::from_ref(&second)).unwrap();
    assert_eq!(refused.status, 404, "{refused:?}");
    let error = &refused.json()["error"];
    assert_eq!(error["code"], 1015);
    let message = error["message"].as_str().unwrap();
    for part in [UNKNOWN, &harness.ledger.url(), "service ids are four"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(store.find(&second.batch_id).unwrap().is_empty());
    let known = signed_batch(&harness.services[0], 3);
    server.submit(std::slice::from_ref(&known));
    let warning = "the node does not have this service";
    assert_eq!(server.process.stderr().matches(warning).count(), 1);

    harness.ledger.add_service(UNKNOWN.parse().unwrap());
    wait_until("the batches are committed", || count_in_state(&store, BatchState::Committed) == 2);
    server.submit(std::slice::from_ref(&second));
    wait_until("the last batch is committed", || {
        count_in_state(&store, BatchState::Committed) == 3
    });
    let audit = harness.ledger.audit(&batch_ids(&[first, second, known]));
    assert!(audit.is_clean(), "{audit}");
    server.stop();
}
