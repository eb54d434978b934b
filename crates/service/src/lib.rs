#![doc = include_str!("../README.md")]

mod config;
mod private_file;
mod server;

pub use config::{
    AccessConfig, ClaimsConfig, Config, ConfigError, EvmConfig, FactSettings, Form, Guidance,
    IntakeConfig, KeySource, LedgerConfig, LedgerType, ListenAddress, ListenConfig, LogFilter,
    LogFormat, OpenLedgerFn, Origin, PasswordSource, PollConfig, ReadableSecret, RetentionConfig,
    SETTINGS, Setting, TlsFiles, settings_reference,
};
pub use grid_batch_api::{AccessToken, ServicePattern, new_webhook_secret};
pub use server::{
    AccessInForce, LedgerContext, LedgerInspection, LedgerMismatchError, RunningServer, Server,
    ServerCounts, StartError, ToldIdentity, ToldService, fitting_http_connections,
    gas_admin_addresses,
};
#[cfg(feature = "evm")]
pub use server::{PoolMove, WithdrawalMoves};
