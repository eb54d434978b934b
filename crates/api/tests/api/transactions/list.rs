use grid_batch_core::batches::BatchState;
use grid_batch_withdrawals::{
    WithdrawalFilter, WithdrawalId, WithdrawalPage, WithdrawalState, WithdrawalTexts,
    mocks::MockWithdrawalStore,
};
use serde_json::{Value, json};

use super::test_calls::{ACCOUNT, ID, PATH, details, server};
use crate::{
    mock_stores::{MockServer, assert_error, unavailable},
    test_server::service,
};

/// A server whose store expects this filter.
fn server_expecting(expected: WithdrawalFilter) -> MockServer {
    let mut store = MockWithdrawalStore::new();
    store
        .expect_withdrawals()
        .withf(move |filter, _, _| *filter == expected)
        .returning(|_, _, _| Ok(WithdrawalPage::default()));
    server(store)
}

fn assert_lists_nothing(server: &MockServer, path: &str) {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
    assert_eq!(response.json()["data"], json!([]));
}

#[test]
fn filters_select_transactions() {
    let all = || WithdrawalFilter { calls: true, ..WithdrawalFilter::default() };
    let open = WithdrawalState::ALL.into_iter().filter(|state| !state.has_ended()).collect();
    let ended = [WithdrawalState::Withdrawn, WithdrawalState::Failed].into();
    let executed = [WithdrawalState::Withdrawn, WithdrawalState::Held].into();
    for (query, expected) in [
        ("", all()),
        ("?account=payer", WithdrawalFilter { service_id: Some(service(ACCOUNT)), ..all() }),
        ("?to=0xCC", WithdrawalFilter { beneficiary: Some("0xcc".to_owned()), ..all() }),
        (
            "?idempotency_key=invoice+17",
            WithdrawalFilter { idempotency_key: Some("invoice 17".to_owned()), ..all() },
        ),
        (
            "?account_contains=0xAD&to_contains=c&idempotency_key_contains=17&label_contains=order",
            {
                let part = |text: &str| Some(text.to_owned());
                let contains = WithdrawalTexts {
                    service_id: part("0xAD"),
                    pool: None,
                    beneficiary: part("c"),
                    idempotency_key: part("17"),
                    label: part("order"),
                };
                WithdrawalFilter { contains, ..all() }
            },
        ),
        ("?state=open", WithdrawalFilter { states: open, ..all() }),
        ("?state=ended", WithdrawalFilter { states: ended, ..all() }),
        ("?state=executed,held", WithdrawalFilter { states: executed, ..all() }),
    ] {
        assert_lists_nothing(&server_expecting(expected), &format!("{PATH}{query}"));
    }
}

#[test]
fn list_of_withdrawals_has_no_transactions() {
    assert_lists_nothing(&server_expecting(WithdrawalFilter::default()), "/withdrawals");
}

#[test]
fn pages_list_the_newest_first() {
    let mut store = MockWithdrawalStore::new();
    store.expect_withdrawals().returning(|_, before, limit| {
        let last = before.map_or(4, |before| before.as_bytes()[0]);
        let ids = (1..last).rev().map(|byte| WithdrawalId::from_bytes([byte; 16])).take(limit);
        let withdrawals: Vec<_> = ids.map(|id| details(id, BatchState::Pending)).collect();
        let next = withdrawals.last().map(|last| last.withdrawal.id);
        let next = next.filter(|id| id.as_bytes()[0] > 1);
        Ok(WithdrawalPage { withdrawals, next })
    });
    let server = server(store);
    let ids = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|transaction| transaction["id"].as_str().unwrap()[..2].to_owned()).collect()
    };
    let first = server.get("/v1/transactions?limit=2&state=open").json();
    assert_eq!(
        (ids(&first), &first["paging"]["limit"]),
        (vec!["03".into(), "02".into()], &json!(2))
    );
    assert_eq!(first["link"], "http://grid.test/v1/transactions?limit=2&state=open");
    let next = first["paging"]["next"].as_str().unwrap().strip_prefix("http://grid.test").unwrap();
    let last = server.get(next).json();
    assert_eq!((ids(&last), &last["paging"]["next"]), (vec!["01".into()], &Value::Null));
    assert_eq!(last["data"][0]["state"], "pending");
    assert_eq!(last["data"][0]["link"], format!("http://grid.test/v1/transactions/{ID}"));
}

#[test]
fn invalid_parameters_are_refused_with_their_rule() {
    let mut store = MockWithdrawalStore::new();
    store.expect_withdrawals().never();
    let server = server(store);
    for (query, code, words) in [
        ("account=x", 1023, "invalid account: \"x\" is no account"),
        ("to=x", 1023, "invalid to: \"x\" is no address"),
        ("state=withdrawn", 1023, "mined, held, executed, failed, open and ended"),
        ("limit=0", 1023, "1 to 1000"),
        ("before=zz", 60, "32 digits"),
        ("pool=0xaa", 1007, "\"pool\""),
    ] {
        let response = server.get(&format!("{PATH}?{query}"));
        assert_error(&response, (400, code));
        assert!(response.message().contains(words), "{query}: {}", response.message());
    }
}

#[test]
fn failed_reads_are_reported() {
    let mut store = MockWithdrawalStore::new();
    store.expect_withdrawals().returning(|_, _, _| unavailable());
    store.expect_withdrawal().returning(|_| unavailable());
    let server = server(store);
    for path in [PATH, &format!("{PATH}/{ID}")] {
        assert_error(&server.get(path), (503, 1013));
    }
}
