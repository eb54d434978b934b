//! Error paths, tested against mocks of the stores.

mod batches;
mod withdrawals;

use std::{net::SocketAddr, sync::Arc};

use grid_batch_api::{ApiBuilder, RunningApi};
use grid_batch_core::batches::{BatchState, Progress, StoredBatch};
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};
use grid_batch_core::{BatchError, BatchResult, ItemId, Timestamp};
use grid_batch_withdrawals::{
    AheadCount, Withdrawal, WithdrawalDetails, WithdrawalEnd, WithdrawalRules,
    mocks::MockWithdrawalStore,
};

use crate::{
    client::{Client, Response},
    test_server::{serve, service, test_hosts},
};

/// A part of the cause of every store error. No response may have it.
const SECRET: &str = "db.internal";

/// A running interface over mocks.
pub struct MockServer {
    _api: RunningApi,
    address: SocketAddr,
}

impl MockServer {
    pub fn new(builder: ApiBuilder) -> Self {
        let (api, address) = serve(builder.with_allowed_hosts(test_hosts()));
        Self { _api: api, address }
    }

    pub fn get(&self, path: &str) -> Response {
        self.request("GET", path, b"")
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Response {
        self.request("POST", path, body)
    }

    /// Posts with an idempotency key.
    pub fn post_with_key(&self, path: &str, key: &str, body: &[u8]) -> Response {
        let header = format!("idempotency-key: {key}");
        Client::connect(self.address).request("POST", path, &[&header], body)
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Response {
        Client::connect(self.address).request(method, path, &[], body)
    }
}

/// An interface that accepts withdrawals.
pub fn builder_with_withdrawals(
    store: MockWithdrawalStore,
    rules: impl WithdrawalRules + 'static,
) -> ApiBuilder {
    let batches = Arc::new(MockBatchQueryStore::new());
    let builder = ApiBuilder::new(Arc::new(MockIntakeStore::new()), batches);
    builder.with_withdrawals(Arc::new(store), Arc::new(rules))
}

/// What is stored about a withdrawal whose batch is in this state.
pub fn details_of(withdrawal: Withdrawal, state: BatchState) -> WithdrawalDetails {
    WithdrawalDetails {
        batch: stored_batch(withdrawal.id.batch_id(1), state),
        withdrawal,
        created_at: Timestamp::from_micros(0),
        generation: 1,
        cancelled_at: None,
        ahead: Some(AheadCount::exactly(0)),
        nonce: None,
        fail_reason: None,
        end: match state {
            BatchState::Committed => Some(WithdrawalEnd::Withdrawn),
            BatchState::Invalid => Some(WithdrawalEnd::Failed),
            _ => None,
        },
    }
}

pub fn unavailable<T>() -> BatchResult<T> {
    Err(BatchError::Unavailable(format!("cannot connect to {SECRET}")))
}

/// Checks the status and code of an error, and that it does not reveal the cause.
pub fn assert_error(response: &Response, expected: (u16, u64)) {
    assert_eq!(response.error(), expected, "{}", response.message());
    assert!(!response.message().contains(SECRET), "{}", response.message());
}

pub fn stored_batch(batch_id: ItemId, state: BatchState) -> StoredBatch {
    StoredBatch {
        progress: Progress { state, ..Progress::NEW },
        ..StoredBatch::new(service("global"), batch_id, Timestamp::from_micros(0))
    }
}
