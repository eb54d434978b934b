use axum::http::StatusCode;
use grid_batch_withdrawals::{
    PaymentLimitError, Reward, RewardId, ShortIdError, Withdrawal, WithdrawalConflict, WithdrawalId,
};

use crate::{
    http::{Refusal, Refused, refusals},
    withdrawals::Queued,
};

refusals! {
    /// A request about withdrawals, rewards or transactions is refused.
    pub(crate) enum WithdrawalRequestError {
        #[error("withdrawals are not accepted here, because no pools are configured")]
        [NOT_FOUND, 1020, "Not Served Here"]
        WithdrawalsNotServed,
        #[error("transactions are not accepted here, because no accounts are configured")]
        [NOT_FOUND, 1020, "Not Served Here"]
        TransactionsNotServed,
        #[error("an idempotency key must have 1 to 255 characters and no control characters")]
        [BAD_REQUEST, 1024, "Invalid Idempotency Key"]
        InvalidIdempotencyKey,
        #[error("the request has two different idempotency keys; send one")]
        [BAD_REQUEST, 1024, "Invalid Idempotency Key"]
        DifferentIdempotencyKeys,
        #[error("there is no {kind} {id}")]
        [NOT_FOUND, 1025, "Unknown Id"]
        QueuedNotFound { kind: Queued, id: WithdrawalId },
        #[error("there is no reward {0}")]
        [NOT_FOUND, 1025, "Unknown Id"]
        RewardNotFound(RewardId),
        #[error(
            "this idempotency key was used for another withdrawal, {}: {} {} from {} to {}",
            .stored.id, .stored.kind, .stored.amount, .stored.pool, .stored.beneficiary
        )]
        [CONFLICT, 1026, "Idempotency Conflict"]
        WithdrawalConflict { stored: Box<Withdrawal>, link: String },
        #[error("this idempotency key was used for another transaction, {id}")]
        [CONFLICT, 1026, "Idempotency Conflict"]
        TransactionConflict { id: WithdrawalId, link: String },
        #[error(
            "this idempotency key was used for another reward, {}: {} from {}, once_per_member {}",
            .stored.id, .stored.amount, .stored.pool, .stored.once_per_member
        )]
        [CONFLICT, 1026, "Idempotency Conflict"]
        RewardConflict { stored: Box<Reward>, link: String },
        #[error("this member has a withdrawal for this reward already: {link}")]
        [CONFLICT, 1027, "Already Paid"]
        AlreadyPaid { link: String },
        #[error("{rule}")]
        [FORBIDDEN, 1040, "Beneficiary Not Allowed"]
        BeneficiaryNotAllowed { rule: String },
        #[error("only a failed {kind} can be retried; this one is {state}")]
        [CONFLICT, 1028, "Wrong State"]
        NotFailed { kind: Queued, state: &'static str },
        #[error("the {kind} has ended and cannot be cancelled: it is {state}")]
        [CONFLICT, 1028, "Wrong State"]
        AlreadyEnded { kind: Queued, state: &'static str },
        #[error("the fees of the {kind} cannot be raised: it is {state}, and does not wait to be mined")]
        [CONFLICT, 1028, "Wrong State"]
        NotSent { kind: Queued, state: &'static str },
        #[error(
            "the {kind} may not have been scheduled; check {}, or send the request again if it had an \
             idempotency key",
            .kind.path(id)
        )]
        [SERVICE_UNAVAILABLE, 1012, "Store Unavailable"]
        NotScheduled { kind: Queued, id: WithdrawalId },
        #[error("{rule}")]
        [FORBIDDEN, 1043, "Transaction Not Allowed"]
        TransactionNotAllowed { rule: String },
        #[error("the body is longer than {limit} bytes, which no transaction needs")]
        [PAYLOAD_TOO_LARGE, 1003, "Body Too Long"]
        TransactionTooLong { limit: usize },
    }
    impl {
        fn link(&self) -> Option<&str> {
            match self {
                Self::WithdrawalConflict { link, .. }
                | Self::TransactionConflict { link, .. }
                | Self::RewardConflict { link, .. }
                | Self::AlreadyPaid { link } => Some(link),
                _ => None,
            }
        }
    }
}

impl Refused for ShortIdError {
    fn refusal(&self) -> Refusal {
        Refusal::INVALID_ID
    }
}

impl Refused for WithdrawalConflict {
    fn refusal(&self) -> Refusal {
        match self {
            Self::QueueFull { .. } => Refusal::QUEUE_FULL,
            Self::ServiceLocked { .. } => Refusal::STORE_UNAVAILABLE,
            Self::OtherTerms { .. } => {
                Refusal::new(StatusCode::CONFLICT, 1026, "Idempotency Conflict")
            }
            Self::PaymentLimit(error) => error.refusal(),
        }
    }
}

impl Refused for PaymentLimitError {
    fn refusal(&self) -> Refusal {
        match self {
            Self::Day { .. } => Refusal::new(StatusCode::TOO_MANY_REQUESTS, 1042, "Daily Limit"),
            _ => Refusal::new(StatusCode::FORBIDDEN, 1041, "Amount Not Allowed"),
        }
    }
}
