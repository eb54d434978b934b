#![doc = include_str!("../README.md")]

mod awaited_ends;
mod counts;
mod follow_up;
mod free_dependents;
mod health;
mod maintainer;
mod notifications;
mod recovery;
mod requests;
mod retention;

pub use awaited_ends::AwaitedEnds;
pub use counts::ChangeCounts;
pub use follow_up::ChangeFollowUp;
pub use free_dependents::{DependentsJob, DependentsLook, DependentsRequests, ReceivedRequests};
pub use health::ClaimHealth;
pub use maintainer::{ClaimMaintainer, ClaimMaintainerOptions};
pub use notifications::NotificationListener;
pub use recovery::OrphanRecovery;
pub use requests::ClaimRequests;
pub use retention::{Retention, RetentionOptions};
