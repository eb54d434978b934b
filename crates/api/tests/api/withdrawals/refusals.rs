use super::chain::{JSON, chain};
use crate::{client::Answer, fixture::Served};
use grid_batch_withdrawals::WithdrawalFilter;

fn say(served: &Served, path: &str, body: &str) -> Answer {
    served.client().ask("POST", path, &[JSON], body.as_bytes())
}

#[test]
fn each_member_that_is_wrong_is_named_with_its_rule() {
    let served = chain();
    let reward = "/rewards";
    let claim = format!("/rewards/{}/claim", "0".repeat(32));
    for (path, body, code, words) in [
        ("/withdrawals", r#"{}"#, 1023, "pool cannot be taken: it is missing"),
        (
            "/withdrawals",
            r#"{"pool":"x","beneficiary":"member","amount":"1"}"#,
            1023,
            "pool cannot be taken: \"x\" is no pool",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"x","amount":"1"}"#,
            1023,
            "beneficiary cannot be taken: \"x\"",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"member","amount":5}"#,
            1023,
            "amount cannot be taken: it is a number; it must be a text",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"member","amount":"-5"}"#,
            1023,
            "\"-5\" is not a whole number above 0",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"member"}"#,
            1023,
            "amount cannot be taken: it is missing",
        ),
        ("/withdrawals", r#"{"pool":["pool"]}"#, 1023, "it is an array"),
        ("/withdrawals", r#"{"pool":"pool","to":"member"}"#, 1022, "\"to\""),
        ("/withdrawals", r#"{"pool":"pool1","pool":"pool2"}"#, 1022, "twice"),
        ("/withdrawals", "[]", 1022, "expected an object"),
        ("/withdrawals", "", 1022, "JSON object"),
        (
            reward,
            r#"{"pool":"pool","amount":"1","once_per_member":"yes"}"#,
            1023,
            "once_per_member cannot be taken: it is a text; it must be true or false",
        ),
        (reward, r#"{"pool":"pool","amount":1}"#, 1023, "amount"),
        (reward, r#"{"pool":"pool","amount":"1","beneficiary":"member"}"#, 1022, "\"beneficiary\""),
        (&claim, r#"{"beneficiary":"x"}"#, 1023, "\"x\" is no member"),
        (&claim, r#"{"beneficiary":"member","amount":"5"}"#, 1022, "\"amount\""),
    ] {
        let answer = say(&served, path, body);
        assert_eq!(answer.error(), (400, code), "{body}");
        assert!(answer.message().contains(words), "{body}: {}", answer.message());
    }
    let all = served.store.withdrawals(&WithdrawalFilter::default(), None, 9).unwrap();
    assert_eq!(all, []);
}

#[test]
fn bodies_are_json_and_have_a_bound() {
    let served = chain();
    let octets = ["content-type: application/octet-stream"];
    let body = br#"{"pool":"pool","beneficiary":"member","amount":"1"}"#;
    assert_eq!(served.client().ask("POST", "/withdrawals", &octets, body).error(), (400, 1021));
    served.client().ask("POST", "/withdrawals", &[], body).scheduled();
    let charset = ["content-type: application/json; charset=utf-8"];
    served.client().ask("POST", "/withdrawals", &charset, body).scheduled();

    let long = format!("{{\"pool\":\"{}\"}}", "x".repeat(65 * 1024));
    for path in ["/withdrawals", "/rewards"] {
        assert_eq!(say(&served, path, &long).error(), (413, 1003));
    }
    let deep = "[".repeat(60_000);
    assert_eq!(say(&served, "/withdrawals", &deep).error(), (400, 1022));
}
