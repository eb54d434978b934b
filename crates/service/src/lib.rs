#![doc = include_str!("../README.md")]

mod config;
mod server;

pub use config::{
    ClaimsConfig, Config, ConfigError, EvmConfig, Form, KeySource, LedgerConfig, LedgerKind,
    Origin, PollConfig, RetentionConfig, SETTINGS, Setting,
};
pub use server::{
    LedgerInspection, LedgerMismatchError, NodeIdentity, RunningServer, Server, ServerCounts,
    StartError,
};
