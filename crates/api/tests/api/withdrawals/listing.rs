use serde_json::{Value, json};

use super::chain::{asking, chain};
use crate::fixture::Served;

fn list(served: &Served, query: &str) -> Value {
    let answer = served.get(&format!("/withdrawals{query}"));
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn amounts(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().unwrap();
    data.iter().map(|withdrawal| withdrawal["amount"].as_str().unwrap()).collect()
}

#[test]
fn the_newest_come_first_page_by_page() {
    let served = chain();
    assert_eq!(amounts(&list(&served, "")), Vec::<&str>::new());
    for amount in ["1", "2", "3", "4", "5"] {
        served.withdraw(amount);
    }
    let mut seen = Vec::new();
    let mut path = "/withdrawals?limit=2&pool=POOL1".to_owned();
    loop {
        let page = served.get(&path).json();
        assert_eq!(page["paging"]["limit"], 2);
        assert_eq!(page["link"], format!("http://grid.test{path}"));
        seen.push(amounts(&page).join(","));
        let Some(next) = page["paging"]["next"].as_str() else { break };
        path = next.strip_prefix("http://grid.test").unwrap().to_owned();
        served.withdraw("9");
    }
    assert_eq!(seen, ["5,4", "3,2", "1"]);
}

#[test]
fn a_page_that_is_just_full_is_the_last() {
    let served = chain();
    served.withdraw("1");
    served.withdraw("2");
    let page = list(&served, "?limit=2");
    assert_eq!((amounts(&page), &page["paging"]["next"]), (vec!["2", "1"], &Value::Null));
    assert_eq!(list(&served, "")["paging"], json!({ "limit": 100, "next": null }));
}

#[test]
fn filters_show_what_they_name() {
    let served = chain();
    served.withdraw("1");
    served.post_json("/withdrawals", &[], &asking("pool2", "2")).scheduled();
    let mut other = asking("pool1", "3");
    other["beneficiary"] = "member2".into();
    served.post_json("/withdrawals", &[], &other).scheduled();
    let reward = json!({ "pool": "pool1", "amount": "4" });
    let reward = served.post_json("/rewards", &[], &reward).json()["id"].clone();
    let reward = reward.as_str().unwrap();
    let claim = json!({ "beneficiary": "member3" });
    served.post_json(&format!("/rewards/{reward}/claim"), &[], &claim).scheduled();
    served.make("7");

    for (query, expected) in [
        ("?pool=pool2".to_owned(), vec!["2"]),
        ("?beneficiary=MEMBER2".to_owned(), vec!["3"]),
        (format!("?reward_id={reward}"), vec!["4"]),
        ("?state=ended".to_owned(), vec!["1"]),
        ("?state=open".to_owned(), vec!["4", "3", "2"]),
        ("?state=open&pool=pool1&beneficiary=member1".to_owned(), vec![]),
    ] {
        assert_eq!(amounts(&list(&served, &query)), expected, "{query}");
    }
}

#[test]
fn what_is_wrong_in_a_query_is_named_with_its_rule() {
    let served = chain();
    let zeros = "0".repeat(32);
    for (query, code, words) in [
        ("?limit=0", 1023, "1 to 1000"),
        ("?limit=1001", 1023, "\"1001\""),
        ("?limit=two", 1023, "limit"),
        ("?state=new", 1023, "ended, or open"),
        ("?pool=x", 1023, "\"x\" is no pool"),
        ("?beneficiary=x", 1023, "\"x\" is no member"),
        ("?reward_id=zz", 60, "\"zz\""),
        ("?before=zz", 60, "32 digits"),
        ("?poool=pool1", 1007, "\"poool\""),
        ("?state=open&state=ended", 1007, "state"),
        ("?pool=%ff", 1007, "UTF-8"),
    ] {
        let answer = served.get(&format!("/withdrawals{query}"));
        assert_eq!(answer.error(), (400, code), "{query}");
        assert!(answer.message().contains(words), "{query}: {}", answer.message());
    }
    assert_eq!(amounts(&list(&served, &format!("?before={zeros}"))), Vec::<&str>::new());
}
