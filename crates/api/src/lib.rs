#![doc = include_str!("../README.md")]

mod app;
mod batch_status;
mod batches;
mod body;
mod builder;
mod error;
mod health;
mod intake;
mod link;
mod offload;
mod options;
mod query;
mod room;
mod router;
mod running;
mod server;
mod statuses;
mod wait;
mod writer;

pub use builder::{Api, ApiBuildError, ApiBuilder};
pub use options::ApiOptions;
pub use running::RunningApi;
