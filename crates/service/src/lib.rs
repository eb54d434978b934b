#![doc = include_str!("../README.md")]

mod config;
mod server;

pub use config::{
    AccessConfig, ClaimsConfig, Config, EventsConfig, FactsFn, GeneralConfig, HttpConfig,
    IntakeConfig, LedgerConfig, LedgerType, OpenLedgerFn, PollConfig, RequestsConfig,
    RetentionConfig, SETTINGS, ServicesConfig, StoreConfig, SubmitConfig, TestingConfig,
    settings_reference,
};
pub use grid_batch_api::{AccessToken, ENOUGH_HTTP_CONNECTIONS, ListenAddress, new_webhook_secret};
pub use grid_batch_ledger_check::{LedgerMismatchError, NodeIdentity};
pub use grid_batch_monitoring::ServerCounts;
pub use grid_batch_nodes::StatusUrlResolver;
pub use grid_batch_settings::{
    ConfigError, Form, LogFilter, LogFormat, OfServices, OldName, Origin, ReadableSecret,
    RequestOptions, RequestsTo, Setting, SettingName, SettingTable, SettingValue, SettingValues,
    settings,
};
pub use grid_batch_support::ServicePattern;
pub use server::{
    AccessInForce, DatabaseInterface, LedgerContext, NodeService, RunningServer, Server,
    StartError, ask_for_services, ask_nodes, fitting_http_connections, gas_admin_addresses,
};
pub(crate) use server::{BUILT_IN_LEDGERS, BuiltIn};
