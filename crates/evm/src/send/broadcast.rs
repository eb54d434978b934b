use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_withdrawals::NewSignedTransaction;
use log::warn;

use super::{answer, attempt::SendAttempt};
use crate::node::{NodeError, Refusal};

impl SendAttempt<'_> {
    /// Sends a transaction that is signed and stored.
    pub(super) async fn broadcast(&self, signed: &NewSignedTransaction) -> SubmissionAnswer {
        let context = self.context;
        context.sent_times.record(signed.hash, context.monotonic());
        let sent = match self.node.send_raw_transaction(&signed.bytes).await {
            Err(error) if self.has_despite_refusal(signed, &error).await => Ok(()),
            sent => sent.map(drop),
        };
        let error = sent.as_ref().err().map(ToString::to_string);
        if let Err(error) = context.store.mark_all_sent(&[(signed.hash, error)]).await {
            // The transaction was sent, and nothing depends on this record.
            warn!(service:% = self.service_id(), error:%; "cannot record that a transaction was sent");
        }
        match sent {
            Ok(()) => answer::accepted(),
            Err(error @ NodeError::Rpc { .. }) => self.answer_to_refusal(signed, &error).await,
            Err(error) => answer::node_answer(outcome_of(&error), &error),
        }
    }

    /// Whether the node has the transaction that it refuses. Ganache says of a known one that its fee is too low.
    async fn has_despite_refusal(&self, signed: &NewSignedTransaction, error: &NodeError) -> bool {
        let is_ambiguous = Refusal::of(error) == Refusal::FeeTooLow;
        is_ambiguous && self.node.has_transaction(signed.hash.into()).await == Ok(true)
    }

    async fn answer_to_refusal(
        &self,
        signed: &NewSignedTransaction,
        error: &NodeError,
    ) -> SubmissionAnswer {
        let refusal = Refusal::of(error);
        if let Some(reason) = refusal.lasting_reason() {
            return self.refused_for_good(signed, reason, error).await;
        }
        match refusal {
            // Another transaction with this nonce is pending at the node.
            Refusal::Known | Refusal::ReplacementUnderpriced => answer::accepted(),
            Refusal::FeeTooLow => self.refused_fee(signed, error).await,
            Refusal::InsufficientFunds => self.parked(error),
            // The node lags behind, and certainly did not accept the transaction.
            Refusal::NonceTooHigh => answer::node_answer(Outcome::Busy, error),
            Refusal::NodeBusy => self.unless_known(signed, Outcome::Busy, error).await,
            // The nonce was used by us or by another program; the readers find out which.
            Refusal::NonceTooLow => answer::ambiguous(error),
            _ => self.unless_known(signed, Outcome::Refused, error).await,
        }
    }
}

/// The outcome of a transaction if the node returned an error.
fn outcome_of(error: &NodeError) -> Outcome {
    match error {
        NodeError::InvalidUrl(_) => Outcome::Refused,
        NodeError::NotSent(_) => Outcome::NotSent,
        _ => Outcome::Ambiguous,
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
        ] {
            assert_eq!(outcome_of(&error), outcome, "{error:?}");
        }
    }
}
