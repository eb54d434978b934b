#![doc = include_str!("../README.md")]

mod config;
pub mod demo;
mod service;

pub use config::{
    ClaimsConfig, Config, ConfigError, EvmConfig, Form, KeySource, LedgerConfig, LedgerKind,
    Origin, PollConfig, SETTINGS, Setting,
};
pub use service::{RunningService, Service, ServiceCounts, StartError};
