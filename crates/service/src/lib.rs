#![doc = include_str!("../README.md")]

mod config;
mod private_file;
mod server;

pub use config::{
    ClaimsConfig, Config, ConfigError, EvmConfig, Form, Guidance, IntakeConfig, KeySource,
    LedgerConfig, LedgerKind, LogFilter, LogFormat, Origin, PasswordSource, PollConfig,
    RetentionConfig, SETTINGS, Setting, settings_reference,
};
pub use server::{
    LedgerInspection, LedgerMismatchError, NodeIdentity, RunningServer, Server, ServerCounts,
    StartError, gas_admin_addresses,
};
#[cfg(feature = "evm")]
pub use server::{PoolMove, WithdrawalMoves};
