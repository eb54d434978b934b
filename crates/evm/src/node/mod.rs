//! A client of the JSON-RPC interface of a chain's node.

mod batch;
mod block;
mod client;
mod error;
mod fee_history;
mod methods;
mod quantity;
mod receipt;
mod refusal;
mod revert;
mod sync_progress;
mod transaction;

pub(crate) use alloy_eips::{BlockNumHash, BlockNumberOrTag as BlockTag};
pub(crate) use batch::AccountState;
pub(crate) use block::Block;
pub(crate) use client::NodeClient;
pub(crate) use error::NodeError;
pub(crate) use fee_history::{BlockTip, FeeHistory};
pub(crate) use receipt::TransactionReceipt;
pub(crate) use refusal::Refusal;
pub(crate) use revert::{call_failure, revert_reason};
pub(crate) use sync_progress::SyncProgress;
pub(crate) use transaction::TransactionDetails;

#[cfg(test)]
pub(crate) mod tests;
