use std::{fmt::Display, time::Duration};

use grid_batch_core::{BatchError, Outcome, SubmissionAnswer};

use crate::node::NodeError;

/// What a step of a sending gives; or how the sending ends with that step.
pub(crate) type Step<T> = Result<T, SubmissionAnswer>;

pub(crate) fn accepted() -> SubmissionAnswer {
    SubmissionAnswer { outcome: Outcome::Accepted, status: None, message: None, retry_after: None }
}

pub(crate) fn rejected(reason: impl Display) -> SubmissionAnswer {
    because(Outcome::Rejected, reason)
}

pub(crate) fn refused(reason: impl Display) -> SubmissionAnswer {
    because(Outcome::Refused, reason)
}

pub(crate) fn unknown(reason: impl Display) -> SubmissionAnswer {
    because(Outcome::Ambiguous, reason)
}

pub(crate) fn parked(reason: impl Display, retry_after: Duration) -> SubmissionAnswer {
    SubmissionAnswer { retry_after: Some(retry_after), ..because(Outcome::Parked, reason) }
}

/// The store failed before anything was sent.
pub(crate) fn without_store(error: BatchError) -> SubmissionAnswer {
    because(Outcome::NotSent, format_args!("the store: {error}"))
}

/// A question failed before anything was sent.
pub(crate) fn without_node(error: NodeError) -> SubmissionAnswer {
    match error {
        NodeError::Busy { .. } => of_node(Outcome::Busy, &error),
        NodeError::Address(_) | NodeError::Status { status: 300..500, .. } => {
            of_node(Outcome::Refused, &error)
        }
        _ => of_node(Outcome::NotSent, &error),
    }
}

/// This outcome, with all that the node said.
pub(crate) fn of_node(outcome: Outcome, error: &NodeError) -> SubmissionAnswer {
    let (status, retry_after) = match error {
        NodeError::Busy { status, retry_after, .. } => (Some(*status), *retry_after),
        NodeError::Status { status, .. } => (Some(*status), None),
        _ => (None, None),
    };
    SubmissionAnswer { status, retry_after, ..because(outcome, error) }
}

fn because(outcome: Outcome, reason: impl Display) -> SubmissionAnswer {
    let message = Some(reason.to_string());
    SubmissionAnswer { outcome, status: None, message, retry_after: None }
}
