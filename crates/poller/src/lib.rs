#![doc = include_str!("../README.md")]

mod ask_ahead;
mod builder;
mod earlier;
mod environment;
mod events;
mod evidence;
mod evidence_requests;
mod evidence_search;
mod failure_log;
mod instant;
mod leader;
mod ledger_requests;
mod missing_transactions;
#[cfg(any(test, feature = "mocks"))]
pub mod mocks;
mod observed;
mod options;
mod parts;
mod pending_writes;
mod per_service_queue;
mod poller_store;
mod polls;
mod questions;
mod request_budget;
mod resolution;
mod runnable;
mod running;
mod service_search;
mod stalled;
mod stats;
mod status_answer;
mod status_reader;
mod store_health;
mod trigger;

pub use ask_ahead::{NextBatchMonitor, NextBatchRequests};
pub use builder::{MonitorBuildError, PollingMonitorBuilder};
pub use events::{EventFollower, EventMonitor, EventOptions};
pub use grid_batch_nodes::StatusUrlResolver;
pub use grid_batch_support::{Backoff, Job, Jobs, ShutdownHandle};
pub use missing_transactions::{
    LookupProgress, LookupReport, MissingTransactionMonitor, MissingTransactionOptions,
};
pub use options::{
    InconclusivePolicy, MonitorOptions, MonitorOptionsError, POLL_INTERVAL_VARIABLE,
};
pub use runnable::RunnablePollingMonitor;
pub use running::RunningPollingMonitor;
pub use stats::{MonitorCounters, MonitorStats};
pub use status_reader::{BatchStatusReader, LedgerStatusReader};
pub use trigger::PollTrigger;
