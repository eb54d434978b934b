use grid_batch_core::ledger::SubmissionAnswer;
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome, Payment};

use super::answer;

/// What an attempt has to do for a withdrawal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendPlan<'a> {
    /// Assign a nonce, sign and send.
    AssignNonce,
    /// Send again with the nonce that it has.
    Resend(&'a AssignedNonce),
    /// Reject it, because it is cancelled and, according to the store, nothing was signed.
    Cancel,
    /// Nothing: this is the answer.
    Finished(SubmissionAnswer),
}

impl<'a> SendPlan<'a> {
    pub(super) fn for_payment(payment: &'a Payment) -> Self {
        let Some(assigned) = &payment.nonce else { return Self::without_nonce(payment) };
        match assigned.outcome {
            None => Self::Resend(assigned),
            Some(NonceOutcome::UsedElsewhere) => Self::without_nonce(payment),
            Some(
                NonceOutcome::Withdrawn { .. }
                | NonceOutcome::Executed { .. }
                | NonceOutcome::WithoutEvent,
            ) => Self::Finished(answer::committed()),
            Some(NonceOutcome::Reverted) => Self::rejected(assigned, "its transaction failed"),
            Some(NonceOutcome::Cancelled) => Self::rejected(assigned, "it was cancelled"),
        }
    }

    fn without_nonce(payment: &Payment) -> Self {
        if payment.cancel_requested {
            return Self::Cancel;
        }
        Self::AssignNonce
    }

    /// The note contains the block and the pool's reason.
    fn rejected(assigned: &AssignedNonce, reason: &str) -> Self {
        Self::Finished(answer::rejected(assigned.note.as_deref().unwrap_or(reason)))
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::Timestamp;
    use grid_batch_core::ledger::Outcome;
    use grid_batch_withdrawals::WithdrawalId;

    use super::*;

    fn payment(cancel_requested: bool, nonce: Option<Option<NonceOutcome>>) -> Payment {
        Payment {
            withdrawal_id: WithdrawalId::from_bytes([1; 16]),
            generation: 1,
            pool: String::new(),
            beneficiary: String::new(),
            amount: String::new(),
            call: None,
            cancel_requested,
            speed_up_at: None,
            is_restored: false,
            nonce: nonce.map(|outcome| AssignedNonce {
                nonce: 7,
                generation: 1,
                assigned_at: Timestamp::default(),
                note: None,
                foreign_hash: None,
                outcome,
                final_transaction: None,
                transactions: Vec::new(),
            }),
        }
    }

    #[test]
    fn nonce_is_assigned_if_none_is_usable() {
        assert_eq!(SendPlan::for_payment(&payment(false, None)), SendPlan::AssignNonce);
        assert_eq!(
            SendPlan::for_payment(&payment(false, Some(Some(NonceOutcome::UsedElsewhere)))),
            SendPlan::AssignNonce
        );
    }

    #[test]
    fn cancelled_without_a_nonce_is_rejected() {
        for nonce in [None, Some(Some(NonceOutcome::UsedElsewhere))] {
            assert_eq!(SendPlan::for_payment(&payment(true, nonce)), SendPlan::Cancel);
        }
    }

    #[test]
    fn open_nonce_is_used_again() {
        for cancel_requested in [false, true] {
            let payment = payment(cancel_requested, Some(None));
            assert!(
                matches!(SendPlan::for_payment(&payment), SendPlan::Resend(assigned) if assigned.nonce == 7)
            );
        }
    }

    #[test]
    fn finished_withdrawal_is_not_sent() {
        let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
        for (cancel_requested, nonce, outcome) in [
            (false, Some(Some(NonceOutcome::Reverted)), Outcome::Rejected),
            (true, Some(Some(NonceOutcome::Cancelled)), Outcome::Rejected),
            (true, Some(Some(withdrawn)), Outcome::Committed),
        ] {
            let payment = payment(cancel_requested, nonce);
            let SendPlan::Finished(answer) = SendPlan::for_payment(&payment) else {
                panic!("{payment:?}")
            };
            assert_eq!(answer.outcome, outcome, "{payment:?}");
        }
    }
}
