//! The JSON-RPC interface of a chain's node, as far as it is needed.

mod block;
mod call;
mod error;
mod fees;
mod quantity;
mod questions;
mod receipt;
mod transaction;

use std::sync::atomic::AtomicU64;

use grid_batch_http::HttpClient;

pub(crate) use block::{BlockId, BlockTag};
pub(crate) use error::NodeError;
pub(crate) use fees::FeeHistory;
pub(crate) use receipt::{Log, Receipt};
pub(crate) use transaction::Transaction;

/// A node at an address. A question to it is one POST.
#[derive(Debug)]
pub(crate) struct Node {
    http: HttpClient,
    url: String,
    last_id: AtomicU64,
}

impl Node {
    pub(crate) fn new(http: HttpClient, url: impl Into<String>) -> Self {
        Self { http, url: url.into(), last_id: AtomicU64::new(0) }
    }
}

#[cfg(test)]
pub(crate) mod tests;
