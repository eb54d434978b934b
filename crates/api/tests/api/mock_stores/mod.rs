//! Error paths, tested against mocks of the stores.

mod batches;
mod withdrawals;

use std::net::SocketAddr;

use grid_batch_api::{ApiBuilder, RunningApi};
use grid_batch_core::batches::{BatchState, Progress, StoredBatch};
use grid_batch_core::{BatchError, BatchResult, ItemId, Timestamp};

use crate::{
    client::{Client, Response},
    test_server::{serve, service, test_hosts},
};

/// A part of the cause of every store error. No response may have it.
const SECRET: &str = "db.internal";

/// A running interface over mocks.
struct MockServer {
    _api: RunningApi,
    address: SocketAddr,
}

impl MockServer {
    fn new(builder: ApiBuilder) -> Self {
        let (api, address) = serve(builder.with_allowed_hosts(test_hosts()));
        Self { _api: api, address }
    }

    fn get(&self, path: &str) -> Response {
        self.request("GET", path, b"")
    }

    fn post(&self, path: &str, body: &[u8]) -> Response {
        self.request("POST", path, body)
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Response {
        Client::connect(self.address).request(method, path, &[], body)
    }
}

fn unavailable<T>() -> BatchResult<T> {
    Err(BatchError::Unavailable(format!("cannot connect to {SECRET}")))
}

/// Checks the status and code of an error, and that it does not reveal the cause.
fn assert_error(response: &Response, expected: (u16, u64)) {
    assert_eq!(response.error(), expected, "{}", response.message());
    assert!(!response.message().contains(SECRET), "{}", response.message());
}

pub fn stored_batch(batch_id: ItemId, state: BatchState) -> StoredBatch {
    StoredBatch {
        progress: Progress { state, ..Progress::NEW },
        ..StoredBatch::new(service("global"), batch_id, Timestamp::from_micros(0))
    }
}
