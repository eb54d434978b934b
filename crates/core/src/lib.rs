#![doc = include_str!("../README.md")]

mod access_token;
mod address_prefix;
mod admission;
mod backoff;
mod batch;
mod batch_bytes;
mod batch_format;
mod batch_page;
mod change;
mod claim;
mod client_id;
mod clock;
mod commit_history;
mod counts;
mod deadline;
mod declared_access;
mod error;
mod event_feed;
mod evidence;
mod excerpt;
mod explain;
mod hex;
mod intake;
mod item_id;
mod item_id_prefix;
mod label;
mod ledger;
mod ledger_facts;
mod ledger_identity;
mod ledger_key;
mod missing_transactions;
#[cfg(feature = "mocks")]
pub mod mocks;
mod monitor;
mod operator;
mod outage;
mod outcome;
mod pass_through;
mod query;
mod recorded;
mod retention;
mod retry;
mod round;
mod scheduling;
mod scope;
mod service_id;
mod service_overview;
mod signer;
mod state;
mod strategy;
mod submission;
mod transition;
mod wait_reason;
mod waiting;
mod webhooks;

pub use access_token::{
    AccessScope, AccessScopeError, NewToken, StoredToken, TokenId, TokenIdError, TokenStore,
};
pub use address_prefix::AddressPrefix;
pub use admission::Admission;
pub use backoff::Backoff;
pub use batch::{Hold, NewBatch, Receipt, StatusReport, StoredBatch};
pub use batch_bytes::BatchBytes;
pub use batch_format::{BatchFormat, FormatError};
pub use batch_page::{
    BatchPage, BatchSelection, ListCursor, ListCursorError, ListedBatch, PageOrder,
};
pub use change::{Change, ChangeOutcome, Decision, OperatorDecision, Stale};
pub use claim::{
    Claim, ClaimKeeper, InstanceId, Notifications, StatePauseStore, SubmittedBatch, Takeover,
};
pub use client_id::ClientId;
pub use clock::{Clock, ManualClock, Moment, MonotonicTime, SystemClock, Timestamp};
pub use commit_history::{CommitHistory, CommittedBefore, HistoryFacts};
pub use counts::{
    BatchCounts, FullQueue, OpenState, OpenStates, PoolConnections, QueueCounts, ServiceCounts,
};
pub use deadline::{Deadline, DeadlineError, LedgerPosition, TimeLeft};
pub use declared_access::{DeclaredAccess, DeclaredAccessError};
pub use error::{BatchError, BatchResult, InternalError};
pub use event_feed::{
    BatchEvent, EventCursor, EventCursorError, EventFilter, EventId, EventKind, EventKindError,
    EventListener, EventPage, EventPosition, EventReadError, EventStore, EventWithdrawal,
    PositionedEvent,
};
pub use evidence::{Evidence, EvidenceReport, LedgerQuestionStore, Resolution, UnresolvedBatch};
pub use excerpt::Excerpt;
pub use explain::{
    BatchExplanation, PossibleAction, SearchLimits, ServiceExplanation, ServiceFacts, ServicePause,
};
pub use hex::Hex;
pub use intake::{AddOutcome, BatchConflict, IntakeStore, TransactionConflict};
pub use item_id::{ItemId, ItemIdError};
pub use item_id_prefix::{ItemIdPrefix, ItemIdPrefixError};
pub use label::{BatchLabel, BatchLabelError};
pub use ledger::{Ledger, LedgerEvent, LedgerEventStream};
pub use ledger_facts::{AbsenceRule, LedgerFacts, LedgerFactsError, SecondArrival};
pub use ledger_identity::{LedgerConfirmation, LedgerIdentity, RecordedLedger};
pub use ledger_key::{KeyRefusal, LedgerKey};
pub use missing_transactions::{
    EndedDependents, LookupLag, MissingTransactionStore, TransactionAnswers,
};
pub use monitor::{
    BatchId, BatchStatus, BatchUpdater, LARGEST_PENDING_LIMIT, PendingBatchStore, PollPace,
};
pub use operator::{
    ActionEffect, ActionFilter, ActionOutcome, ActionRefusal, ActionSource, Operator,
    OperatorAction, OperatorRequest, OperatorStore, OperatorTarget, OperatorVerb,
    OperatorVerbError, RecordedAction,
};
pub use outage::{Outage, OutageKind};
pub use outcome::{GroupObserver, Outcome, OutcomeClass, SubmissionAnswer, SubmissionOutcome};
pub use pass_through::{
    BodyParts, ForwardedRequest, ForwardedResponse, ForwardedSocket, PassThroughError,
    SocketMessage, SocketMessages,
};
pub use query::{
    BatchDetails, BatchFilter, BatchQueryStore, CommitAfterInvalid, FailedAttempt, Halt,
    HaltCursor, HaltCursorError, PageCursor, QueueDepth,
};
pub use recorded::{Recorded, RecordedSubscriber};
pub use retention::{Removable, Removed, RetentionCursor, RetentionStore};
pub use retry::{DelayOptions, FailedAttempts, HoldCause, NextStep, RetryPolicy};
pub use round::{BatchFits, Round, RoundStore, ServiceShare, TakenBatch};
pub use scheduling::{
    AfterInvalid, Scheduling, SchedulingRules, SchedulingRulesError, StrategyKind,
};
pub use scope::{GlobalScopeId, PeerService, ScopeId, ScopeIdError, ServiceScopeId};
pub use service_id::{ServiceId, ServiceIdError};
pub use service_overview::{InstanceLease, OwnedService, ServiceOverview, ServiceOwner};
pub use signer::SignerId;
pub use state::{BatchState, BatchStateError, DltStatus, DltStatusError};
pub use strategy::{
    AnyStrategy, BlockedBy, ByConflict, InLane, InOrder, LaneCounts, Strategy, WaitKind,
};
pub use submission::{AttemptId, Submission};
pub use transition::{Event, LedgerStatus, Progress, TransitionError, transition};
pub use wait_reason::{AboutWait, WaitReason};
pub use waiting::{Ahead, Wait};
pub use webhooks::{
    DeliveryResult, DueWebhook, FailedDelivery, FailedDeliveryId, Message, NewWebhook, Webhook,
    WebhookId, WebhookLease, WebhookSecret, WebhookStore, WebhookUrlError, check_webhook_url,
};
