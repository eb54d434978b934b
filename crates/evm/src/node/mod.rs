//! A client of the JSON-RPC interface of a chain's node.

mod block;
mod error;
mod fee_history;
mod methods;
mod quantity;
mod receipt;
mod refusal;
mod revert;
mod rpc;
mod transaction;

use std::sync::atomic::AtomicU64;

use grid_batch_http::HttpClient;

pub(crate) use block::{BlockId, BlockTag};
pub(crate) use error::NodeError;
pub(crate) use fee_history::FeeHistory;
pub(crate) use receipt::{EventLog, Receipt};
pub(crate) use refusal::Refusal;
pub(crate) use revert::revert_reason;

/// A client of one node. Each request is one POST.
#[derive(Debug)]
pub(crate) struct NodeClient {
    http: HttpClient,
    url: String,
    last_id: AtomicU64,
}

impl NodeClient {
    pub(crate) fn new(http: HttpClient, url: impl Into<String>) -> Self {
        Self { http, url: url.into(), last_id: AtomicU64::new(0) }
    }
}

#[cfg(test)]
pub(crate) mod tests;
