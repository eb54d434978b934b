use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::batches::{
    AddOutcome, BatchConflict, BatchState, NewBatch, TransactionConflict,
};
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};
use grid_batch_protocol::TransactFormat;

use super::{MockServer, assert_error, stored_batch, unavailable};
use crate::test_server::{batch, body, id};

fn server(intake_store: MockIntakeStore, query_store: MockBatchQueryStore) -> MockServer {
    let builder = ApiBuilder::new(Arc::new(intake_store), Arc::new(query_store));
    MockServer::new(builder.with_format(Arc::new(TransactFormat::default())))
}

fn status_path() -> String {
    format!("/batch_statuses?id={}", id(&batch(1)))
}

#[test]
fn unavailable_store_fails_the_request_only() {
    let mut store = MockIntakeStore::new();
    store.expect_add().times(1).returning(|_| unavailable());
    store.expect_add().returning(|_| Ok(vec![Ok(vec![AddOutcome::Stored])]));
    let server = server(store, MockBatchQueryStore::new());
    assert_error(&server.post("/batches", &body([batch(1)])), (503, 1012));
    server.post("/batches", &body([batch(1)])).link();
}

#[test]
fn conflict_of_the_store_is_reported_with_the_batch() {
    let mut store = MockIntakeStore::new();
    store.expect_add().returning(|lists| {
        let conflict = |list: &&[NewBatch]| {
            let (service_id, batch_id) = (list[0].service_id.clone(), list[0].batch_id);
            Err(BatchConflict::OtherBytes { service_id, batch_id })
        };
        Ok(lists.iter().map(conflict).collect())
    });
    let server = server(store, MockBatchQueryStore::new());
    let response = server.post("/batches", &body([batch(1)]));
    assert_error(&response, (409, 1011));
    assert!(response.message().contains(&id(&batch(1)).to_string()), "{}", response.message());
}

#[test]
fn locked_service_is_unavailable() {
    let mut store = MockIntakeStore::new();
    store.expect_add().returning(|lists| {
        let locked = |list: &&[NewBatch]| {
            Err(BatchConflict::ServiceLocked { service_id: list[0].service_id.clone() })
        };
        Ok(lists.iter().map(locked).collect())
    });
    let server = server(store, MockBatchQueryStore::new());
    let response = server.post("/batches", &body([batch(1)]));
    assert_error(&response, (503, 1012));
    assert!(response.message().contains("locked"), "{}", response.message());
}

#[test]
fn transaction_conflict_names_the_other_batch() {
    let mut store = MockIntakeStore::new();
    store.expect_add().returning(|lists| {
        let conflict = |list: &&[NewBatch]| {
            let conflict = TransactionConflict {
                service_id: list[0].service_id.clone(),
                batch_id: list[0].batch_id,
                transaction_id: list[0].transaction_ids[0],
                other_batch_id: id(&batch(2)),
            };
            Err(BatchConflict::from(Box::new(conflict)))
        };
        Ok(lists.iter().map(conflict).collect())
    });
    let server = server(store, MockBatchQueryStore::new());
    let response = server.post("/batches", &body([batch(1)]));
    assert_error(&response, (409, 1014));
    for named in [&batch(1).transactions[0].header_signature, &id(&batch(2)).to_string()] {
        assert!(response.message().contains(named), "{}", response.message());
    }
}

#[test]
fn transaction_that_was_applied_before_is_refused() {
    let mut store = MockIntakeStore::new();
    store.expect_add().returning(|lists| {
        let applied = |list: &&[NewBatch]| {
            Err(BatchConflict::AppliedBefore {
                service_id: list[0].service_id.clone(),
                batch_id: list[0].batch_id,
                transaction_id: Box::new(list[0].transaction_ids[0]),
            })
        };
        Ok(lists.iter().map(applied).collect())
    });
    let server = server(store, MockBatchQueryStore::new());
    let response = server.post("/batches", &body([batch(1)]));
    assert_error(&response, (409, 1032));
    let named = &batch(1).transactions[0].header_signature;
    assert!(response.message().contains(named), "{}", response.message());
}

