use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::batches::BatchState;
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};
use grid_batch_core::{BatchError, ItemId};

use crate::{
    client::Client,
    mock_stores::stored_batch,
    test_server::{batch, id, serve, test_hosts},
};

fn unavailable<T>() -> Result<T, BatchError> {
    Err(BatchError::Unavailable("cannot connect to db.internal".to_owned()))
}

/// The error of a request to an interface over this store.
fn error_of(batches: MockBatchQueryStore, path: &str) -> (u16, u64) {
    let builder = ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(batches))
        .with_reads()
        .with_allowed_hosts(test_hosts());
    let (_api, address) = serve(builder);
    let response = Client::connect(address).request("GET", path, &[], b"");
    assert!(!response.message().contains("db.internal"), "{}", response.message());
    response.error()
}

#[test]
fn failed_reads_are_reported() {
    let path = format!("/v1/batches/{}", id(&batch(1)));
    let mut batches = MockBatchQueryStore::new();
    batches.expect_batch_page().returning(|_, _, _, _| unavailable());
    assert_eq!(error_of(batches, "/v1/batches"), (503, 1013));

    let mut batches = MockBatchQueryStore::new();
    batches.expect_find().returning(|_| unavailable());
    assert_eq!(error_of(batches, &path), (503, 1013));

    let found = || {
        let mut batches = MockBatchQueryStore::new();
        batches.expect_find().returning(|id| Ok(vec![stored_batch(*id, BatchState::New)]));
        batches
    };
    let mut batches = found();
    batches.expect_details().returning(|_, _| unavailable());
    assert_eq!(error_of(batches, &path), (503, 1013));
    let mut batches = found();
    batches.expect_serialized_batch().returning(|_, _| unavailable());
    let path = format!("{path}/bytes");
    assert_eq!(error_of(batches, &path), (503, 1013));
}

/// Retention may remove a batch between two reads.
#[test]
fn batch_that_is_removed_meanwhile_is_unknown() {
    let path = format!("/v1/batches/{}", id(&batch(1)));
    let mut batches = MockBatchQueryStore::new();
    batches.expect_find().returning(|id| Ok(vec![stored_batch(*id, BatchState::Committed)]));
    batches.expect_details().returning(|_, _| Ok(None));
    assert_eq!(error_of(batches, &path), (404, 1060));
}

#[test]
fn waiting_request_reads_the_batch_again() {
    let path = format!("/v1/batches/{}?wait=20", id(&batch(1)));
    let mut batches = MockBatchQueryStore::new();
    let in_state = |state| move |id: &_| Ok(vec![stored_batch(*id, state)]);
    batches.expect_find().times(1).returning(in_state(BatchState::Pending));
    batches.expect_find().times(1).returning(in_state(BatchState::Committed));
    batches.expect_details().times(1).returning(|_, _| Ok(None));
    assert_eq!(error_of(batches, &path), (404, 1060));
}

#[test]
fn failed_reads_of_services_are_reported() {
    let error = |path: &str| {
        let mut services = MockBatchQueryStore::new();
        services.expect_services().returning(|_, _, _| unavailable());
        services.expect_service().returning(|_| unavailable());
        services.expect_instances().returning(unavailable);
        error_of(services, path)
    };
    for path in ["/v1/services", "/v1/services/a::b", "/v1/claims"] {
        assert_eq!(error(path), (503, 1013), "{path}");
    }
}

#[test]
fn characters_of_several_batches_are_refused() {
    let alike = |last: u8| {
        let mut bytes = [0x5a; ItemId::BYTES];
        bytes[ItemId::BYTES - 1] = last;
        stored_batch(ItemId::from_bytes(bytes), BatchState::New)
    };
    let mut batches = MockBatchQueryStore::new();
    batches.expect_find_by_prefix().returning(move |_, _, _| Ok(vec![alike(1), alike(2)]));
    let path = "/v1/batches/5a5a5a5a";
    assert_eq!(error_of(batches, path), (400, 1063));
}
