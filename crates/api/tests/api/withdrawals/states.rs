use grid_batch_core::Timestamp;
use grid_batch_core::batches::{Decision, Event, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_withdrawals::{
    NewSignedTransaction, NonceOutcome, SigningStore, WithdrawalId, WithdrawalStore,
};
use serde_json::{Value, json};

use super::test_pools::{JSON, server_with_pools};
use crate::test_server::TestServer;

fn state_and_reason(server: &TestServer, id: &WithdrawalId) -> [Value; 2] {
    let mut json = server.withdrawal(id);
    [json["state"].take(), json["waits_for"].take()]
}

#[test]
fn scheduled_withdrawal_shows_its_queue_position() {
    let server = server_with_pools();
    let ids = ["1", "2", "3"].map(|amount| server.withdraw(amount));
    assert_eq!(
        state_and_reason(&server, &ids[0]),
        ["scheduled", "its submission, as the next of its gas admin"]
    );
    assert_eq!(
        state_and_reason(&server, &ids[1]),
        ["scheduled", "1 earlier withdrawal of its gas admin"]
    );
    assert_eq!(
        state_and_reason(&server, &ids[2]),
        ["scheduled", "2 earlier withdrawals of its gas admin"]
    );
}

#[test]
fn each_state_shows_what_it_waits_for() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let taken = server.take();
    assert_eq!(
        state_and_reason(&server, &id),
        ["submitting", "the node's answer to its transaction"]
    );

    let retry_at = Timestamp::from_micros(1_600_000_000_000_000);
    let parked = Event::Outcome { attempt: 1, outcome: Outcome::Parked };
    server.record(&taken, parked, |change| {
        change.error = Some("the price is 40 gwei, and the cap 30".to_owned());
        change.retry_at = Some(retry_at);
    });
    let parked_for =
        "the price is 40 gwei, and the cap 30; next try at 2020-09-13T12:26:40.000000Z";
    assert_eq!(state_and_reason(&server, &id), ["parked", parked_for]);

    let taken = server.take();
    let nonce = server.assign_nonce(&taken);
    server.record_outcome(&taken, Outcome::Ambiguous, "no response");
    assert_eq!(
        state_and_reason(&server, &id),
        ["in_doubt", "evidence of whether its transaction was sent"]
    );

    let repeatable = Event::Evidence { attempt: taken.attempt, evidence: Evidence::Repeatable };
    server.record(&taken, repeatable, |_| ());
    assert_eq!(state_and_reason(&server, &id)[0], "submitting");

    let taken = server.take();
    server.record_outcome(&taken, Outcome::Accepted, "");
    assert_eq!(state_and_reason(&server, &id), ["pending", "its transaction to be mined"]);

    server.record_status(&taken, LedgerStatus::Valid);
    assert_eq!(
        state_and_reason(&server, &id),
        ["mined", "the block of its transaction to be final"]
    );
    let note = "mined in block 12, final with block 14";
    server.store.note(&taken.service_id, nonce, Some(note)).unwrap();
    assert_eq!(state_and_reason(&server, &id), ["mined", note]);

    let pending = Event::status(LedgerStatus::Valid);
    server.record(&taken, pending, |change| change.hold = Some("no receipt".to_owned()));
    assert_eq!(
        state_and_reason(&server, &id),
        ["held", "no receipt (mined in block 12, final with block 14)"]
    );
}

#[test]
fn note_of_an_earlier_generation_is_not_shown() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let taken = server.take();
    let nonce = server.assign_nonce(&taken);
    let note = "reverted in block 12: not the owner";
    server.store.note(&taken.service_id, nonce, Some(note)).unwrap();
    server.store.close_nonce(&taken.service_id, nonce, &NonceOutcome::Reverted).unwrap();
    server.record_outcome(&taken, Outcome::Rejected, "not the owner");
    let retry = format!("/withdrawals/{id}/retry");
    assert_eq!(
        server.client().request("POST", &retry, &[JSON], br#"{"reason": "a test"}"#).status,
        200
    );
    let taken = server.take();
    server.record_outcome(&taken, Outcome::Ambiguous, "nonce 7 is undecided");
    assert_eq!(state_and_reason(&server, &id), ["in_doubt", "nonce 7 is undecided"]);
    server.record_status(&taken, LedgerStatus::Pending);
    assert_eq!(state_and_reason(&server, &id), ["pending", "its transaction to be mined"]);
}

#[test]
fn paid_withdrawal_has_the_id_of_the_pool() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    server.commit_next("340282366920938463463374607431768211456");
    let json = server.withdrawal(&id);
    assert_eq!(json["state"], "withdrawn");
    assert_eq!(json["withdrawal_id"], "340282366920938463463374607431768211456");
    assert!(json.get("fail_reason").is_none() && json.get("waits_for").is_none(), "{json}");
    assert!(json["ended_at"].is_string(), "{json}");
}

