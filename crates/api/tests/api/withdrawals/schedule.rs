use grid_batch_withdrawals::WithdrawalStore;
use std::sync::mpsc;

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use serde_json::json;

use super::test_pools::{ADMIN, OTHER_ADMIN, server_with_pools, server_with_pools_and};
use crate::test_server::service;

#[test]
fn withdrawal_is_stored_and_shown() {
    let server = server_with_pools();
    let request = json!({ "pool": "POOL1", "beneficiary": "Member1", "amount": "0500" });
    let response = server.post_json("/withdrawals", &[], &request);
    let id = response.scheduled_id();
    let mut json = response.json();
    let created_at = json["created_at"].take();
    assert!(created_at.as_str().unwrap().ends_with('Z'), "{created_at}");
    let expected = json!({
        "id": id.to_string(), "kind": "propose",
        "pool": "pool1", "beneficiary": "member1", "amount": "500", "gas_admin": ADMIN,
        "state": "scheduled", "waits_for": "its submission, as the next of its gas admin",
        "generation": 1, "attempts": 0, "transactions": [],
        "created_at": null, "ended_at": null,
        "link": format!("http://grid.test/withdrawals/{id}"),
    });
    assert_eq!(json, expected);
    assert_eq!(server.withdrawal(&id)["created_at"], created_at);

    let details = server.store.withdrawal(&id).unwrap().unwrap();
    assert_eq!(details.batch.progress.state, BatchState::New);
    let batch = server.store.find(&id.batch_id(1)).unwrap();
    assert_eq!(batch[0].service_id, service(ADMIN));
}

#[test]
fn largest_amount_is_exact() {
    let server = server_with_pools();
    let id = server.withdraw("18446744073709551615");
    assert_eq!(server.withdrawal(&id)["amount"], "18446744073709551615");
}

#[test]
fn requests_without_a_key_are_separate_withdrawals() {
    let server = server_with_pools();
    assert_ne!(server.withdraw("5"), server.withdraw("5"));
}

#[test]
fn callback_has_the_gas_admin_of_a_new_withdrawal() {
    let (sender, notified) = mpsc::channel();
    let server = server_with_pools_and(|builder| {
        builder.with_stored_callback(move |services| sender.send(services.to_vec()).unwrap())
    });
    let key = ["idempotency-key: one"];
    let schedule = |pool| server.post_withdrawal(&key, pool, "5").scheduled_id();
    let first = schedule("pool1");
    assert_eq!(notified.try_recv().unwrap(), [service(ADMIN)]);
    assert_eq!(schedule("pool1"), first);
    assert!(notified.try_recv().is_err());
    schedule("pool2");
    assert_eq!(notified.try_recv().unwrap(), [service(OTHER_ADMIN)]);
}

#[test]
fn batch_of_a_withdrawal_has_a_status() {
    let server = server_with_pools();
    let batch = server.withdraw("5").batch_id(1);
    assert_eq!(server.get_status(&batch).statuses(), ["PENDING"]);
    server.commit_next("7");
    assert_eq!(server.get_status(&batch).statuses(), ["COMMITTED"]);
}
