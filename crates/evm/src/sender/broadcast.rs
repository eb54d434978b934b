use grid_batch_core::{Outcome, SubmissionAnswer};
use grid_batch_withdrawals::NewSignedTransaction;
use log::warn;

use crate::{
    node::NodeError,
    refusal::Refusal,
    sender::{answer, task::Task},
};

impl Task<'_> {
    /// Sends what is signed and stored.
    pub(crate) async fn broadcast(&self, signed: &NewSignedTransaction) -> SubmissionAnswer {
        let sent = self.node.send_raw(&signed.bytes).await;
        let error = sent.as_ref().err().map(ToString::to_string);
        if let Err(error) = self.shared.records.mark_sent(signed.hash, error).await {
            // It was sent all the same, and what follows can do without the note.
            warn!(service:% = self.service_id(), error:%; "the store does not note what was sent");
        }
        match sent {
            Ok(_) => answer::accepted(),
            Err(error) => self.not_taken(&error),
        }
    }

    fn not_taken(&self, error: &NodeError) -> SubmissionAnswer {
        match outcome_of(error) {
            Outcome::Accepted => answer::accepted(),
            Outcome::Parked => self.parked(error),
            outcome => answer::of_node(outcome, error),
        }
    }
}

/// What came of sending, where the answer is not simply its hash.
fn outcome_of(error: &NodeError) -> Outcome {
    let refusal = match error {
        NodeError::Rpc { message, .. } => Refusal::of(message),
        NodeError::Address(_) => return Outcome::Refused,
        NodeError::NotSent(_) => return Outcome::NotSent,
        _ => return Outcome::Ambiguous,
    };
    match refusal {
        // What replaces too cheaply stands behind another with its nonce.
        Refusal::Known | Refusal::ReplacementUnderpriced => Outcome::Accepted,
        Refusal::FeeTooLow | Refusal::Funds => Outcome::Parked,
        // The node has no room, or lags behind: it certainly did not take it.
        Refusal::NonceTooHigh | Refusal::Busy => Outcome::Busy,
        // One of ours was mined, or somebody else used the nonce: the readers find out.
        Refusal::NonceTooLow | Refusal::Unsure => Outcome::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_certainly_did_not_arrive_was_not_sent() {
        let text = String::new;
        for (error, outcome) in [
            (NodeError::Address(text()), Outcome::Refused),
            (NodeError::NotSent(text()), Outcome::NotSent),
            (NodeError::NoAnswer(text()), Outcome::Ambiguous),
            (NodeError::Busy { status: 429, retry_after: None, text: text() }, Outcome::Ambiguous),
            (NodeError::Status { status: 401, text: text() }, Outcome::Ambiguous),
            (NodeError::Answer(text()), Outcome::Ambiguous),
            (NodeError::Rpc { code: 3, message: text(), data: None }, Outcome::Ambiguous),
        ] {
            assert_eq!(outcome_of(&error), outcome, "{error:?}");
        }
    }
}
