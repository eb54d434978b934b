//! What a batch is, its states and how they change, and the stores that add and remove batches.

mod address_prefix;
mod batch;
mod batch_bytes;
mod batch_format;
mod change;
mod client_id;
mod deadline;
mod declared_access;
mod intake;
mod label;
mod retention;
mod signer;
mod state;
mod trace_context;
mod transition;

pub use address_prefix::AddressPrefix;
pub use batch::{Hold, NewBatch, Receipt, StatusReport, StoredBatch};
pub use batch_bytes::BatchBytes;
#[cfg(feature = "mocks")]
pub use batch_format::MockBatchFormat;
pub use batch_format::{BatchContent, BatchFormat, FormatError, TransactionContent};
pub use change::{Change, ChangeOutcome, Decision, OperatorDecision, Stale};
pub use client_id::ClientId;
pub use deadline::{Deadline, DeadlineError, LedgerPosition, TimeLeft};
pub use declared_access::{DeclaredAccess, DeclaredAccessError};
pub use intake::{AddOutcome, BatchConflict, IntakeStore, TransactionConflict};
pub use label::{BatchLabel, BatchLabelError};
#[cfg(feature = "mocks")]
pub use retention::MockRetentionStore;
pub use retention::{Removable, Removed, RetentionCursor, RetentionStore};
pub use signer::SignerId;
pub use state::{BatchState, BatchStateError, DltStatus, DltStatusError};
pub use trace_context::{TraceContext, TraceContextError};
pub use transition::{Event, LedgerStatus, Progress, TransitionError, transition};
