#![doc = include_str!("../README.md")]

mod config;
mod server;

pub use config::{
    ClaimsConfig, Config, ConfigError, EvmConfig, Form, KeySource, LedgerConfig, LedgerKind,
    LogFormat, Origin, PollConfig, SETTINGS, Setting,
};
pub use server::{
    LedgerInspection, LedgerMismatchError, NodeIdentity, RunningServer, Server, ServerCounts,
    StartError,
};
