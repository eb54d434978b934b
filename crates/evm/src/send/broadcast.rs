use grid_batch_core::{Outcome, SubmissionAnswer};
use grid_batch_withdrawals::NewSignedTransaction;
use log::warn;

use super::{answer, attempt::SendAttempt};
use crate::node::{NodeError, Refusal};

impl SendAttempt<'_> {
    /// Sends a transaction that is signed and stored.
    pub(super) async fn broadcast(&self, signed: &NewSignedTransaction) -> SubmissionAnswer {
        let context = self.context;
        context.sent_times.record(signed.hash, context.clock.monotonic());
        let sent = self.node.send_raw_transaction(&signed.bytes).await;
        let error = sent.as_ref().err().map(ToString::to_string);
        if let Err(error) = context.store.mark_sent(signed.hash, error).await {
            // The transaction was sent; nothing depends on this record.
            warn!(service:% = self.service_id(), error:%; "cannot record that a transaction was sent");
        }
        match sent {
            Ok(_) => answer::accepted(),
            Err(error) => self.answer_to_error(&error),
        }
    }

    fn answer_to_error(&self, error: &NodeError) -> SubmissionAnswer {
        match outcome_of(error) {
            Outcome::Accepted => answer::accepted(),
            Outcome::Parked => self.parked(error),
            outcome => answer::node_answer(outcome, error),
        }
    }
}

/// The outcome of a transaction that the node did not simply accept.
fn outcome_of(error: &NodeError) -> Outcome {
    let refusal = match error {
        NodeError::Rpc { message, .. } => Refusal::from_message(message),
        NodeError::InvalidUrl(_) => return Outcome::Refused,
        NodeError::NotSent(_) => return Outcome::NotSent,
        _ => return Outcome::Ambiguous,
    };
    match refusal {
        // Another transaction with this nonce is pending at the node.
        Refusal::Known | Refusal::ReplacementUnderpriced => Outcome::Accepted,
        Refusal::FeeTooLow | Refusal::InsufficientFunds => Outcome::Parked,
        // The node is full or lags behind; it certainly did not take the transaction.
        Refusal::NonceTooHigh | Refusal::PoolFull => Outcome::Busy,
        // The nonce was used, by us or by another program: the readers find out.
        Refusal::NonceTooLow | Refusal::Unrecognized => Outcome::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_failures_are_not_ambiguous() {
        let text = String::new;
        for (error, outcome) in [
            (NodeError::InvalidUrl(text()), Outcome::Refused),
            (NodeError::NotSent(text()), Outcome::NotSent),
            (NodeError::NoResponse(text()), Outcome::Ambiguous),
            (NodeError::Busy { status: 429, retry_after: None, text: text() }, Outcome::Ambiguous),
            (NodeError::Status { status: 401, text: text() }, Outcome::Ambiguous),
            (NodeError::InvalidResponse(text()), Outcome::Ambiguous),
            (NodeError::Rpc { code: 3, message: text(), data: None }, Outcome::Ambiguous),
        ] {
            assert_eq!(outcome_of(&error), outcome, "{error:?}");
        }
    }
}
