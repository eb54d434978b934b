#![doc = include_str!("../README.md")]

mod config;
mod private_file;
mod server;

pub use config::{
    AccessConfig, ClaimsConfig, Config, FactsFn, IntakeConfig, LedgerConfig, LedgerType,
    ListenAddress, ListenConfig, LogFilter, LogFormat, OfServices, OpenLedgerFn, PollConfig,
    ReadableSecret, RetentionConfig, SETTINGS, TlsFiles, settings_reference,
};
pub use grid_batch_api::{AccessToken, new_webhook_secret};
pub use grid_batch_ledger_check::LedgerMismatchError;
pub use grid_batch_monitoring::ServerCounts;
pub use grid_batch_nodes::StatusUrlResolver;
pub use grid_batch_settings::{
    ConfigError, Form, OldName, Origin, Setting, SettingName, SettingTable, SettingValue,
    SettingValues,
};
pub use grid_batch_support::ServicePattern;
pub use server::{
    AccessInForce, DatabaseInterface, ENOUGH_HTTP_CONNECTIONS, LedgerContext, LedgerInspection,
    RunningServer, Server, StartError, ToldIdentity, ToldService, fitting_http_connections,
    gas_admin_addresses,
};
pub(crate) use server::{BUILT_IN_LEDGERS, BuiltIn};
#[cfg(feature = "evm")]
pub use server::{PoolMove, WithdrawalMoves};
