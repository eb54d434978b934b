use std::sync::mpsc;

use grid_batch_core::BatchState;
use serde_json::json;

use super::chain::{ADMIN, OTHER_ADMIN, asking, chain, chain_with};
use crate::fixture::service;

#[test]
fn a_withdrawal_is_stored_and_told_as_it_stands() {
    let served = chain();
    let asked = json!({ "pool": "POOL1", "beneficiary": "Member1", "amount": "0500" });
    let answer = served.post_json("/withdrawals", &[], &asked);
    let id = answer.scheduled();
    let mut json = answer.json();
    let created_at = json["created_at"].take();
    assert!(created_at.as_str().unwrap().ends_with('Z'), "{created_at}");
    let expected = json!({
        "id": id.to_string(), "kind": "propose",
        "pool": "pool1", "beneficiary": "member1", "amount": "500", "gas_admin": ADMIN,
        "state": "scheduled", "waits_for": "its turn",
        "generation": 1, "attempts": 0, "transactions": [],
        "created_at": null, "ended_at": null,
        "link": format!("http://grid.test/withdrawals/{id}"),
    });
    assert_eq!(json, expected);
    assert_eq!(served.withdrawal(&id)["created_at"], created_at);

    let story = served.store.withdrawal(&id).unwrap().unwrap();
    assert_eq!(story.batch.progress.state, BatchState::New);
    let batch = served.store.find(&id.batch_id(1)).unwrap();
    assert_eq!(batch[0].service_id, service(ADMIN));
}

#[test]
fn a_largest_amount_keeps_its_last_digit() {
    let served = chain();
    let id = served.withdraw("18446744073709551615");
    assert_eq!(served.withdrawal(&id)["amount"], "18446744073709551615");
}

#[test]
fn each_without_a_key_is_a_withdrawal_of_its_own() {
    let served = chain();
    assert_ne!(served.withdraw("5"), served.withdraw("5"));
}

#[test]
fn the_gas_admin_is_told_after_the_commit_and_only_of_what_is_new() {
    let (tell, told) = mpsc::channel();
    let served = chain_with(|builder| {
        builder.with_stored(move |services| tell.send(services.to_vec()).unwrap())
    });
    let key = ["idempotency-key: one"];
    let ask = |pool| served.post_json("/withdrawals", &key, &asking(pool, "5")).scheduled();
    let first = ask("pool1");
    assert_eq!(told.try_recv().unwrap(), [service(ADMIN)]);
    assert_eq!(ask("pool1"), first);
    assert!(told.try_recv().is_err());
    ask("pool2");
    assert_eq!(told.try_recv().unwrap(), [service(OTHER_ADMIN)]);
}

#[test]
fn a_withdrawal_is_a_batch_whose_status_can_be_asked() {
    let served = chain();
    let batch = served.withdraw("5").batch_id(1);
    assert_eq!(served.get_status(&batch).statuses(), ["PENDING"]);
    served.make("7");
    assert_eq!(served.get_status(&batch).statuses(), ["COMMITTED"]);
}
