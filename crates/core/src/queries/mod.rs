//! Reading batches, services and counts, and why a batch waits.

mod batch_page;
mod counts;
mod explain;
mod item_id_prefix;
mod possible_action;
mod query;
mod service_overview;
mod service_pause;
mod wait_reason;

pub use batch_page::{
    BatchPage, BatchSelection, ListCursor, ListCursorError, ListedBatch, PageOrder,
};
#[cfg(feature = "mocks")]
pub use counts::MockBatchCounts;
pub use counts::{
    BatchCounts, DiskSpace, FullQueue, OpenState, OpenStates, PoolConnections, QueueCounts, Sample,
    ServiceCounts,
};
pub use explain::{BatchExplanation, MoreThanWait, SearchLimits, ServiceExplanation, ServiceFacts};
pub use item_id_prefix::{ItemIdPrefix, ItemIdPrefixError};
pub use possible_action::{ActionTarget, PossibleAction};
pub use query::{
    BatchDetails, BatchFilter, BatchQueryStore, CommitAfterInvalid, FailedAttempt, Halt,
    HaltCursor, HaltCursorError, PageCursor, QueueDepth,
};
pub use service_overview::{InstanceLease, OwnedService, ServiceOverview, ServiceOwner};
pub use service_pause::ServicePause;
pub use wait_reason::{AboutWait, WaitReason};
