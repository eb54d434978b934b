#![doc = include_str!("../README.md")]

mod builder;
mod command;
mod controller;
mod delayed_services;
mod group_notifier;
mod leader;
mod listener;
mod message;
mod node_limits;
mod options;
mod recalls;
mod resolver;
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
pub use grid_batch_support::Backoff;
pub use node_limits::NodeLimits;
pub use options::SubmitterOptions;
pub use recalls::Recalls;
pub use resolver::{
    FixedUrlResolver, NO_ADDRESS, NoNodesError, NodeChoice, NodeUrlResolver, PerServiceUrlResolver,
    UrlHealth,
};
pub use runnable::BatchRunnableSubmitter;
pub use running::BatchRunningSubmitter;
pub use stats::{SubmitterCounters, SubmitterStats};
pub use waker::SubmitterWaker;
