use std::{collections::HashSet, thread};

use grid_batch_withdrawals::WithdrawalId;
use serde_json::{Value, json};

use super::chain::{ADMIN, asking, chain};
use crate::fixture::service;

fn with_key(mut body: Value, key: &str) -> Value {
    body["idempotency_key"] = key.into();
    body
}

#[test]
fn the_same_key_and_content_is_the_same_withdrawal_as_it_stands_now() {
    let served = chain();
    let header = ["Idempotency-Key: order 17"];
    let first = served.post_json("/withdrawals", &header, &asking("pool1", "5")).scheduled();
    served.make("9");

    let again = served.post_json("/withdrawals", &header, &asking("POOL1", "005"));
    assert_eq!(again.scheduled(), first);
    assert_eq!(again.json()["state"], "withdrawn");
    let in_body = with_key(asking("pool1", "5"), "order 17");
    assert_eq!(served.post_json("/withdrawals", &[], &in_body).scheduled(), first);
    assert_eq!(served.post_json("/withdrawals", &header, &in_body).scheduled(), first);
}

#[test]
fn the_same_key_with_other_content_is_a_conflict_that_names_what_is_stored() {
    let served = chain();
    let header = ["idempotency-key: k"];
    let first = served.post_json("/withdrawals", &header, &asking("pool1", "5")).scheduled();
    let other = served.post_json("/withdrawals", &header, &asking("pool1", "6"));
    assert_eq!(other.error(), (409, 1026));
    let message = other.message();
    for part in ["5", "pool1", "member1", &first.to_string()] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(other.json()["error"]["link"], format!("http://grid.test/withdrawals/{first}"));
    assert_eq!(served.get("/withdrawals").json()["data"].as_array().unwrap().len(), 1);
}

#[test]
fn another_key_or_another_pool_is_another_withdrawal() {
    let served = chain();
    let ask = |pool, key| {
        served.post_json("/withdrawals", &[], &with_key(asking(pool, "5"), key)).scheduled()
    };
    let ids = [ask("pool1", "a"), ask("pool1", "A"), ask("pool2", "a"), ask("pool1", "é")];
    assert_eq!(HashSet::from(ids).len(), 4);
}

#[test]
fn a_withdrawal_and_a_reward_may_have_the_same_key() {
    let served = chain();
    let reward = json!({ "pool": "pool1", "amount": "5", "idempotency_key": "k" });
    let reward = served.post_json("/rewards", &[], &reward).json()["id"].clone();
    let first = served.post_json("/withdrawals", &["idempotency-key: k"], &asking("pool1", "5"));
    assert_ne!(first.json()["id"], reward);
}

#[test]
fn keys_that_break_the_rule_are_refused() {
    let served = chain();
    let long = "k".repeat(256);
    for key in ["", "a\nb", &long] {
        let answer = served.post_json("/withdrawals", &[], &with_key(asking("pool1", "5"), key));
        assert_eq!(answer.error(), (400, 1024), "{key:?}");
    }
    for headers in [
        &["idempotency-key: a", "idempotency-key: b"][..],
        &["idempotency-key:"],
        &[&format!("idempotency-key: {long}")],
    ] {
        let answer = served.post_json("/withdrawals", headers, &asking("pool1", "5"));
        assert_eq!(answer.error(), (400, 1024), "{headers:?}");
    }
    let both = with_key(asking("pool1", "5"), "a");
    let answer = served.post_json("/withdrawals", &["idempotency-key: b"], &both);
    assert_eq!(answer.error(), (400, 1024));
    assert!(answer.message().contains("two different"), "{}", answer.message());
    let number =
        json!({ "pool": "pool1", "beneficiary": "member1", "amount": "5", "idempotency_key": 5 });
    assert_eq!(served.post_json("/withdrawals", &[], &number).error(), (400, 1023));
}

#[test]
fn many_who_ask_at_once_with_one_key_get_one_withdrawal() {
    let served = chain();
    let ask = || -> WithdrawalId {
        served.post_json("/withdrawals", &["idempotency-key: k"], &asking("pool1", "5")).scheduled()
    };
    let ids: HashSet<WithdrawalId> = thread::scope(|scope| {
        let asking: Vec<_> = (0..24).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(served.store.depth(&service(ADMIN)).unwrap(), 1);
}
