use grid_batch_withdrawals::{Withdrawal, WithdrawalId, WithdrawalKind, WithdrawalStore};
use serde_json::{Value, json};

use super::test_pools::{ADMIN, server_with_pools, withdrawal_request};
use crate::test_server::{TestServer, service};

fn list(server: &TestServer, query: &str) -> Value {
    let response = server.get(&format!("/withdrawals{query}"));
    assert_eq!(response.status, 200, "{}", response.json());
    response.json()
}

fn amounts(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().unwrap();
    data.iter().map(|withdrawal| withdrawal["amount"].as_str().unwrap()).collect()
}

#[test]
fn pages_list_the_newest_first() {
    let server = server_with_pools();
    assert_eq!(amounts(&list(&server, "")), Vec::<&str>::new());
    for amount in ["1", "2", "3", "4", "5"] {
        server.withdraw(amount);
    }
    let mut seen = Vec::new();
    let mut path = "/withdrawals?limit=2&pool=POOL1".to_owned();
    loop {
        let page = server.get(&path).json();
        assert_eq!(page["paging"]["limit"], 2);
        assert_eq!(page["link"], format!("http://grid.test{path}"));
        seen.push(amounts(&page).join(","));
        let Some(next) = page["paging"]["next"].as_str() else { break };
        path = next.strip_prefix("http://grid.test").unwrap().to_owned();
        server.withdraw("9");
    }
    assert_eq!(seen, ["5,4", "3,2", "1"]);
}

#[test]
fn last_page_may_be_full() {
    let server = server_with_pools();
    server.withdraw("1");
    server.withdraw("2");
    let page = list(&server, "?limit=2");
    assert_eq!((amounts(&page), &page["paging"]["next"]), (vec!["2", "1"], &Value::Null));
    assert_eq!(list(&server, "")["paging"], json!({ "limit": 100, "next": null }));
}

#[test]
fn withdrawal_is_found_by_its_idempotency_key() {
    let server = server_with_pools();
    let id = server.post_withdrawal(&["idempotency-key: invoice 17"], "pool1", "1").scheduled_id();
    server.withdraw("2");
    let mut in_body = withdrawal_request("pool2", "3");
    in_body["idempotency_key"] = "invoice 17".into();
    server.post_json("/withdrawals", &[], &in_body).scheduled_id();
    assert_eq!(server.withdrawal(&id)["idempotency_key"], "invoice 17");
    assert_eq!(amounts(&list(&server, "?idempotency_key=invoice%2017")), ["3", "1"]);
    assert_eq!(amounts(&list(&server, "?idempotency_key=invoice+17&pool=pool1")), ["1"]);
    assert_eq!(amounts(&list(&server, "?idempotency_key=invoice")), [""; 0]);
    assert_eq!(amounts(&list(&server, "?idempotency_key_contains=voice+1")), ["3", "1"]);
    assert_eq!(amounts(&list(&server, "?idempotency_key_contains=Voice")), [""; 0]);
    assert!(list(&server, "?pool=pool1")["data"][0].get("idempotency_key").is_none());
}

#[test]
fn filters_select_withdrawals() {
    let server = server_with_pools();
    server.withdraw("1");
    server.post_withdrawal(&[], "pool2", "2").scheduled_id();
    let mut other = withdrawal_request("pool1", "3");
    other["beneficiary"] = "member2".into();
    server.post_json("/withdrawals", &[], &other).scheduled_id();
    let reward = json!({ "pool": "pool1", "amount": "4" });
    let reward = server.post_json("/rewards", &[], &reward).json()["id"].clone();
    let reward = reward.as_str().unwrap();
    let claim = json!({ "beneficiary": "member3" });
    server.post_json(&format!("/rewards/{reward}/claim"), &[], &claim).scheduled_id();
    server.commit_next("7");

    for (query, expected) in [
        ("?pool=pool2".to_owned(), vec!["2"]),
        ("?beneficiary=MEMBER2".to_owned(), vec!["3"]),
        (format!("?reward_id={reward}"), vec!["4"]),
        ("?pool_contains=OL2".to_owned(), vec!["2"]),
        ("?beneficiary_contains=ber2&pool_contains=1".to_owned(), vec!["3"]),
        ("?beneficiary_contains=member&state=open&pool=pool1".to_owned(), vec!["4", "3"]),
        ("?idempotency_key_contains=1".to_owned(), vec![]),
        ("?state=ended".to_owned(), vec!["1"]),
        ("?state=open".to_owned(), vec!["4", "3", "2"]),
        ("?state=open&pool=pool1&beneficiary=member1".to_owned(), vec![]),
        ("?state=withdrawn".to_owned(), vec!["1"]),
        ("?state=scheduled,withdrawn&pool=pool1".to_owned(), vec!["4", "3", "1"]),
        ("?state=failed,held".to_owned(), vec![]),
        ("?state=ended,open".to_owned(), vec!["4", "3", "2", "1"]),
        ("?state=ended&state=open".to_owned(), vec!["4", "3", "2", "1"]),
    ] {
        assert_eq!(amounts(&list(&server, &query)), expected, "{query}");
    }
}

