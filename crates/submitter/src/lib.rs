#![doc = include_str!("../README.md")]

mod builder;
mod command;
mod controller;
mod delayed_services;
mod group_notifier;
mod leader;
mod listener;
mod message;
mod options;
mod recalls;
mod runnable;
mod running;
mod runtime;
mod set_aside;
mod shutdown_deadline;
mod slots;
mod stats;
mod task;
mod waker;

pub use builder::{SubmitterBuildError, SubmitterBuilder};
pub use delayed_services::{DelayedService, DelayedServices, DelayedSummary};
pub use grid_batch_core::NO_ADDRESS;
pub use grid_batch_support::Backoff;
pub use options::SubmitterOptions;
pub use recalls::Recalls;
pub use runnable::BatchRunnableSubmitter;
pub use running::BatchRunningSubmitter;
pub use stats::{SubmitterCounters, SubmitterStats};
pub use waker::SubmitterWaker;
