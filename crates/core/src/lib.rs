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
mod short_id;
mod signing;
mod state;
mod submission;
mod submitter;
mod transition;
mod withdrawal;

pub use batch::{Held, NewBatch, Receipt, StatusReport, StoredBatch};
pub use claim::{Claim, ClaimKeeper, InstanceId};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use error::InternalError;
pub use events::{LedgerEvent, LedgerEventStream, LedgerEvents};
pub use evidence::{Doubt, DoubtStore, Evidence, EvidenceReader, Verdict};
pub use excerpt::Excerpt;
pub use header_id::{HeaderId, HeaderIdError};
pub use hex::Hex;
pub use monitor::{
    BatchError, BatchId, BatchResult, BatchStatus, BatchStatusReader, BatchUpdater,
    PendingBatchStore, PollPace, StatusUrlResolver,
};
pub use outcome::{GroupObserver, Outcome, SubmissionAnswer, SubmissionOutcome, SubmissionSender};
pub use round::{RoundStore, Taken};
pub use scope::{GlobalScopeId, ScopeId, ScopeIdError, ServiceScopeId};
pub use service_id::{ServiceId, ServiceIdError};
pub use short_id::{RewardId, ShortIdError, WithdrawalId};
pub use signing::{
    NewSigned, OpenNonce, Payment, Sign, SignedTransaction, SigningStore, Spent, Turn,
};
pub use state::{BatchState, BatchStateError, DltStatus, DltStatusError};
pub use submission::{Submission, SubmissionResponse, Ticket};
pub use submitter::{
    RunnableSubmitter, RunningSubmitter, ShutdownHandle, SubmitterObserver, UrlResolver,
};
pub use transition::{Event, LedgerStatus, Progress, TransitionError, transition};
pub use withdrawal::{Withdrawal, WithdrawalKind, WithdrawalRules};
