use std::{sync::Arc, time::Duration};

use diesel::connection::SimpleConnection;
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{WithdrawalId, WithdrawalRules};
use serde_json::json;

use super::chain::{Rules, asking, chain, chain_with};
use crate::fixture::Served;

#[test]
fn a_store_that_cannot_write_is_said_with_where_to_look() {
    let served = Served::with_patience(Duration::from_millis(100), |builder| {
        builder.with_withdrawals(Arc::new(Rules))
    });
    let key = ["idempotency-key: k"];
    let ask = || served.post_json("/withdrawals", &key, &asking("pool1", "5"));
    let lock = served.lock();
    let answer = ask();
    assert_eq!(answer.error(), (503, 1012));
    let reward = json!({ "pool": "pool1", "amount": "5" });
    assert_eq!(served.post_json("/rewards", &[], &reward).error(), (503, 1012));
    drop(lock);
    let id = ask().scheduled();
    assert!(answer.message().contains(&id.to_string()), "{}", answer.message());
    let lock = served.lock();
    let cancel = served.client().ask("POST", &format!("/withdrawals/{id}/cancel"), &[], b"");
    assert_eq!(cancel.error(), (503, 1012));
    drop(lock);
}

#[test]
fn a_store_that_cannot_read_is_said_and_later_answers_again() {
    let served = chain();
    let id = served.withdraw("5");
    let mut other = served.other();
    other.batch_execute("alter table withdrawals rename to elsewhere").unwrap();
    for path in ["/withdrawals", &format!("/withdrawals/{id}")] {
        assert_eq!(served.get(path).error(), (503, 1013));
    }
    other.batch_execute("alter table elsewhere rename to withdrawals").unwrap();
    assert_eq!(served.withdrawal(&id)["state"], "scheduled");
}

#[derive(Debug)]
struct Panicking;

impl WithdrawalRules for Panicking {
    fn pool(&self, _: &str) -> Result<(String, ServiceId), String> {
        panic!("as it was told to")
    }

    fn beneficiary(&self, _: &str) -> Result<String, String> {
        Ok("member1".to_owned())
    }

    fn amount(&self, _: &str) -> Result<String, String> {
        Ok("1".to_owned())
    }
}

#[test]
fn a_composer_that_panics_costs_one_answer_or_none() {
    let served = chain_with(|builder| builder.with_stored(|_| panic!("as it was told to")));
    let id: WithdrawalId = served.withdraw("5");
    assert_eq!(served.withdrawal(&id)["state"], "scheduled");

    let served = Served::with(|builder| builder.with_withdrawals(Arc::new(Panicking)));
    let answer = served.post_json("/withdrawals", &[], &asking("pool1", "5"));
    assert_eq!(answer.error(), (500, 1000));
    assert_eq!(served.get("/health").status, 200);
}
