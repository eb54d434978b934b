#![doc = include_str!("../README.md")]

mod builder;
mod command;
mod controller;
mod delayed_services;
mod group_notifier;
mod leader;
mod listener;
#[cfg(any(test, feature = "mocks"))]
pub mod mocks;
mod observer;
mod options;
mod retry_observer;
mod retry_queue;
mod runnable;
mod running;
mod sender;
mod set_aside;
mod shutdown_deadline;
mod slots;
mod stats;
mod task;

pub use builder::{SubmitterBuildError, SubmitterBuilder};
pub use delayed_services::{DelayedService, DelayedServices, DelayedSummary};
pub use grid_batch_nodes::{NO_ADDRESS, UrlResolver};
pub use grid_batch_support::{Backoff, Jobs, ShutdownHandle};
pub use leader::SubmitterWaker;
pub use observer::{SubmissionResponse, SubmitterObserver};
pub use options::SubmitterOptions;
pub use retry_queue::RetryQueue;
pub use runnable::{BatchRunnableSubmitter, RunnableSubmitter};
pub use running::{BatchRunningSubmitter, RunningSubmitter};
pub use sender::{LedgerSender, SubmissionSender};
pub use stats::{SubmitterCounters, SubmitterStats};
