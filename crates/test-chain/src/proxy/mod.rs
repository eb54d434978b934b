//! The proxy that injects faults.

mod behavior;
mod fault_proxy;
mod mempool;
mod request_handler;
mod response;
mod server;
mod transaction;
mod underpriced_pool;

pub use fault_proxy::FaultProxy;
pub use transaction::SentTransaction;
