#![doc = include_str!("../README.md")]

mod access;
mod allow_list;
mod batches;
mod build_error;
mod builder;
mod connections;
mod dashboard;
mod events;
mod file_descriptors;
mod forwarding;
mod gas_admins;
mod group_commit;
mod guard;
mod health;
mod http;
mod in_process;
mod listener;
mod maintenance;
mod metrics;
mod openapi;
mod operators;
mod options;
mod parts;
mod pass_through;
mod rate_limits;
mod reads;
mod rewards;
mod router;
#[cfg(test)]
mod router_tests;
mod running;
mod scabbard;
mod server;
mod state;
mod tokens;
mod transactions;
mod webhooks;
mod withdrawals;

pub use access::{
    AccessControl, AccessMode, AccessModeError, AccessOptions, AccessToken, AccessTokenError,
    HealthAccess, HealthAccessError, KeyGrant, KeyGrantError, StoredTokens,
};
pub use allow_list::{SignerPattern, SignerPatternError};
pub use build_error::ApiBuildError;
pub use builder::{Api, ApiBuilder};
pub use file_descriptors::{
    ENOUGH_HTTP_CONNECTIONS, TooFewFileDescriptorsError, fitting_connections,
};
pub use forwarding::{
    ForwardedHeaders, ForwardedHeadersError, Network, NetworkError, TrustedProxies,
};
pub use gas_admins::{
    FailureReport, GasAdminReport, GasPause, GasReport, PoolReport, QueueReport, Reading,
};
pub use grid_batch_support::{Jobs, ShutdownHandle};
pub use group_commit::{CommitFailure, CommitProgress};
pub use guard::{HostName, HostNameError, WebOrigin, WebOriginError};
pub use health::{HealthPart, HealthReport, HealthStatus};
pub use in_process::{InProcessAnswer, InProcessApi};
pub use listener::{
    ApiListener, ListenAddress, ListenAddressError, TlsCertificate, TlsError, UnixSocket,
};
pub use maintenance::{
    BoundNodeReport, GasAdminMoves, InDoubtReport, LedgerBinding, LedgerIdentityReport,
    Maintenance, MaintenanceError, PoolMove, RetentionReport,
};
pub use metrics::{MetricSamples, MetricsFormat, MetricsText};
pub use openapi::openapi_json;
pub use options::ApiOptions;
pub use rate_limits::{Rate, RateError, RateLimits};
pub use reads::{LedgerReport, NodeReport, OpenCounts};
pub use running::RunningApi;
pub use state::AwaitedBatches;
pub use webhooks::new_webhook_secret;
