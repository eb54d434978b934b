use std::thread;

use grid_batch_withdrawals::RewardId;
use serde_json::{Value, json};

use super::chain::{ADMIN, chain};
use crate::{client::Answer, fixture::Served};

fn reward(served: &Served, once_per_member: bool) -> String {
    let asked = json!({ "pool": "Pool1", "amount": "05", "once_per_member": once_per_member });
    served.post_json("/rewards", &[], &asked).json()["id"].as_str().unwrap().to_owned()
}

fn pay(served: &Served, reward: &str, how: &str, member: &str, headers: &[&str]) -> Answer {
    let path = format!("/rewards/{reward}/{how}");
    served.post_json(&path, headers, &json!({ "beneficiary": member }))
}

const KEY: &[&str] = &["idempotency-key: k"];

#[test]
fn a_reward_is_made_and_shown() {
    let served = chain();
    let answer = served.post_json("/rewards", &[], &json!({ "pool": "POOL1", "amount": "05" }));
    assert_eq!(answer.status, 201);
    let json = answer.json();
    let id = json["id"].as_str().unwrap();
    let path = format!("/rewards/{id}");
    assert!(id.parse::<RewardId>().is_ok());
    assert_eq!(answer.header("location"), Some(path.as_str()));
    assert_eq!(
        json,
        json!({
            "id": id, "pool": "pool1", "amount": "5", "once_per_member": true,
            "created_at": json["created_at"], "link": format!("http://grid.test{path}"),
        })
    );
    assert_eq!(served.get(&path).json(), json);
}

#[test]
fn a_reward_with_a_key_is_made_once() {
    let served = chain();
    let ask =
        |amount| served.post_json("/rewards", KEY, &json!({ "pool": "pool1", "amount": amount }));
    let [first, again] = [ask("5"), ask("5")];
    assert_eq!((again.status, again.json()), (201, first.json()));
    let other = ask("6");
    assert_eq!(other.error(), (409, 1026));
    assert!(other.message().contains("5 from pool1"), "{}", other.message());
    assert_eq!(other.json()["error"]["link"], first.json()["link"]);
}

#[test]
fn what_is_claimed_or_given_is_a_withdrawal_of_the_reward() {
    let served = chain();
    let reward = reward(&served, true);
    for (how, member) in [("claim", "member1"), ("give", "member2")] {
        let answer = pay(&served, &reward, how, &member.to_uppercase(), &[]);
        let id = answer.scheduled();
        let json = served.withdrawal(&id);
        let parts = ["kind", "pool", "beneficiary", "amount", "gas_admin", "reward_id"];
        let expected = [how, "pool1", member, "5", ADMIN, &reward];
        assert_eq!(parts.map(|part| &json[part]), expected.map(Value::from).each_ref());
    }
}

#[test]
fn a_member_has_it_once_by_whichever_way_came_first() {
    let served = chain();
    let reward = reward(&served, true);
    let first = pay(&served, &reward, "claim", "member1", &[]).scheduled();
    for (how, headers) in [("claim", &[][..]), ("give", &[]), ("give", KEY)] {
        let answer = pay(&served, &reward, how, "Member1", headers);
        assert_eq!(answer.error(), (409, 1027), "{how}");
        let link = format!("http://grid.test/withdrawals/{first}");
        assert_eq!(answer.json()["error"]["link"], link);
        assert!(answer.message().contains(&link), "{}", answer.message());
    }
    pay(&served, &reward, "give", "member2", &[]).scheduled();
}

#[test]
fn who_may_repeat_himself_says_so_with_a_key() {
    let served = chain();
    let reward = reward(&served, true);
    let first = pay(&served, &reward, "claim", "member1", KEY).scheduled();
    assert_eq!(pay(&served, &reward, "claim", "member1", KEY).scheduled(), first);
    assert_eq!(pay(&served, &reward, "claim", "member1", &[]).status, 409);
    let second = pay(&served, &reward, "claim", "member2", KEY).scheduled();
    assert_ne!(first, second, "the member is what counts");
}

#[test]
fn of_many_who_claim_and_give_at_once_one_is_paid() {
    let served = chain();
    let reward = reward(&served, true);
    let answers: Vec<Answer> = thread::scope(|scope| {
        let asking: Vec<_> = (0..32)
            .map(|n| ["claim", "give"][n % 2])
            .map(|how| scope.spawn(|| pay(&served, &reward, how, "member1", &[])))
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (paid, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!((paid.len(), refused.len()), (1, 31));
    let link = paid[0].json()["link"].clone();
    for answer in refused {
        assert_eq!(answer.error(), (409, 1027));
        assert_eq!(answer.json()["error"]["link"], link);
    }
    let stored = served.get(&format!("/withdrawals?reward_id={reward}")).json();
    assert_eq!(stored["data"].as_array().unwrap().len(), 1);
}

#[test]
fn a_reward_for_many_times_is_paid_each_time_and_once_for_each_key() {
    let served = chain();
    let reward = reward(&served, false);
    let claim = |member, headers| pay(&served, &reward, "claim", member, headers);
    let first = claim("member1", &[]).scheduled();
    assert_ne!(claim("member1", &[]).scheduled(), first);
    let keyed = claim("member1", KEY).scheduled();
    assert_eq!(claim("member1", KEY).scheduled(), keyed);
    assert_eq!(claim("member2", KEY).error(), (409, 1026));
    assert_eq!(pay(&served, &reward, "give", "member1", KEY).error(), (409, 1026));
}

#[test]
fn a_reward_that_failed_for_a_member_is_tried_anew_and_not_claimed_anew() {
    let served = chain();
    let reward = reward(&served, true);
    let id = pay(&served, &reward, "claim", "member1", &[]).scheduled();
    served.fail("NOT_MEMBER");
    assert_eq!(pay(&served, &reward, "claim", "member1", &[]).error(), (409, 1027));
    let retried = served.client().ask("POST", &format!("/withdrawals/{id}/retry"), &[], b"");
    assert_eq!(retried.json()["state"], "scheduled");
}

#[test]
fn what_is_not_there_cannot_be_claimed() {
    let served = chain();
    let nothing = "0".repeat(32);
    for how in ["claim", "give"] {
        assert_eq!(pay(&served, &nothing, how, "member1", &[]).error(), (404, 1025));
        assert_eq!(pay(&served, "zz", how, "member1", &[]).error(), (400, 60));
    }
    assert_eq!(served.get(&format!("/rewards/{nothing}")).error(), (404, 1025));
    assert_eq!(served.get("/rewards/zz").error(), (400, 60));
}
