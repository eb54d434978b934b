use grid_batch_core::{Decision, Event, Evidence, LedgerStatus, Outcome, Timestamp};
use grid_batch_withdrawals::{NonceOutcome, SigningStore, WithdrawalId};
use serde_json::{Value, json};

use super::chain::chain;
use crate::fixture::Served;

fn standing(served: &Served, id: &WithdrawalId) -> [Value; 2] {
    let mut json = served.withdrawal(id);
    [json["state"].take(), json["waits_for"].take()]
}

#[test]
fn one_that_is_not_next_says_how_many_come_before_it() {
    let served = chain();
    let ids = ["1", "2", "3"].map(|amount| served.withdraw(amount));
    assert_eq!(standing(&served, &ids[0]), ["scheduled", "its turn"]);
    assert_eq!(
        standing(&served, &ids[1]),
        ["scheduled", "1 withdrawal of its gas admin comes before it"]
    );
    assert_eq!(
        standing(&served, &ids[2]),
        ["scheduled", "2 withdrawals of its gas admin come before it"]
    );
}

#[test]
fn each_state_says_what_is_waited_for() {
    let served = chain();
    let id = served.withdraw("5");
    let taken = served.take();
    assert_eq!(standing(&served, &id), ["submitting", "to be sent, and to be answered"]);

    let again_at = Timestamp::from_micros(1_600_000_000_000_000);
    let parked = Event::Outcome { attempt: 1, outcome: Outcome::Parked };
    served.record(&taken, parked, |change| {
        change.error = Some("the price is 40 gwei, and the cap 30".to_owned());
        change.retry_at = Some(again_at);
    });
    let until = "the price is 40 gwei, and the cap 30; it is looked at again at 2020-09-13T12:26:40.000000Z";
    assert_eq!(standing(&served, &id), ["parked", until]);

    let taken = served.take();
    let nonce = served.sign(&taken);
    served.report(&taken, Outcome::Ambiguous, "no answer");
    assert_eq!(standing(&served, &id), ["in_doubt", "to learn whether it was sent"]);

    let repeatable = Event::Evidence { attempt: taken.attempt, evidence: Evidence::Repeatable };
    served.record(&taken, repeatable, |_| ());
    assert_eq!(standing(&served, &id)[0], "submitting");

    let taken = served.take();
    served.report(&taken, Outcome::Accepted, "");
    assert_eq!(standing(&served, &id), ["pending", "to be mined"]);

    served.status(&taken, LedgerStatus::Valid);
    assert_eq!(standing(&served, &id), ["mined", "to be final"]);
    let note = "mined in block 12, final with block 14";
    served.store.note(&taken.service_id, nonce, Some(note)).unwrap();
    assert_eq!(standing(&served, &id), ["mined", note]);

    let pending = Event::status(LedgerStatus::Valid);
    served.record(&taken, pending, |change| change.hold = Some("nobody says".to_owned()));
    assert_eq!(
        standing(&served, &id),
        ["held", "nobody says (mined in block 12, final with block 14)"]
    );
}

#[test]
fn one_that_was_made_has_the_pools_id_and_no_reason() {
    let served = chain();
    let id = served.withdraw("5");
    served.make("340282366920938463463374607431768211456");
    let json = served.withdrawal(&id);
    assert_eq!(json["state"], "withdrawn");
    assert_eq!(json["withdrawal_id"], "340282366920938463463374607431768211456");
    assert!(json.get("fail_reason").is_none() && json.get("waits_for").is_none(), "{json}");
    assert!(json["ended_at"].is_string(), "{json}");
}

#[test]
fn the_pools_id_is_told_when_it_is_final_and_not_before() {
    let served = chain();
    let id = served.withdraw("5");
    let taken = served.take();
    let nonce = served.sign(&taken);
    served.report(&taken, Outcome::Accepted, "");
    let spent = NonceOutcome::Withdrawn { withdrawal_id: "7".to_owned() };
    served.store.close_nonce(&taken.service_id, nonce, &spent).unwrap();
    let json = served.withdrawal(&id);
    assert_eq!(json["state"], "pending");
    assert!(json.get("withdrawal_id").is_none(), "{json}");
    served.status(&taken, LedgerStatus::Committed);
    assert_eq!(served.withdrawal(&id)["withdrawal_id"], "7");
}

#[test]
fn one_that_failed_has_a_reason_and_no_id_of_the_pool() {
    let served = chain();
    let id = served.withdraw("5");
    served.fail("NOT_OWNER");
    let json = served.withdrawal(&id);
    assert_eq!(json["state"], "failed");
    assert_eq!(json["fail_reason"], "NOT_OWNER");
    assert!(json.get("withdrawal_id").is_none() && json.get("waits_for").is_none(), "{json}");
}

#[test]
fn one_that_a_person_decided_has_a_reason_where_it_failed_and_else_nothing() {
    for (decision, state, has_reason) in
        [(Decision::Invalid, "failed", true), (Decision::Committed, "withdrawn", false)]
    {
        let served = chain();
        let id = served.withdraw("5");
        let taken = served.take();
        served.report(&taken, Outcome::Accepted, "");
        let pending = Event::status(LedgerStatus::Pending);
        served.record(&taken, pending, |change| change.hold = Some("lost".to_owned()));
        served.store.decide(&taken.service_id, &taken.batch_id, decision).unwrap();
        let json = served.withdrawal(&id);
        assert_eq!(json["state"], state);
        assert_eq!(json.get("fail_reason").is_some(), has_reason, "{json}");
        assert!(json.get("withdrawal_id").is_none(), "{json}");
    }
}

#[test]
fn what_was_signed_for_it_is_shown() {
    let served = chain();
    let id = served.withdraw("5");
    let taken = served.take();
    let nonce = served.sign(&taken);
    let transaction = || served.withdrawal(&id)["transactions"][0].clone();
    let signed = transaction();
    let expected = json!({
        "hash": format!("0x{}", "01".repeat(32)), "nonce": nonce,
        "max_fee_gwei": "30.5", "tip_gwei": "0.000000001", "cancels": false,
        "signed_at": signed["signed_at"], "sent_at": null, "last_error": null,
    });
    assert_eq!(signed, expected);
    served.store.mark_sent(&[1; 32], Some("fee too low")).unwrap();
    assert_eq!(transaction()["last_error"], "fee too low");
    assert!(transaction()["sent_at"].is_string());
}

#[test]
fn one_to_be_cancelled_says_so_until_it_ends() {
    let served = chain();
    let id = served.withdraw("5");
    served.store.cancel_withdrawal(&id).unwrap();
    let waits_for = standing(&served, &id)[1].clone();
    assert_eq!(waits_for, "to be cancelled, where that can still be; its turn");
    served.fail("cancelled before anything was signed");
    let json = served.withdrawal(&id);
    assert!(json["cancelled_at"].is_string() && json.get("waits_for").is_none(), "{json}");
}
