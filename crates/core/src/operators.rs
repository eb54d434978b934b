//! What operators do: one type for an action over HTTP and on the command line.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::batches::{BatchState, Stale};
use crate::claims::{InstanceId, SubmittedBatch};
use crate::queries::{Halt, HaltCursor};
use crate::tokens::TokenId;
use crate::webhooks::WebhookId;
use crate::{BatchResult, Excerpt, ItemId, ServiceId, Timestamp};

/// What an operator can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorVerb {
    /// Ends the delay of a batch, so that it is tried again now.
    Retry,
    /// Decides that the ledger does not have a batch, so that it is sent again.
    Resubmit,
    /// Decides that the ledger has applied a batch.
    EndCommitted,
    /// Decides that the ledger has rejected a batch, or that it is not to be sent.
    EndInvalid,
    /// Ends a batch that the ledger certainly does not have as invalid.
    Cancel,
    /// Holds a batch until a decision.
    Hold,
    /// Ends the hold of a batch.
    Release,
    /// Lets the batches that an invalid batch stops continue.
    Continue,
    /// Ends the batches that an invalid batch stops.
    EndFollowing,
    /// Starts no new submission.
    Pause,
    /// Ends a pause, or the drain of an instance.
    Resume,
    /// Makes the owner of a service release it.
    ReleaseClaim,
    /// Makes an instance take nothing more and release its services.
    Drain,
    /// Decides that undecided nonces of an account were used for no open withdrawal.
    NoncesElsewhere,
    /// Decides which nonce of an account is the next one. Those below it were used for no open withdrawal.
    StartNonce,
    /// Decides that an undecided nonce of an account was used for a withdrawal.
    PayNonce,
    /// Fills unused nonces, because a transaction with a higher nonce waits for them.
    FillNonces,
    /// Requests that a withdrawal be cancelled.
    CancelWithdrawal,
    /// Raises the fees of a withdrawal that was sent.
    SpeedUpWithdrawal,
    /// Schedules a failed withdrawal again.
    RetryWithdrawal,
    /// Moves an open withdrawal to the present gas admin of its pool.
    MoveWithdrawal,
    /// Creates an access token.
    CreateToken,
    /// Revokes an access token.
    RevokeToken,
    /// Creates a webhook.
    CreateWebhook,
    /// Removes a webhook.
    RemoveWebhook,
    /// Changes where or which events a webhook sends.
    ChangeWebhook,
    /// Gives a webhook another secret.
    RotateWebhookSecret,
    /// Stops a webhook from sending.
    PauseWebhook,
    /// Ends the pause of a webhook.
    ResumeWebhook,
    /// Sends a message that tests a webhook.
    PingWebhook,
    /// Sends messages to a webhook once more, and enables it.
    Redeliver,
    /// Puts every open batch in doubt, because the database has lost its latest commits.
    Restored,
    /// Records that a database was moved with every commit.
    Moved,
    /// Binds the database to another ledger.
    AdoptLedger,
}

/// A text that is not an [`OperatorVerb`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{value} is not a verb; the verbs are {}",
    OperatorVerb::ALL.map(OperatorVerb::as_str).join(", ")
)]
pub struct OperatorVerbError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl OperatorVerb {
    /// Every verb.
    pub const ALL: [Self; 34] = [
        Self::Retry,
        Self::Resubmit,
        Self::EndCommitted,
        Self::EndInvalid,
        Self::Cancel,
        Self::Hold,
        Self::Release,
        Self::Continue,
        Self::EndFollowing,
        Self::Pause,
        Self::Resume,
        Self::ReleaseClaim,
        Self::Drain,
        Self::NoncesElsewhere,
        Self::StartNonce,
        Self::PayNonce,
        Self::FillNonces,
        Self::CancelWithdrawal,
        Self::SpeedUpWithdrawal,
        Self::RetryWithdrawal,
        Self::MoveWithdrawal,
        Self::CreateToken,
        Self::RevokeToken,
        Self::CreateWebhook,
        Self::RemoveWebhook,
        Self::ChangeWebhook,
        Self::RotateWebhookSecret,
        Self::PauseWebhook,
        Self::ResumeWebhook,
        Self::PingWebhook,
        Self::Redeliver,
        Self::Restored,
        Self::Moved,
        Self::AdoptLedger,
    ];

