use super::test_pools::{server_with_pools, withdrawal_request};
use crate::test_server::{TestServer, batch, body, id};

#[test]
fn server_with_pools_refuses_batches() {
    let server = server_with_pools();
    let response = server.post("/batches", &body([batch(1)]));
    assert_eq!(response.error(), (404, 1020));
    assert!(response.message().contains("POST /withdrawals"), "{}", response.message());
    assert!(!server.is_stored(&id(&batch(1))));
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn server_without_pools_refuses_withdrawals() {
    let server = TestServer::new();
    let some = "0".repeat(32);
    for path in ["/withdrawals".to_owned(), "/rewards".to_owned(), format!("/withdrawals/{some}")] {
        let response = server.get(&path);
        assert_eq!(response.error(), (404, 1020), "{path}");
        assert!(response.message().contains("no pools"), "{}", response.message());
    }
    for path in ["/withdrawals", "/rewards", &format!("/rewards/{some}/claim")] {
        let response = server.post_json(path, &[], &withdrawal_request("pool1", "5"));
        assert_eq!(response.error(), (404, 1020), "{path}");
    }
    server.post("/batches", &body([batch(1)])).link();
}

#[test]
fn unknown_paths_and_methods_are_refused_with_a_code() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    for path in ["/withdrawals/", "/withdrawals/a/b/c", &format!("/withdrawals/{id}/undo")] {
        assert_eq!(server.get(path).error(), (404, 1001), "{path}");
    }
    assert_eq!(server.get("/withdrawals/%ff").error(), (404, 1001));
    for (method, path) in [
        ("DELETE", format!("/withdrawals/{id}")),
        ("GET", format!("/withdrawals/{id}/retry")),
        ("PUT", "/withdrawals".to_owned()),
        ("GET", "/rewards".to_owned()),
    ] {
        let response = server.client().request(method, &path, &[], b"body");
        assert_eq!(response.error(), (405, 1002), "{method} {path}");
    }
}

#[test]
fn unknown_withdrawal_is_not_found() {
    let server = server_with_pools();
    assert_eq!(server.get(&format!("/withdrawals/{}", "0".repeat(32))).error(), (404, 1025));
    for path in ["/withdrawals/zz", &format!("/withdrawals/{}", "A".repeat(32))] {
        assert_eq!(server.get(path).error(), (400, 60), "{path}");
    }
}
