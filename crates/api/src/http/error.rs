use std::time::Duration;

use grid_batch_core::{
    AccessScope, ActionRefusal, BatchConflict, BatchError, BatchLabelError, Excerpt, FormatError,
    ItemIdError, ItemIdPrefixError, ServiceId, ServiceIdError, SignerId,
};
use grid_batch_withdrawals::{
    PaymentLimitError, Reward, RewardId, ShortIdError, Withdrawal, WithdrawalConflict, WithdrawalId,
};
use log::warn;
use thiserror::Error;

use crate::http::OtherContentType;

/// Why a request is refused or fails. Its text is the `message` of the answer; `error_response.rs`
/// has the status and the code of each.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ApiError {
    // Requests in general.
    #[error("this path does not exist")]
    NotFound,
    #[error("this path does not support the method {0}")]
    MethodNotAllowed(Excerpt),
    #[error(
        "this server does not answer requests to the host {0}; use localhost or its address, or add the \
         host to http.allowed_hosts"
    )]
    OtherHost(Excerpt),
    #[error(
        "requests of web pages from {0} are refused; if it is yours, add it to http.allowed_origins"
    )]
    OtherOrigin(Excerpt),
    #[error(
        "requests of web pages of other sites are refused (Sec-Fetch-Site is {0}); if the page is yours, \
         add its origin to http.allowed_origins"
    )]
    OtherSite(Excerpt),
    #[error("the body is longer than {limit} bytes; send it in parts")]
    BodyTooLong { limit: usize },
    #[error("the body did not arrive within {0:?}")]
    BodyTimeout(Duration),
    #[error("the body is incomplete, or is not valid HTTP")]
    IncompleteBody,
    #[error("the query parameter {0} is not percent-encoded UTF-8")]
    QueryEncoding(Excerpt),
    #[error("the query parameter {0} occurs several times with different values")]
    ContradictoryParameter(&'static str),
    #[error("unknown query parameter {name}; {}", allowed(.known))]
    UnknownParameter { name: Excerpt, known: &'static [&'static str] },
    #[error("invalid {name}: {rule}")]
    InvalidValue { name: &'static str, rule: String },
    #[error("the server is overloaded: too many requests wait to be stored; try again later")]
    Overloaded,
    #[error("too many requests are in progress; try again later")]
    TooManyRequests,
    #[error("too many requests of your address are in progress; wait for their answers")]
    TooManyRequestsOfAddress,
    #[error("the body arrives too slowly; send it faster or in parts")]
    BodyTooSlow,
    #[error("the database does not answer now; nothing was read or stored; try again later")]
    DatabaseDown,
    #[error("internal error; the log of the server has the details")]
    Internal,
    #[error("the database cannot be read now; try again later")]
    ReadFailed(FailureCause),
    #[error("the request may not have been carried out; check the result, and try again")]
    WriteFailed(FailureCause),

    // Access and limits.
    #[error(
        "a token is needed: send it in the header Authorization: Bearer TOKEN; the operator creates one with \
         `grid-batch token create`"
    )]
    NotAuthenticated,
    #[error(
        "the token is invalid: it is unknown, was revoked, has expired or cannot be read; ask the \
         operator for a new one"
    )]
    InvalidToken,
    #[error(
        "Client is not authorized: send the token of a key that the node accepts, in the header \
         Authorization: Bearer Cylinder:TOKEN, as clients of Splinter and `grid-batch submit --key FILE` do"
    )]
    NoLedgerKey,
    #[error("Client is not authorized: the node of the service does not accept its key")]
    KeyRefused,
    #[error(
        "the node of the service cannot be asked now whether it accepts the key; try again later"
    )]
    KeyNotChecked,
    #[error("too many requests from your address had invalid tokens; try again later")]
    TooManyWrongTokens(Duration),
    #[error("the token does not have the scope {0}, which this request needs")]
    MissingScope(AccessScope),
    #[error("the token is not for the service {id}", id = Excerpt::of(.0.as_str()))]
    ServiceOfOthers(ServiceId),
    #[error(
        "this request is about all services, and the token is only for some; name one of them in \
         service_id, if the request has it, or use a token for all services"
    )]
    OnlyForAllServices,
    #[error("the client sends more batches a second than it may; try again later")]
    RateOfClient(Duration),
    #[error(
        "the service {id} gets more batches a second than it may; try again later",
        id = Excerpt::of(.service_id.as_str())
    )]
    RateOfService { service_id: ServiceId, wait: Duration },
    #[error(
        "the signers of the batches declare more addresses a second than they may; declare fewer, such as an \
         address prefix in place of many addresses, or try again later"
    )]
    RateOfAddresses(Duration),
    #[error("{conflict}")]
    QueueFull { conflict: BatchConflict, wait: Duration },
    #[error("{conflict}")]
    GasAdminFull { conflict: Box<WithdrawalConflict>, wait: Duration },

    // Batches and their statuses.
    #[error("batches are not accepted here; send withdrawals with POST /withdrawals")]
    BatchesNotServed,
    #[error(
        "the Content-Type must be application/octet-stream, {0}; with curl, use \
         -H 'Content-Type: application/octet-stream' --data-binary @FILE"
    )]
    BatchesContentType(OtherContentType),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    InvalidServiceId(#[from] ServiceIdError),
    #[error("the service {id} is not served here: {rule}", id = Excerpt::of(.id.as_str()))]
    RefusedService { id: ServiceId, rule: String },
    #[error(
        "batches for the service {id} are not accepted here; use a service that intake.services allows, \
         or have the operator add it",
        id = Excerpt::of(.0.as_str())
    )]
    ServiceNotAllowed(ServiceId),
    #[error(
        "batches signed by the key {0} are not accepted here; sign them with a key that intake.signers \
         allows, or have the operator add it"
    )]
    SignerNotAllowed(SignerId),
    #[error(
        "batches without a signer are not accepted here, because intake.signers allows only some; have the \
         operator remove it"
    )]
    NoSigner,
    #[error(
        "the ledger does not have the service {id}: {reason}; correct the id, or create the service and \
         send the batches again",
        id = Excerpt::of(.id.as_str())
    )]
    UnknownService { id: ServiceId, reason: String },
    #[error("the batches are not proved to be new: {0}")]
    NotProvedNew(String),
    #[error(transparent)]
    BatchConflict(#[from] BatchConflict),
    #[error("the batches may not have been stored; send them again: each is stored only once")]
    BatchesNotStored,
    #[error(
        "the Content-Type must be application/json, {0}; with curl, use -H 'Content-Type: application/json'"
    )]
    IdsContentType(OtherContentType),
    #[error("the body must be a JSON array of at least one batch id")]
    InvalidIdList,
    #[error("the query has no id; send one batch id, or several separated by commas")]
    MissingIds,
    #[error("more than {limit} batch ids; send them in several requests")]
    TooManyIds { limit: usize },
    #[error(transparent)]
    InvalidBatchId(#[from] ItemIdError),
    #[error(transparent)]
    InvalidIdPrefix(#[from] ItemIdPrefixError),
    #[error("no batch with the id {0} is stored, or none for this service")]
    BatchNotFound(String),
    #[error("{id:.32} names {count} batches; give more characters or another service: {named}")]
    AmbiguousId { id: String, count: usize, named: String },
    #[error("the service {id} never had a batch", id = Excerpt::of(.0.as_str()))]
    ServiceNotFound(ServiceId),
    #[error("invalid label: {0}")]
    InvalidLabel(#[from] BatchLabelError),
    #[error("the request has two different labels; send one")]
    DifferentLabels,
    #[error("the batch {id} is stored for {services} services; choose one with service_id")]
    SeveralServices { id: String, services: usize },

    // The interfaces of ledgers.
    #[error("no node of the ledger answers now; try again later")]
    NodeUnavailable,
    #[error("the node of the ledger does not answer in time; try again later")]
    NodeTimedOut,
    #[error("scabbard service {service} on circuit {circuit} not found")]
    NoScabbardService { circuit: String, service: String },
    #[error(
        "send an Authorization header, as clients of Splinter do, or the Content-Type \
         application/octet-stream"
    )]
    ScabbardClient,
    #[error("{0}")]
    ProtocolVersion(String),
    #[error("No batch IDs specified")]
    MissingScabbardIds,

    // Events.
    #[error("{0}")]
    InvalidEventCursor(String),
    #[error(
        "events after this cursor are not kept any more, or the database went back to an earlier state; the \
         link begins with the oldest events"
    )]
    EventsRemoved { link: String },
    #[error(
        "too many requests wait for events, of all clients or of this one; try again later, or \
         read pages without waiting"
    )]
    TooManyEventListeners,
    #[error("there is no such webhook")]
    WebhookNotFound,
    #[error("the maximum number of webhooks is reached; remove one that is not needed")]
    TooManyWebhooks,

    // Withdrawals and rewards.
    #[error("withdrawals are not accepted here, because no pools are configured")]
    WithdrawalsNotServed,
    #[error(
        "the Content-Type must be application/json, {0}; with curl, use -H 'Content-Type: application/json'"
    )]
    JsonContentType(OtherContentType),
    #[error("the body is not a valid JSON object: {0}")]
    InvalidJsonObject(String),
    #[error(
        "the body is longer than {limit} bytes, and a request about one withdrawal or reward needs much \
         less; {}",
        what_to_send(.known)
    )]
    FieldsTooLong { limit: usize, known: &'static [&'static str] },
    #[error("unknown field {name}; {}", allowed(.known))]
    UnknownField { name: Excerpt, known: &'static [&'static str] },
    #[error("an idempotency key must have 1 to 255 characters and no control characters")]
    InvalidIdempotencyKey,
    #[error("the request has two different idempotency keys; send one")]
    DifferentIdempotencyKeys,
    #[error(transparent)]
    InvalidShortId(#[from] ShortIdError),
    #[error("there is no withdrawal {0}")]
    WithdrawalNotFound(WithdrawalId),
    #[error("there is no reward {0}")]
    RewardNotFound(RewardId),
    #[error(
        "this idempotency key was used for another withdrawal, {}: {} {} from {} to {}",
        .stored.id, .stored.kind, .stored.amount, .stored.pool, .stored.beneficiary
    )]
    WithdrawalConflict { stored: Box<Withdrawal>, link: String },
    #[error(
        "this idempotency key was used for another reward, {}: {} from {}, once_per_member {}",
        .stored.id, .stored.amount, .stored.pool, .stored.once_per_member
    )]
    RewardConflict { stored: Box<Reward>, link: String },
    #[error(transparent)]
    NotAccepted(WithdrawalConflict),
    #[error("this member has a withdrawal for this reward already: {link}")]
    AlreadyPaid { link: String },
    #[error("{rule}")]
    BeneficiaryNotAllowed { rule: String },
    #[error(transparent)]
    PaymentLimit(#[from] PaymentLimitError),
    #[error("only a failed withdrawal can be retried; this one is {state}")]
    NotFailed { state: &'static str },
    #[error("the withdrawal has ended and cannot be cancelled: it is {state}")]
    AlreadyEnded { state: &'static str },
    #[error(
        "the withdrawal may not have been scheduled; check /withdrawals/{0}, or send the request \
         again if it had an idempotency key"
    )]
    NotScheduled(WithdrawalId),

    // Operators.
    #[error(transparent)]
    ActionRefused(ActionRefusal),
    #[error("there is no such {kind}")]
    UnknownTarget { kind: &'static str },
}

impl ApiError {
    /// The answer if the database stops answering while it is read.
    pub(crate) fn read_interrupted() -> Self {
        Self::ReadFailed(FailureCause::default())
    }

    /// The answer if the database stops answering while it is written.
    pub(crate) fn write_interrupted() -> Self {
        Self::WriteFailed(FailureCause::default())
    }

    /// Logs why reading failed. The client does not see the cause.
    pub(crate) fn read_failed(error: BatchError) -> Self {
        warn!(error:%; "reading from the store failed");
        Self::ReadFailed(FailureCause::of(&error))
    }

    /// Logs why writing failed. The client does not see the cause.
    pub(crate) fn write_failed(error: BatchError) -> Self {
        warn!(error:%; "writing to the store failed");
        Self::WriteFailed(FailureCause::of(&error))
    }
}

/// Why the store failed. It is in no answer over HTTP: clients do not see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FailureCause(pub(crate) Option<String>);

impl FailureCause {
    fn of(error: &BatchError) -> Self {
        Self(Some(error.to_string()))
    }
}

fn what_to_send(known: &[&str]) -> String {
    match known {
        [] => "send an empty body".to_owned(),
        known => format!("send each one in a request of its own, with only {}", known.join(", ")),
    }
}

fn allowed(known: &[&str]) -> String {
    match known {
        [] => "none is allowed here".to_owned(),
        known => format!("allowed: {}", known.join(", ")),
    }
}