    /// The verb as databases and responses write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Resubmit => "resubmit",
            Self::EndCommitted => "end_committed",
            Self::EndInvalid => "end_invalid",
            Self::Cancel => "cancel",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Continue => "continue",
            Self::EndFollowing => "end_following",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::ReleaseClaim => "release_claim",
            Self::Drain => "drain",
            Self::NoncesElsewhere => "nonces_elsewhere",
            Self::StartNonce => "start_nonce",
            Self::PayNonce => "pay_nonce",
            Self::FillNonces => "fill_nonces",
            Self::CancelWithdrawal => "cancel_withdrawal",
            Self::SpeedUpWithdrawal => "speed_up_withdrawal",
            Self::RetryWithdrawal => "retry_withdrawal",
            Self::MoveWithdrawal => "move_withdrawal",
            Self::CreateToken => "create_token",
            Self::RevokeToken => "revoke_token",
            Self::CreateWebhook => "create_webhook",
            Self::RemoveWebhook => "remove_webhook",
            Self::ChangeWebhook => "change_webhook",
            Self::RotateWebhookSecret => "rotate_webhook_secret",
            Self::PauseWebhook => "pause_webhook",
            Self::ResumeWebhook => "resume_webhook",
            Self::PingWebhook => "ping_webhook",
            Self::Redeliver => "redeliver",
            Self::Restored => "restored",
            Self::Moved => "moved",
            Self::AdoptLedger => "adopt_ledger",
        }
    }

    /// What it does, in words for a person who chooses an action.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Retry => "try it now",
            Self::Resubmit => "send it again, because the ledger does not have it",
            Self::EndCommitted => "end it as committed, because the ledger has applied it",
            Self::EndInvalid => "end it as invalid, because the ledger has rejected it",
            Self::Cancel => "end it as invalid without sending it",
            Self::Hold => "do not send it before a decision",
            Self::Release => "end the hold, so that the ordinary rules apply",
            Self::Continue => "let the batches that it stops continue",
            Self::EndFollowing => "end the batches that it stops, without sending them",
            Self::Pause => "start no new submission",
            Self::Resume => "end the pause",
            Self::ReleaseClaim => "make the owner of the service release it",
            Self::Drain => "have the instance give up its services and take no others",
            Self::NoncesElsewhere => "decide that the nonces were used for nothing that is open",
            Self::StartNonce => "decide that this nonce is the next one of the account",
            Self::PayNonce => "decide that the nonce was used for a withdrawal or transaction",
            Self::FillNonces => "fill the nonces with empty transfers",
            Self::CancelWithdrawal => "cancel the withdrawal or transaction, if it still can be",
            Self::SpeedUpWithdrawal => {
                "raise the fees of the withdrawal or transaction, if it is not mined"
            }
            Self::RetryWithdrawal => "schedule the failed withdrawal or transaction again",
            Self::MoveWithdrawal => "move the withdrawal to the gas admin of its pool",
            Self::CreateToken => "create the token",
            Self::RevokeToken => "revoke the token",
            Self::CreateWebhook => "create the webhook",
            Self::RemoveWebhook => "remove the webhook",
            Self::ChangeWebhook => "change where or which events the webhook sends",
            Self::RotateWebhookSecret => "give the webhook another secret",
            Self::PauseWebhook => "send nothing to the webhook",
            Self::ResumeWebhook => "end the pause of the webhook",
            Self::PingWebhook => "send a message that tests the webhook",
            Self::Redeliver => "send the messages once more that were given up",
            Self::Restored => "put every open batch in doubt",
            Self::Moved => "record that the database was moved with every commit",
            Self::AdoptLedger => "bind the database to the ledger of the nodes",
        }
    }

    /// Whether it counts as evidence about one attempt of a batch, which must be named.
    pub const fn decides_attempt(self) -> bool {
        matches!(self, Self::Resubmit | Self::EndCommitted | Self::EndInvalid)
    }

    /// Whether it can end a batch as invalid or follows from that, so that the rules of its service decide whether
    /// other batches wait or continue.
    pub const fn follows_rules(self) -> bool {
        matches!(self, Self::EndInvalid | Self::Cancel | Self::Continue | Self::EndFollowing)
    }

    /// Whether it prevents batches of its target from being sent for the first time, except those that are being sent
    /// already.
    pub const fn stops_sending(self) -> bool {
        matches!(self, Self::Pause | Self::Drain | Self::Hold)
    }
}

