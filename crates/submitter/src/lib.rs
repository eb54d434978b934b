#![doc = include_str!("../README.md")]

mod backoff;
mod builder;
mod command;
mod controller;
mod drain;
mod group;
mod leader;
mod listener;
mod message;
mod options;
mod panics;
mod places;
mod redact;
mod resolver;
mod runnable;
mod running;
mod runtime;
mod stats;
mod task;
mod waker;

pub use backoff::Backoff;
pub use builder::{SubmitterBuildError, SubmitterBuilder};
pub use options::SubmitterOptions;
pub use resolver::{
    FixedUrlResolver, NO_ADDRESS, NoNodes, NodeChoice, NodeUrlResolver, PerServiceUrlResolver,
    UrlHealth,
};
pub use runnable::BatchRunnableSubmitter;
pub use running::BatchRunningSubmitter;
pub use stats::{SubmitterCounters, SubmitterStats};
pub use waker::SubmitterWaker;
