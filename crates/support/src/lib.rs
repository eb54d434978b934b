#![doc = include_str!("../README.md")]

mod authority;
mod backoff;
mod blocking_work;
mod bounded_map;
mod error_chain;
mod group_pause;
mod grouped_work;
mod histogram;
mod jobs;
mod lock;
mod one_line;
mod panic;
mod private_file;
mod redact;
mod service_pattern;
mod shutdown;
mod stops;
mod thread;
mod trace;
mod wildcard;

pub use authority::{Authority, AuthorityError};
pub use backoff::{Delays, rng};
pub use blocking_work::BlockingWork;
pub use bounded_map::BoundedMap;
pub use error_chain::ErrorChain;
pub use grid_batch_core::queue::Backoff;
pub use group_pause::GroupPause;
pub use grouped_work::GroupedWork;
pub use histogram::{Histogram, HistogramValues};
pub use jobs::{
    BlockingPool, Job, JobReport, JobRuns, JobTrigger, Jobs, Next, Schedule, TimeShare,
};
pub use lock::lock;
pub use one_line::one_line;
pub use panic::{Panic, catch_panic, catch_panic_async};
pub use private_file::{UnusableSecret, is_open_to_others, read_secret};
pub use redact::{redact_password, redact_url, redact_userinfo};
pub use service_pattern::{ServicePattern, ServicePatternError};
pub use shutdown::{Shutdown, ShutdownHandle};
pub use stops::{StopError, Stops};
pub use thread::{PeriodicThread, spawn_thread};
pub use trace::{in_trace, present_trace};
pub use wildcard::Wildcard;