impl fmt::Display for OperatorVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for OperatorVerb {
    type Err = OperatorVerbError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|verb| verb.as_str() == text)
            .ok_or_else(|| OperatorVerbError { value: Excerpt::of(text) })
    }
}

/// What an action is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorTarget {
    /// One batch of a service.
    Batch {
        /// The service.
        service_id: ServiceId,
        /// The batch.
        batch_id: ItemId,
        /// The attempt that the operator looked at; 0 for a batch that was never tried.
        attempt: Option<u32>,
    },
    /// A service.
    Service(ServiceId),
    /// Nonces of the account of a service, from the first to the last one.
    Nonces {
        /// The service.
        service_id: ServiceId,
        /// The first nonce.
        first: u64,
        /// The last nonce.
        last: u64,
    },
    /// A nonce of the account of a service, and what it was used for.
    PaidNonce {
        /// The service.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
        /// The withdrawal.
        paid: ItemId,
    },
    /// All services.
    AllServices,
    /// An instance.
    Instance(InstanceId),
    /// An access token.
    Token(TokenId),
    /// A webhook.
    Webhook(WebhookId),
    /// The database as a whole.
    Database,
}

impl OperatorTarget {
    /// The kind of target, as databases and responses write it. For nonces, it is that of their service.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Batch { .. } => "batch",
            Self::Service(_) | Self::Nonces { .. } | Self::PaidNonce { .. } => "service",
            Self::AllServices => "all_services",
            Self::Instance(_) => "instance",
            Self::Token(_) => "token",
            Self::Webhook(_) => "webhook",
            Self::Database => "database",
        }
    }

    /// The service that it is, or that it belongs to.
    pub const fn service_id(&self) -> Option<&ServiceId> {
        match self {
            Self::Batch { service_id, .. }
            | Self::Service(service_id)
            | Self::Nonces { service_id, .. }
            | Self::PaidNonce { service_id, .. } => Some(service_id),
            _ => None,
        }
    }

    /// The batch that it is, and the attempt.
    pub const fn batch(&self) -> Option<(&ItemId, Option<u32>)> {
        match self {
            Self::Batch { batch_id, attempt, .. } => Some((batch_id, *attempt)),
            _ => None,
        }
    }

    /// The instance that it is.
    pub const fn instance(&self) -> Option<&InstanceId> {
        match self {
            Self::Instance(instance) => Some(instance),
            _ => None,
        }
    }

    /// The id of the token or webhook that it is.
    pub fn other_id(&self) -> Option<String> {
        match self {
            Self::Token(id) => Some(id.to_string()),
            Self::Webhook(id) => Some(id.to_string()),
            _ => None,
        }
    }
}

/// Who acts, and where the action comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The name of a person or a program.
    pub name: String,
    /// Where the action comes from.
    pub source: ActionSource,
    /// The instance that carried out the action, if an instance did.
    pub instance: Option<InstanceId>,
}

