#![doc = include_str!("../README.md")]

mod counts;
mod counts_log;
mod event_observer;
mod gas_reports;
mod gas_watch;
mod health;
mod metrics;
mod waits;
#[cfg(test)]
mod waits_page;

pub use counts::ServerCounts;
pub use counts_log::CountsLog;
pub use event_observer::EventObserver;
pub use gas_reports::gas_reports;
pub use gas_watch::watch_gas;
pub use health::{CompareSettings, Health, HealthSources};
pub use metrics::{HistoryRecorder, MetricsSources, QueueMetrics, QueueSources, StageTimes};
pub use waits::{LockedSinceFn, WaitSources, ledger_report};
