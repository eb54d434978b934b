use super::chain::{asking, chain};
use crate::fixture::{Served, batch, body, id};

#[test]
fn a_chain_takes_withdrawals_and_no_batches() {
    let served = chain();
    let answer = served.post("/batches", &body([batch(1)]));
    assert_eq!(answer.error(), (404, 1020));
    assert!(answer.message().contains("withdrawals are"), "{}", answer.message());
    assert!(!served.is_stored(&id(&batch(1))));
    assert_eq!(served.get("/health").status, 200);
}

#[test]
fn without_pools_there_are_no_withdrawals() {
    let served = Served::new();
    let some = "0".repeat(32);
    for path in ["/withdrawals".to_owned(), "/rewards".to_owned(), format!("/withdrawals/{some}")] {
        let answer = served.get(&path);
        assert_eq!(answer.error(), (404, 1020), "{path}");
        assert!(answer.message().contains("no pools"), "{}", answer.message());
    }
    for path in ["/withdrawals", "/rewards", &format!("/rewards/{some}/claim")] {
        let answer = served.post_json(path, &[], &asking("pool1", "5"));
        assert_eq!(answer.error(), (404, 1020), "{path}");
    }
    served.post("/batches", &body([batch(1)])).link();
}

#[test]
fn other_addresses_and_methods_are_refused_in_the_same_shape() {
    let served = chain();
    let id = served.withdraw("5");
    for path in ["/withdrawals/", "/withdrawals/a/b/c", &format!("/withdrawals/{id}/undo")] {
        assert_eq!(served.get(path).error(), (404, 1001), "{path}");
    }
    assert_eq!(served.get("/withdrawals/%ff").error(), (404, 1001));
    for (method, path) in [
        ("DELETE", format!("/withdrawals/{id}")),
        ("GET", format!("/withdrawals/{id}/retry")),
        ("PUT", "/withdrawals".to_owned()),
        ("GET", "/rewards".to_owned()),
    ] {
        let answer = served.client().ask(method, &path, &[], b"body");
        assert_eq!(answer.error(), (405, 1002), "{method} {path}");
    }
}

#[test]
fn a_withdrawal_that_is_not_there_is_not_found() {
    let served = chain();
    assert_eq!(served.get(&format!("/withdrawals/{}", "0".repeat(32))).error(), (404, 1025));
    for path in ["/withdrawals/zz", &format!("/withdrawals/{}", "A".repeat(32))] {
        assert_eq!(served.get(path).error(), (400, 60), "{path}");
    }
}
