use std::thread;

use grid_batch_withdrawals::RewardId;
use serde_json::{Value, json};

use super::test_pools::{ADMIN, JSON, server_with_pools};
use crate::{client::Response, test_server::TestServer};

fn create_reward(server: &TestServer, once_per_member: bool) -> String {
    let request = json!({ "pool": "Pool1", "amount": "05", "once_per_member": once_per_member });
    server.post_json("/rewards", &[], &request).json()["id"].as_str().unwrap().to_owned()
}

fn pay(
    server: &TestServer,
    reward: &str,
    operation: &str,
    member: &str,
    headers: &[&str],
) -> Response {
    let path = format!("/rewards/{reward}/{operation}");
    server.post_json(&path, headers, &json!({ "beneficiary": member }))
}

const KEY: &[&str] = &["idempotency-key: k"];

#[test]
fn reward_is_created_and_shown() {
    let server = server_with_pools();
    let response = server.post_json("/rewards", &[], &json!({ "pool": "POOL1", "amount": "05" }));
    assert_eq!(response.status, 201);
    let json = response.json();
    let id = json["id"].as_str().unwrap();
    let path = format!("/rewards/{id}");
    assert!(id.parse::<RewardId>().is_ok());
    assert_eq!(response.header("location"), Some(path.as_str()));
    assert_eq!(
        json,
        json!({
            "id": id, "pool": "pool1", "amount": "5", "once_per_member": true,
            "created_at": json["created_at"], "link": format!("http://grid.test{path}"),
        })
    );
    assert_eq!(server.get(&path).json(), json);
}

#[test]
fn reward_with_a_key_is_created_once() {
    let server = server_with_pools();
    let create =
        |amount| server.post_json("/rewards", KEY, &json!({ "pool": "pool1", "amount": amount }));
    let [first, again] = [create("5"), create("5")];
    assert_eq!((again.status, again.json()), (201, first.json()));
    let other = create("6");
    assert_eq!(other.error(), (409, 1026));
    assert!(other.message().contains("5 from pool1"), "{}", other.message());
    assert_eq!(other.json()["error"]["link"], first.json()["link"]);
}

#[test]
fn claim_and_give_schedule_a_withdrawal() {
    let server = server_with_pools();
    let reward = create_reward(&server, true);
    for (operation, member) in [("claim", "member1"), ("give", "member2")] {
        let response = pay(&server, &reward, operation, &member.to_uppercase(), &[]);
        let id = response.scheduled_id();
        let json = server.withdrawal(&id);
        let fields = ["kind", "pool", "beneficiary", "amount", "gas_admin", "reward_id"];
        let expected = [operation, "pool1", member, "5", ADMIN, &reward];
        assert_eq!(fields.map(|field| &json[field]), expected.map(Value::from).each_ref());
    }
}

#[test]
fn member_is_paid_once_by_claim_or_give() {
    let server = server_with_pools();
    let reward = create_reward(&server, true);
    let first = pay(&server, &reward, "claim", "member1", &[]).scheduled_id();
    for (operation, headers) in [("claim", &[][..]), ("give", &[]), ("give", KEY)] {
        let response = pay(&server, &reward, operation, "Member1", headers);
        assert_eq!(response.error(), (409, 1027), "{operation}");
        let link = format!("http://grid.test/withdrawals/{first}");
        assert_eq!(response.json()["error"]["link"], link);
        assert!(response.message().contains(&link), "{}", response.message());
    }
    pay(&server, &reward, "give", "member2", &[]).scheduled_id();
}

#[test]
fn repeated_claim_with_a_key_returns_the_first() {
    let server = server_with_pools();
    let reward = create_reward(&server, true);
    let first = pay(&server, &reward, "claim", "member1", KEY).scheduled_id();
    assert_eq!(pay(&server, &reward, "claim", "member1", KEY).scheduled_id(), first);
    assert_eq!(pay(&server, &reward, "claim", "member1", &[]).status, 409);
    let second = pay(&server, &reward, "claim", "member2", KEY).scheduled_id();
    assert_ne!(first, second, "the member counts, not the key");
}

#[test]
fn concurrent_claims_pay_a_member_once() {
    let server = server_with_pools();
    let reward = create_reward(&server, true);
    let responses: Vec<Response> = thread::scope(|scope| {
        let threads: Vec<_> = (0..32)
            .map(|n| ["claim", "give"][n % 2])
            .map(|operation| scope.spawn(|| pay(&server, &reward, operation, "member1", &[])))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (paid, refused): (Vec<_>, Vec<_>) =
        responses.iter().partition(|response| response.status == 201);
    assert_eq!((paid.len(), refused.len()), (1, 31));
    let link = paid[0].json()["link"].clone();
    for response in refused {
        assert_eq!(response.error(), (409, 1027));
        assert_eq!(response.json()["error"]["link"], link);
    }
    let stored = server.get(&format!("/withdrawals?reward_id={reward}")).json();
    assert_eq!(stored["data"].as_array().unwrap().len(), 1);
}

#[test]
fn repeatable_reward_is_paid_once_per_key() {
    let server = server_with_pools();
    let reward = create_reward(&server, false);
    let claim = |member, headers| pay(&server, &reward, "claim", member, headers);
    let first = claim("member1", &[]).scheduled_id();
    assert_ne!(claim("member1", &[]).scheduled_id(), first);
    let keyed = claim("member1", KEY).scheduled_id();
    assert_eq!(claim("member1", KEY).scheduled_id(), keyed);
    assert_eq!(claim("member2", KEY).error(), (409, 1026));
    assert_eq!(pay(&server, &reward, "give", "member1", KEY).error(), (409, 1026));
}

#[test]
fn failed_payment_is_retried_and_not_claimed_again() {
    let server = server_with_pools();
    let reward = create_reward(&server, true);
    let id = pay(&server, &reward, "claim", "member1", &[]).scheduled_id();
    server.fail_next("NOT_MEMBER");
    assert_eq!(pay(&server, &reward, "claim", "member1", &[]).error(), (409, 1027));
    let retried = server.client().request(
        "POST",
        &format!("/withdrawals/{id}/retry"),
        &[JSON],
        br#"{"reason": "a test"}"#,
    );
    assert_eq!(retried.json()["state"], "scheduled");
}

#[test]
fn unknown_reward_cannot_be_paid() {
    let server = server_with_pools();
    let nothing = "0".repeat(32);
    for operation in ["claim", "give"] {
        assert_eq!(pay(&server, &nothing, operation, "member1", &[]).error(), (404, 1025));
        assert_eq!(pay(&server, "zz", operation, "member1", &[]).error(), (400, 60));
    }
    assert_eq!(server.get(&format!("/rewards/{nothing}")).error(), (404, 1025));
    assert_eq!(server.get("/rewards/zz").error(), (400, 60));
}
