//! What is read below `/v1`, of a server with a ledger.

use grid_batch_test_support::batches::signed_batches;
use serde_json::Value;

use crate::harness::BatchHarness;

#[test]
fn committed_batch_its_service_and_its_ledger_are_shown() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);

    let id = &batches[0].batch_id;
    let details = server.get(&format!("/v1/batches/{id}?wait=60"));
    assert_eq!(details["state"], "committed");
    let last = details["history"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["kind"], &last["state"]), (&"status".into(), &"committed".into()));
    assert_eq!(server.get("/v1/batches?state=ended")["data"][0]["id"], id.to_string());

    let services = server.get("/v1/services?idle=true");
    let service = &services["data"][0];
    assert_eq!((&service["open"], &service["strategy"]), (&0.into(), &"serial".into()));
    let claims = server.get("/v1/claims");
    assert_eq!(claims["data"][0]["instance_id"], service["owner"]["instance_id"], "{claims}");
    let ledger = &server.get("/v1/ledgers")["data"][0];
    assert_eq!((&ledger["kind"], &ledger["problem"]), (&"scabbard".into(), &Value::Null));
    assert_eq!(ledger["nodes"][0]["confirmed"], true, "{ledger}");
    server.stop();
}