#[test]
fn id_of_the_pool_is_shown_when_it_is_final() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let taken = server.take();
    let nonce = server.assign_nonce(&taken);
    server.record_outcome(&taken, Outcome::Accepted, "");
    let outcome = NonceOutcome::Withdrawn { withdrawal_id: "7".to_owned() };
    server.store.close_nonce(&taken.service_id, nonce, &outcome).unwrap();
    let json = server.withdrawal(&id);
    assert_eq!(json["state"], "pending");
    assert!(json.get("withdrawal_id").is_none(), "{json}");
    server.record_status(&taken, LedgerStatus::Committed);
    assert_eq!(server.withdrawal(&id)["withdrawal_id"], "7");
}

#[test]
fn failed_withdrawal_has_a_reason() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    server.fail_next("NOT_OWNER");
    let json = server.withdrawal(&id);
    assert_eq!(json["state"], "failed");
    assert_eq!(json["fail_reason"], "NOT_OWNER");
    assert!(json.get("withdrawal_id").is_none() && json.get("waits_for").is_none(), "{json}");
}

#[test]
fn operator_decision_has_a_reason_only_for_a_failure() {
    for (decision, state, has_reason) in
        [(Decision::Invalid, "failed", true), (Decision::Committed, "withdrawn", false)]
    {
        let server = server_with_pools();
        let id = server.withdraw("5");
        let taken = server.take();
        server.record_outcome(&taken, Outcome::Accepted, "");
        let pending = Event::status(LedgerStatus::Pending);
        server.record(&taken, pending, |change| change.hold = Some("lost".to_owned()));
        server.store.decide(&taken.service_id, &taken.batch_id, taken.attempt, decision).unwrap();
        let json = server.withdrawal(&id);
        assert_eq!(json["state"], state);
        assert_eq!(json.get("fail_reason").is_some(), has_reason, "{json}");
        assert!(json.get("withdrawal_id").is_none(), "{json}");
    }
}

#[test]
fn signed_transactions_are_shown() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let taken = server.take();
    let nonce = server.assign_nonce(&taken);
    let transaction = || server.withdrawal(&id)["transactions"][0].clone();
    let signed = transaction();
    let expected = json!({
        "hash": format!("0x{}", "01".repeat(32)), "nonce": nonce,
        "max_fee_gwei": "30.5", "tip_gwei": "0.000000001", "cancels": false,
        "signed_at": signed["signed_at"], "sent_at": null, "last_error": null, "adopted": false,
    });
    assert_eq!(signed, expected);
    server.store.mark_sent(&[1; 32], Some("fee too low")).unwrap();
    assert_eq!(transaction()["last_error"], "fee too low");
    assert!(transaction()["sent_at"].is_string());
}

#[test]
fn requested_cancellation_is_shown_until_the_end() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    server.store.cancel_withdrawal(&id, &OperatorRequest::program()).unwrap();
    let waits_for = state_and_reason(&server, &id)[1].clone();
    assert_eq!(
        waits_for,
        "cancellation, if it is still possible; its submission, as the next of its gas admin"
    );
    server.fail_next("cancelled before anything was signed");
    let json = server.withdrawal(&id);
    assert!(json["cancelled_at"].is_string() && json.get("waits_for").is_none(), "{json}");
}

/// Two withdrawals, of which the second was signed ahead and sent.
fn signed_ahead(error: Option<&str>) -> (TestServer, WithdrawalId) {
    let server = server_with_pools();
    let [_, second] = ["1", "2"].map(|amount| server.withdraw(amount));
    let head = server.take();
    let nonce = server.assign_nonce(&head) + 1;
    server.record_outcome(&head, Outcome::Accepted, "");
    let following = server.store.following_payments(&head.service_id, &head.batch_id, 9);
    let hash = [9; 32];
    let signed =
        NewSignedTransaction { nonce, hash, bytes: vec![1], max_fee: 1, tip: 1, is_filler: false };
    let following = following.unwrap().unwrap();
    assert!(server.store.sign_following(&following, vec![signed]).unwrap());
    server.store.mark_sent(&hash, error).unwrap();
    (server, second)
}

#[test]
fn withdrawal_signed_ahead_shows_its_transaction() {
    let (server, id) = signed_ahead(None);
    assert_eq!(
        state_and_reason(&server, &id),
        ["pending", "its transaction is sent; it waits for 1 earlier withdrawal of its gas admin"]
    );
}

#[test]
fn refused_transaction_signed_ahead_shows_why() {
    let (server, id) = signed_ahead(Some("txpool is full"));
    let waits_for = "its transaction was last sent with an error: txpool is full; it waits for 1 \
                     earlier withdrawal of its gas admin";
    assert_eq!(state_and_reason(&server, &id), ["pending", waits_for]);
}

#[test]
fn hold_shows_that_the_transaction_was_sent() {
    let (server, id) = signed_ahead(None);
    let details = server.store.withdrawal(&id).unwrap().unwrap().batch;
    server.store.hold_batch(&details.service_id, &details.batch_id, "look first").unwrap();
    let [state, waits_for] = state_and_reason(&server, &id);
    assert_eq!(state, "held");
    let expected = "held by an operator: look first (its transaction was already sent; cancel it to \
                    keep it from being mined)";
    assert_eq!(waits_for, expected);
}
