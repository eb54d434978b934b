#![doc = include_str!("../README.md")]

mod agenda;
mod answer;
mod backoff;
mod builder;
mod ending;
mod environment;
mod events;
mod health;
mod inquest;
mod inquiry;
mod judge;
mod leader;
mod line;
mod looks;
mod options;
mod outbox;
mod panics;
mod parts;
mod records;
mod retries;
mod runnable;
mod running;
mod runtime;
mod stats;
mod thread;
mod trigger;

pub use backoff::Backoff;
pub use builder::{MonitorBuildError, PollingMonitorBuilder};
pub use events::{EventFollower, EventMonitor, EventOptions, RunningEventMonitor};
pub use options::{MonitorOptions, MonitorOptionsError, POLL_INTERVAL_VARIABLE, Undecided};
pub use runnable::RunnablePollingMonitor;
pub use running::RunningPollingMonitor;
pub use stats::{MonitorCounters, MonitorStats};
pub use trigger::PollTrigger;
