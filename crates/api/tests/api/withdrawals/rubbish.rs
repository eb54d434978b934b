use std::sync::LazyLock;

use proptest::{collection::vec, prelude::*};

use super::chain::{JSON, chain};
use crate::fixture::Served;

/// One server for all the cases: whatever was sent to it, it must still answer.
static SERVED: LazyLock<Served> = LazyLock::new(chain);

const PATHS: [&str; 5] = [
    "/withdrawals",
    "/rewards",
    "/rewards/00000000000000000000000000000000/claim",
    "/withdrawals/00000000000000000000000000000000/retry",
    "/withdrawals/00000000000000000000000000000000/cancel",
];

const NAMES: &[&str] =
    &["pool", "beneficiary", "amount", "idempotency_key", "once_per_member", "x"];

fn some_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,40}",
        "\"(pool|member|[0-9]|é|\\\\u0000|\\\\ud800|\\\\n){0,4}\"",
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("[{}]".to_owned()),
        Just("1e999".to_owned()),
    ]
}

fn some_object() -> impl Strategy<Value = String> {
    let member = (prop::sample::select(NAMES), some_value());
    vec(member, 0..5).prop_map(|members| {
        let members = members.iter().map(|(name, value)| format!("{name:?}:{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_body_of_any_bytes_is_refused(bytes in vec(any::<u8>(), 1..200)) {
        for path in PATHS {
            let (status, code) = SERVED.client().ask("POST", path, &[JSON], &bytes).error();
            prop_assert_eq!((status, code), (400, 1022));
        }
    }

    #[test]
    fn an_object_of_any_members_is_taken_or_refused(object in some_object()) {
        for path in PATHS {
            let answer = SERVED.client().ask("POST", path, &[JSON], object.as_bytes());
            prop_assert!([201, 400, 404, 409].contains(&answer.status), "{} {}", path, answer.status);
        }
    }

    #[test]
    fn a_query_of_any_text_is_answered(query in "[a-z%=&+,0-9~é/?]{0,30}") {
        for names in ["", "pool=pool&", "state=open&limit=", "before="] {
            let status = SERVED.get(&format!("/withdrawals?{names}{query}")).status;
            prop_assert!([200, 400].contains(&status), "{}", status);
        }
    }

    #[test]
    fn an_id_of_any_text_is_answered(id in "[a-f0-9%.~é-]{1,40}") {
        for path in [format!("/withdrawals/{id}"), format!("/rewards/{id}")] {
            let status = SERVED.get(&path).status;
            prop_assert!([400, 404].contains(&status), "{}", status);
        }
    }

    #[test]
    fn a_key_of_any_bytes_is_taken_or_refused(key in vec(any::<u8>(), 0..300)) {
        let mut key: Vec<u8> = key;
        key.retain(|byte| !b"\r\n".contains(byte));
        let body = br#"{"pool":"pool","beneficiary":"member","amount":"1"}"#;
        let mut client = SERVED.client();
        let length = body.len();
        client.say(format!("POST /withdrawals HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\nidempotency-key: "));
        client.say(&key);
        client.say("\r\n\r\n");
        client.say(body);
        let status = client.try_hear().map(|answer| answer.status);
        prop_assert!(status.is_none_or(|status| [201, 400].contains(&status)), "{:?}", status);
        prop_assert_eq!(SERVED.get("/health").status, 200);
    }
}