/// Where an action comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionSource {
    /// A request over HTTP.
    Http,
    /// A command on a machine that can reach the database.
    CommandLine,
    /// A program that uses the store.
    Program,
}

impl ActionSource {
    /// Every source.
    pub const ALL: [Self; 3] = [Self::Http, Self::CommandLine, Self::Program];

    /// The source as databases and responses write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::CommandLine => "command_line",
            Self::Program => "program",
        }
    }
}

impl Operator {
    /// A program that uses the store and names no person.
    pub fn program() -> Self {
        Self { name: "program".to_owned(), source: ActionSource::Program, instance: None }
    }
}

/// Who requests a logged action, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorRequest {
    /// Who.
    pub operator: Operator,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// Whether to find out only what would happen, without changing or logging anything.
    pub dry_run: bool,
}

impl OperatorRequest {
    /// The request of a program that uses the store and names no person.
    pub fn program() -> Self {
        Self { operator: Operator::program(), reason: None, dry_run: false }
    }

    /// What it asks for.
    pub fn action(self, verb: OperatorVerb, target: OperatorTarget) -> OperatorAction {
        let Self { operator, reason, dry_run } = self;
        OperatorAction { verb, target, reason, operator, dry_run }
    }
}

/// Something that an operator does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorAction {
    /// What.
    pub verb: OperatorVerb,
    /// What it is about.
    pub target: OperatorTarget,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// Who.
    pub operator: Operator,
    /// Whether to find out only what would happen, without changing or logging anything.
    pub dry_run: bool,
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionOutcome {
    /// It was done and logged, or would be if this is a dry run.
    Done(ActionEffect),
    /// The state forbids it; nothing changed.
    Refused(ActionRefusal),
    /// There is no such batch, service or instance.
    NotFound,
}

/// What an action changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEffect {
    /// What it was before, in words: the state of a batch, or what a service or an instance did.
    pub before: String,
    /// What it is now.
    pub after: String,
    /// The state of the batch now, if the target is a batch.
    pub state: Option<BatchState>,
    /// Whether a service has a batch that may be sent now.
    pub next_waits: bool,
}

impl ActionEffect {
    /// The effect of an action that is not about a batch, in words.
    pub fn in_words(before: impl Into<String>, after: impl Into<String>) -> Self {
        Self { before: before.into(), after: after.into(), state: None, next_waits: false }
    }
}

