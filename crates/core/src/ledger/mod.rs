//! What the adapter of a ledger implements, what it is sent and how that ends, and what is known of a ledger.

mod adapter;
mod commit_history;
mod ledger_facts;
mod ledger_identity;
mod ledger_key;
mod outage;
mod outcome;
mod pass_through;
mod submission;

pub use adapter::{Ledger, LedgerEvent, LedgerEventStream};
#[cfg(feature = "mocks")]
pub use commit_history::MockCommitHistory;
pub use commit_history::{CommitHistory, CommittedBefore, HistoryFacts};
pub use ledger_facts::{AbsenceRule, LedgerFacts, LedgerFactsError, SecondArrival};
pub use ledger_identity::{LedgerConfirmation, LedgerIdentity, RecordedLedger};
pub use ledger_key::{KeyRefusal, LedgerKey};
pub use outage::{Outage, OutageKind};
pub use outcome::{GroupObserver, Outcome, OutcomeClass, SubmissionAnswer, SubmissionOutcome};
pub use pass_through::{
    BodyParts, ForwardedRequest, ForwardedResponse, ForwardedSocket, PassThroughError,
    SocketMessage, SocketMessages,
};
pub use submission::{AttemptId, Submission};