#[test]
fn request_can_declare_its_batches_new() {
    for (path, is_new) in [
        ("/batches", false),
        ("/batches?new=true", true),
        ("/batches?new=true&label=a", true),
        ("/batches?new=false", false),
    ] {
        let mut store = MockIntakeStore::new();
        store.expect_add().returning(move |lists| {
            assert!(lists.iter().all(|list| list[0].declared_new == is_new));
            Ok(lists.iter().map(|_| Ok(vec![AddOutcome::Stored])).collect())
        });
        let server = server(store, MockBatchQueryStore::new());
        assert_eq!(server.post(path, &body([batch(1)])).status, 202, "{path}");
    }
}

#[test]
fn invalid_list_does_not_reach_the_store() {
    let mut store = MockIntakeStore::new();
    store.expect_add().never();
    let server = server(store, MockBatchQueryStore::new());
    assert_error(&server.post("/batches", &body([batch(1), batch(1)])), (400, 30));
}

#[test]
fn failed_find_is_reported() {
    let mut store = MockBatchQueryStore::new();
    store.expect_find().times(1).returning(|_| unavailable());
    store.expect_find().returning(|_| Ok(vec![]));
    let server = server(MockIntakeStore::new(), store);
    assert_error(&server.get(&status_path()), (503, 1013));
    assert_eq!(server.get(&status_path()).statuses(), ["UNKNOWN"]);
}

#[test]
fn failed_details_of_an_invalid_batch_are_reported() {
    let mut store = MockBatchQueryStore::new();
    store.expect_find().returning(|id| Ok(vec![stored_batch(*id, BatchState::Invalid)]));
    store.expect_details().times(1).returning(|_, _| unavailable());
    // The batch may have been removed since it was found.
    store.expect_details().returning(|_, _| Ok(None));
    let server = server(MockIntakeStore::new(), store);
    assert_error(&server.get(&status_path()), (503, 1013));
    assert_eq!(server.get(&status_path()).statuses(), ["INVALID"]);
}

/// What is ahead is read once for a service, and not at all for batches that cannot be behind another.
#[test]
fn what_is_ahead_is_read_only_where_needed() {
    let mut store = MockBatchQueryStore::new();
    let states = [BatchState::New, BatchState::New, BatchState::Committed, BatchState::Pending];
    let state_of = move |id: &_| (1..).zip(states).find(|(n, _)| self::id(&batch(*n)) == *id);
    store.expect_find().returning(move |id| Ok(vec![stored_batch(*id, state_of(id).unwrap().1)]));
    store
        .expect_ahead()
        .times(1)
        .withf(|_, created_at| created_at.len() == 2)
        .returning(|_, created_at| Ok(vec![None; created_at.len()]));
    let server = server(MockIntakeStore::new(), store);
    let ids = [1, 2, 3, 4].map(|number| id(&batch(number)).to_string()).join(",");
    let response = server.get(&format!("/batch_statuses?id={ids}"));
    assert_eq!(response.statuses(), ["PENDING", "PENDING", "COMMITTED", "PENDING"]);
}

#[test]
fn failed_look_ahead_is_reported() {
    let mut store = MockBatchQueryStore::new();
    store.expect_find().returning(|id| Ok(vec![stored_batch(*id, BatchState::New)]));
    store.expect_ahead().times(1).returning(|_, _| unavailable());
    let server = server(MockIntakeStore::new(), store);
    assert_error(&server.get(&status_path()), (503, 1013));
}

#[test]
fn failed_read_ends_a_wait() {
    let mut store = MockBatchQueryStore::new();
    let pending = |id: &_| Ok(vec![stored_batch(*id, BatchState::Pending)]);
    store.expect_find().times(1).returning(pending);
    store.expect_find().times(1).returning(|_| unavailable());
    let server = server(MockIntakeStore::new(), store);
    assert_error(&server.get(&format!("{}&wait=20", status_path())), (503, 1013));
}

#[test]
fn panicking_store_fails_the_request_only() {
    let mut store = MockBatchQueryStore::new();
    store.expect_find().times(1).returning(|_| panic!("test panic"));
    store.expect_find().returning(|_| Ok(vec![]));
    let server = server(MockIntakeStore::new(), store);
    assert_error(&server.get(&status_path()), (500, 1000));
    assert_eq!(server.get(&status_path()).statuses(), ["UNKNOWN"]);
}