/// Why an action is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ActionRefusal {
    /// The batch does not allow it.
    #[error(transparent)]
    Batch(#[from] Stale),
    /// The verb does not exist for this kind of target.
    #[error("{verb} is not possible for a target of this kind")]
    WrongTarget {
        /// The verb.
        verb: OperatorVerb,
    },
    /// It is paused already.
    #[error("it is paused already")]
    AlreadyPaused,
    /// It is not paused.
    #[error("it is not paused: there is nothing to resume")]
    NotPaused,
    /// Only all services together are paused.
    #[error(
        "it is not paused itself, but all services are: `grid-batch resume --all --reason TEXT`, or \"Resume all\" in \
         the dashboard, ends that"
    )]
    AllPaused,
    /// It is paused only because its nodes have different states, not by an operator.
    #[error(
        "it is paused because the state roots of the nodes differ, and goes on by itself when they agree: \
         there is nothing to resume"
    )]
    StatesDiffer,
    /// It drains already.
    #[error("it drains already")]
    AlreadyDraining,
    /// It does not drain.
    #[error("it does not drain: there is nothing to end")]
    NotDraining,
    /// No other instance would take its services.
    #[error(
        "no other instance runs that could take its services; to send nothing, pause all services"
    )]
    LastInstance,
    /// No instance claims the service.
    #[error("no instance claims the service")]
    NotClaimed,
    /// A batch of the service is with a submitter.
    #[error(
        "a batch of the service is being sent now; try again when the attempt has ended, which is at the \
         latest after five times ledger.request_timeout"
    )]
    ClaimInUse,
    /// Another transaction keeps rows of the service locked.
    #[error(
        "another transaction keeps rows of the service locked in the database; nothing was changed, try again"
    )]
    Locked,
    /// The nonce cannot have been used for the withdrawal.
    #[error(
        "nonce {nonce} is not undecided, or what it is to be used for is not open or has another nonce"
    )]
    NotPaid {
        /// The nonce.
        nonce: u64,
    },
    /// No nonce of the range is undecided.
    #[error("none of these nonces is undecided")]
    NotUndecided,
    /// This nonce is the next one already.
    #[error("nonce {nonce} is the next one already")]
    AlreadyNext {
        /// The nonce.
        nonce: u64,
    },
    /// Transactions were signed with nonces from this one on.
    #[error(
        "a transaction is signed with nonce {nonce}, and can be mined as long as no other transaction uses this \
         nonce; fill the nonces below it instead"
    )]
    Signed {
        /// The nonce.
        nonce: u64,
    },
    /// No transaction waits for these nonces.
    #[error("nothing is signed with a higher nonce, so nothing waits for these nonces")]
    NothingWaits,
    /// All of these nonces are stored.
    #[error(
        "all of these nonces are stored: their transactions are sent or filled without a decision"
    )]
    NothingToFill,
    /// Too many nonces are to be filled at once.
    #[error("more than {most} nonces are to be filled; fill them in parts, the lowest first")]
    TooManyNonces {
        /// The limit.
        most: u64,
    },
    /// It is not known whether an invalid batch stops others.
    #[error(
        "no server of this release has used the database yet, so it is not known whether an invalid batch stops \
         others; start a server first"
    )]
    UnknownRules,
    /// A decision does not name the attempt that it is about.
    #[error("{verb} is about one attempt of the batch: name the one that you looked at")]
    NoAttempt {
        /// The verb.
        verb: OperatorVerb,
    },
}

/// An action that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAction {
    /// Later actions have greater numbers.
    pub id: i64,
    /// When, by the clock of the database.
    pub acted_at: Timestamp,
    /// The action, which was not a dry run.
    pub action: OperatorAction,
    /// The target before the action, in words.
    pub before: String,
    /// The target after the action, in words.
    pub after: String,
}

/// Selects recorded actions. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionFilter {
    /// Only those of this operator.
    pub operator: Option<String>,
    /// Only this verb.
    pub verb: Option<OperatorVerb>,
    /// Only those about this service and its batches.
    pub service_id: Option<ServiceId>,
    /// Only those about this batch.
    pub batch_id: Option<ItemId>,
}

/// Does what operators ask for, and keeps a log of it.
pub trait OperatorStore: Send + Sync {
    /// Does the action and logs it in one commit. A dry run only finds out what would happen.
    fn act(&self, action: &OperatorAction) -> BatchResult<ActionOutcome>;

    /// Up to `limit` recorded actions before the one with this number, the latest first.
    fn actions(
        &self,
        filter: &ActionFilter,
        before: Option<i64>,
        limit: usize,
    ) -> BatchResult<Vec<RecordedAction>>;

    /// Up to `limit` invalid batches that stop others until an operator decides or the stopped batches have ended,
    /// ordered by service and position.
    fn halts(&self, after: Option<&HaltCursor>, limit: usize) -> BatchResult<Vec<Halt>>;

    /// The batches of this target that are with a submitter of any instance. After a pause, a drain or a hold of
    /// the target, no others are sent.
    fn being_sent(&self, target: &OperatorTarget) -> BatchResult<Vec<SubmittedBatch>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verb_is_read_from_its_name() {
        for verb in OperatorVerb::ALL {
            assert_eq!(verb.as_str().parse(), Ok(verb));
        }
        let error = "explode".parse::<OperatorVerb>().unwrap_err().to_string();
        assert!(error.contains("resubmit") && error.contains("explode"), "{error}");
    }
}
