use std::{fmt::Display, time::Duration};

use grid_batch_core::BatchError;
use grid_batch_core::ledger::{Outcome, SubmissionAnswer};

use crate::node::NodeError;

/// The result of one step of an attempt. `Err` ends the attempt with this answer.
pub(super) type SendResult<T> = Result<T, SubmissionAnswer>;

pub(super) fn accepted() -> SubmissionAnswer {
    SubmissionAnswer { outcome: Outcome::Accepted, status: None, message: None, retry_after: None }
}

pub(super) fn committed() -> SubmissionAnswer {
    SubmissionAnswer { outcome: Outcome::Committed, ..accepted() }
}

pub(super) fn rejected(reason: impl Display) -> SubmissionAnswer {
    SubmissionAnswer::without_response(Outcome::Rejected, reason)
}

pub(super) fn refused(reason: impl Display) -> SubmissionAnswer {
    SubmissionAnswer::without_response(Outcome::Refused, reason)
}

pub(super) fn refused_batch(reason: impl Display) -> SubmissionAnswer {
    SubmissionAnswer::without_response(Outcome::RefusedBatch, reason)
}

pub(super) fn not_sent(reason: impl Display) -> SubmissionAnswer {
    SubmissionAnswer::without_response(Outcome::NotSent, reason)
}

pub(super) fn ambiguous(reason: impl Display) -> SubmissionAnswer {
    SubmissionAnswer::without_response(Outcome::Ambiguous, reason)
}

pub(super) fn parked(reason: impl Display, retry_after: Duration) -> SubmissionAnswer {
    SubmissionAnswer {
        retry_after: Some(retry_after),
        ..SubmissionAnswer::without_response(Outcome::Parked, reason)
    }
}

/// The store failed before anything was sent.
pub(super) fn store_failed(error: BatchError) -> SubmissionAnswer {
    SubmissionAnswer::without_response(
        Outcome::NotSent,
        format_args!("the signing store failed: {error}"),
    )
}

/// A request to the node failed before anything was sent.
pub(super) fn node_failed(error: NodeError) -> SubmissionAnswer {
    match error {
        NodeError::Busy { .. } => node_answer(Outcome::Busy, &error),
        NodeError::InvalidUrl(_) | NodeError::Status { status: 300..500, .. } => {
            node_answer(Outcome::Refused, &error)
        }
        _ => node_answer(Outcome::NotSent, &error),
    }
}

/// This outcome, with the details of the node's error.
pub(super) fn node_answer(outcome: Outcome, error: &NodeError) -> SubmissionAnswer {
    let (status, retry_after) = match error {
        NodeError::Busy { status, retry_after, .. } => (Some(*status), *retry_after),
        NodeError::Status { status, .. } => (Some(*status), None),
        _ => (None, None),
    };
    SubmissionAnswer { status, retry_after, ..SubmissionAnswer::without_response(outcome, error) }
}
