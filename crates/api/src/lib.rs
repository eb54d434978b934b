#![doc = include_str!("../README.md")]

mod app;
mod batch_status;
mod batches;
mod body;
mod builder;
mod error;
mod health;
mod idempotency;
mod ids;
mod intake;
mod link;
mod members;
mod offload;
mod options;
mod path_id;
mod pools;
mod query;
mod rewards;
mod room;
mod router;
mod running;
mod server;
mod statuses;
mod stored;
mod time;
mod wait;
mod withdrawals;
mod writer;

pub use builder::{Api, ApiBuildError, ApiBuilder};
pub use options::ApiOptions;
pub use running::RunningApi;
