#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "these helpers panic when something unexpected happens")]

pub mod batches;
pub mod browser;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod cpu_time;
pub mod generated_clients;
pub mod http;
pub mod instance;
pub mod log_lines;
pub mod process;
pub mod schemathesis;
pub mod tmux;
pub mod wait;
pub mod watched;
pub mod webhook_receiver;