#[test]
fn next_page_is_after_the_last_entry() {
    let server = server_with_pools();
    for amount in ["1", "2", "3"] {
        server.withdraw(amount);
    }
    let first = list(&server, "?limit=2");
    let next = first["next"].as_str().unwrap();
    let rest = list(&server, &format!("?limit=1&after={next}"));
    assert_eq!((amounts(&rest), &rest["next"]), (vec!["1"], &Value::Null));
    let page =
        list(&server, &format!("?limit=1&after={}", first["data"][0]["id"].as_str().unwrap()));
    let url = page["paging"]["next"].as_str().unwrap();
    assert!(url.ends_with(&format!("?before={next}&limit=1")), "{url}");
}

#[test]
fn list_of_failed_withdrawals_has_their_reasons() {
    let server = server_with_pools();
    server.withdraw("1");
    server.withdraw("2");
    server.fail_next("the pool is empty");
    let page = list(&server, "?state=failed");
    assert_eq!(amounts(&page), ["1"]);
    assert_eq!(page["data"][0]["fail_reason"], "the pool is empty");
}

#[test]
fn list_of_a_removed_pool_is_readable() {
    let server = server_with_pools();
    let removed = Withdrawal {
        id: WithdrawalId::from_bytes([1; 16]),
        service_id: service(ADMIN),
        kind: WithdrawalKind::Propose,
        reward_id: None,
        pool: "removed pool".to_owned(),
        beneficiary: "member1".to_owned(),
        amount: "7".to_owned(),
        idempotency_key: None,
        call: None,
        trace: None,
    };
    server.store.schedule(&[removed]).unwrap().remove(0).unwrap();
    assert_eq!(amounts(&list(&server, "?pool=removed%20pool")), ["7"]);
    let request = withdrawal_request("removed pool", "1");
    assert_eq!(server.post_json("/withdrawals", &[], &request).error(), (400, 1023));
}

#[test]
fn invalid_parameters_are_refused_with_their_rule() {
    let server = server_with_pools();
    let zeros = "0".repeat(32);
    for (query, code, words) in [
        ("?limit=0", 1023, "1 to 1000"),
        ("?limit=1001", 1023, "\"1001\""),
        ("?limit=two", 1023, "limit"),
        ("?state=new", 1023, "scheduled, parked, submitting, in_doubt, pending, mined, held, "),
        ("?state=failed,,held", 1023, "it has \"\""),
        ("?state=Failed", 1023, "\"Failed\""),
        ("?pool=x", 1023, "\"x\" is not a pool"),
        ("?beneficiary=x", 1023, "\"x\" is not a member"),
        ("?reward_id=zz", 60, "\"zz\""),
        ("?before=zz", 60, "32 digits"),
        ("?poool=pool1", 1007, "\"poool\""),
        ("?pool=pool1&pool=pool2", 1007, "pool"),
        ("?pool=%ff", 1007, "UTF-8"),
    ] {
        let response = server.get(&format!("/withdrawals{query}"));
        assert_eq!(response.error(), (400, code), "{query}");
        assert!(response.message().contains(words), "{query}: {}", response.message());
    }
    assert_eq!(amounts(&list(&server, &format!("?before={zeros}"))), Vec::<&str>::new());
}
