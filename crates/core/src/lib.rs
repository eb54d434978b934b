#![doc = include_str!("../README.md")]

mod batch;
mod claim;
mod clock;
mod error;
mod events;
mod evidence;
mod excerpt;
mod header_id;
mod hex;
#[cfg(feature = "mocks")]
pub mod mocks;
mod monitor;
mod outcome;
mod round;
mod scope;
mod service_id;
mod state;
mod submission;
mod submitter;
mod transition;

pub use batch::{Hold, NewBatch, Receipt, StatusReport, StoredBatch};
pub use claim::{Claim, ClaimKeeper, InstanceId};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use error::InternalError;
pub use events::{LedgerEvent, LedgerEventStream, LedgerEvents};
pub use evidence::{Evidence, EvidenceReader, Resolution, UnresolvedBatch, UnresolvedBatchStore};
pub use excerpt::Excerpt;
pub use header_id::{HeaderId, HeaderIdError};
pub use hex::Hex;
pub use monitor::{
    BatchError, BatchId, BatchResult, BatchStatus, BatchStatusReader, BatchUpdater,
    PendingBatchStore, PollPace, StatusUrlResolver,
};
pub use outcome::{GroupObserver, Outcome, SubmissionAnswer, SubmissionOutcome, SubmissionSender};
pub use round::{RoundStore, TakenBatch};
pub use scope::{GlobalScopeId, ScopeId, ScopeIdError, ServiceScopeId};
pub use service_id::{ServiceId, ServiceIdError};
pub use state::{BatchState, BatchStateError, DltStatus, DltStatusError};
pub use submission::{AttemptId, Submission, SubmissionResponse};
pub use submitter::{
    RunnableSubmitter, RunningSubmitter, ShutdownHandle, SubmitterObserver, UrlResolver,
};
pub use transition::{Event, LedgerStatus, Progress, TransitionError, transition};
