#![doc = include_str!("../README.md")]

mod config;
mod private_file;
mod server;

pub use config::{
    AccessConfig, ClaimsConfig, Config, ConfigError, EvmConfig, FactSettings, Form, Guidance,
    IntakeConfig, KeySource, LedgerConfig, LedgerType, ListenAddress, ListenConfig, LogFilter,
    LogFormat, Origin, PasswordSource, PollConfig, ReadableSecret, RetentionConfig, SETTINGS,
    Setting, TlsFiles, settings_reference,
};
pub use grid_batch_api::{AccessToken, ServicePattern, new_webhook_secret};
pub use server::{
    AccessInForce, LedgerInspection, LedgerMismatchError, NodeIdentity, RunningServer, Server,
    ServerCounts, ServiceAtNode, StartError, fitting_http_connections, gas_admin_addresses,
};
#[cfg(feature = "evm")]
pub use server::{PoolMove, WithdrawalMoves};
