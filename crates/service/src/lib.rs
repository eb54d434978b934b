#![doc = include_str!("../README.md")]

mod config;
mod private_file;
mod server;

pub use config::{
    ClaimsConfig, Config, ConfigError, EvmConfig, Form, Guidance, KeySource, LedgerConfig,
    LedgerKind, LogFilter, Origin, PollConfig, SETTINGS, Setting, settings_reference,
};
pub use server::{
    LedgerInspection, LedgerMismatchError, NodeIdentity, RunningServer, Server, ServerCounts,
    StartError,
};
