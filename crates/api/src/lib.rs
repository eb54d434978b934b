#![doc = include_str!("../README.md")]

mod batches;
mod build_error;
mod builder;
mod connections;
mod health;
mod http;
mod options;
mod parts;
mod rewards;
mod router;
mod running;
mod server;
mod state;
mod withdrawals;

pub use batches::CommitProgress;
pub use build_error::ApiBuildError;
pub use builder::{Api, ApiBuilder};
pub use health::{HealthPart, HealthReport, HealthStatus};
pub use options::ApiOptions;
pub use running::RunningApi;
