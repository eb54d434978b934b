#![doc = include_str!("../README.md")]

mod awaited_ends;
mod counts;
mod health;
mod invalid_services;
mod maintainer;
mod notifications;
mod recorded_log;
mod recorded_stream;
mod recovery;
mod registration;
mod requests;
mod retention;

pub use awaited_ends::AwaitedEnds;
pub use counts::{ChangeCounters, ChangeCounts};
pub use grid_batch_support::{Job, Jobs};
pub use health::ClaimHealth;
pub use invalid_services::InvalidServices;
pub use maintainer::{ClaimMaintainer, ClaimMaintainerOptions};
pub use notifications::NotificationListener;
pub use recorded_log::log_recorded;
pub use recorded_stream::RecordedStream;
pub use recovery::OrphanRecovery;
pub use registration::{NameInUse, wait_for_name};
pub use requests::{ClaimRequests, ReceivedClaimRequests};
pub use retention::{Retention, RetentionOptions};
