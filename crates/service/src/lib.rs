#![doc = include_str!("../README.md")]

mod config;
mod server;

pub use config::{
    ClaimsConfig, Config, ConfigError, EvmConfig, Form, IntakeConfig, KeySource, LedgerConfig,
    LedgerKind, LogFormat, Origin, PollConfig, RetentionConfig, SETTINGS, Setting,
};
pub use server::{
    LedgerInspection, LedgerMismatchError, NodeIdentity, RunningServer, Server, ServerCounts,
    StartError,
};
