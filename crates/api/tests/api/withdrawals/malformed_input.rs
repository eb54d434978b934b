use std::sync::LazyLock;

use proptest::{collection::vec, prelude::*};

use super::test_pools::{JSON, server_with_pools};
use crate::test_server::TestServer;

/// One server for all cases. It must still answer after any input.
static SERVER: LazyLock<TestServer> = LazyLock::new(server_with_pools);

const PATHS: [&str; 5] = [
    "/withdrawals",
    "/rewards",
    "/rewards/00000000000000000000000000000000/claim",
    "/withdrawals/00000000000000000000000000000000/retry",
    "/withdrawals/00000000000000000000000000000000/cancel",
];

const FIELD_NAMES: &[&str] =
    &["pool", "beneficiary", "amount", "idempotency_key", "once_per_member", "x"];

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,40}",
        "\"(pool|member|[0-9]|é|\\\\u0000|\\\\ud800|\\\\n){0,4}\"",
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("[{}]".to_owned()),
        Just("1e999".to_owned()),
    ]
}

fn any_object() -> impl Strategy<Value = String> {
    let field = (prop::sample::select(FIELD_NAMES), any_value());
    vec(field, 0..5).prop_map(|fields| {
        let fields = fields.iter().map(|(name, value)| format!("{name:?}:{value}"));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn arbitrary_body_is_refused(bytes in vec(any::<u8>(), 1..200)) {
        for path in PATHS {
            let (status, code) = SERVER.client().request("POST", path, &[JSON], &bytes).error();
            prop_assert_eq!((status, code), (400, 1022));
        }
    }

    #[test]
    fn arbitrary_object_is_handled(object in any_object()) {
        for path in PATHS {
            let response = SERVER.client().request("POST", path, &[JSON], object.as_bytes());
            prop_assert!([201, 400, 404, 409].contains(&response.status), "{} {}", path, response.status);
        }
    }

    #[test]
    fn arbitrary_query_is_handled(query in "[a-z%=&+,0-9~é/?]{0,30}") {
        for names in ["", "pool=pool&", "state=open&limit=", "before="] {
            let status = SERVER.get(&format!("/withdrawals?{names}{query}")).status;
            prop_assert!([200, 400].contains(&status), "{}", status);
        }
    }

    #[test]
    fn arbitrary_id_is_handled(id in "[a-f0-9%.~é-]{1,40}") {
        for path in [format!("/withdrawals/{id}"), format!("/rewards/{id}")] {
            let status = SERVER.get(&path).status;
            prop_assert!([400, 404].contains(&status), "{}", status);
        }
    }

    #[test]
    fn arbitrary_idempotency_key_is_handled(key in vec(any::<u8>(), 0..300)) {
        let mut key: Vec<u8> = key;
        key.retain(|byte| !b"\r\n".contains(byte));
        let body = br#"{"pool":"pool","beneficiary":"member","amount":"1"}"#;
        let mut client = SERVER.client();
        let length = body.len();
        client.send(format!(
            "POST /withdrawals HTTP/1.1\r\nhost: h\r\n{JSON}\r\ncontent-length: {length}\r\nidempotency-key: "
        ));
        client.send(&key);
        client.send("\r\n\r\n");
        client.send(body);
        let status = client.try_receive().map(|response| response.status);
        prop_assert!(status.is_none_or(|status| [201, 400].contains(&status)), "{:?}", status);
        prop_assert_eq!(SERVER.get("/health").status, 200);
    }
}
