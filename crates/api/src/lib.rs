#![doc = include_str!("../README.md")]

mod allow_list;
mod batches;
mod build_error;
mod builder;
mod connections;
mod gas_admins;
mod group_commit;
mod guard;
mod health;
mod http;
mod metrics;
mod openapi;
mod options;
mod parts;
mod rewards;
mod router;
mod running;
mod server;
mod state;
mod withdrawals;

pub use allow_list::{ServicePattern, ServicePatternError, SignerPattern, SignerPatternError};
pub use build_error::ApiBuildError;
pub use builder::{Api, ApiBuilder};
pub use gas_admins::{
    FailureReport, GasAdminReport, GasPause, GasReport, PoolReport, QueueReport, Reading,
};
pub use group_commit::CommitProgress;
pub use guard::{HostName, HostNameError, WebOrigin, WebOriginError};
pub use health::{HealthPart, HealthReport, HealthStatus};
pub use metrics::{MetricSamples, MetricsFormat, MetricsText};
pub use openapi::openapi_json;
pub use options::ApiOptions;
pub use running::RunningApi;
