use grid_batch_core::SubmissionAnswer;
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome, Payment};

use crate::sender::answer;

/// What is to be done for a withdrawal, as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Course<'a> {
    /// It has no nonce: take one, and sign.
    First,
    /// Go on with the nonce that it has.
    Again(&'a AssignedNonce),
    /// Nothing.
    Ended(SubmissionAnswer),
}

pub(crate) fn course_of(payment: &Payment) -> Course<'_> {
    let Some(open) = &payment.nonce else { return first(payment) };
    match open.outcome {
        None => Course::Again(open),
        Some(NonceOutcome::UsedElsewhere) => first(payment),
        // The one who reads statuses ends it.
        Some(NonceOutcome::Withdrawn { .. }) => Course::Ended(answer::accepted()),
        Some(NonceOutcome::Reverted) => rejected("the pool refused the withdrawal"),
        Some(NonceOutcome::Cancelled) => rejected("the withdrawal was cancelled"),
    }
}

fn first(payment: &Payment) -> Course<'_> {
    if payment.cancel_requested {
        return rejected("cancelled before anything was signed");
    }
    Course::First
}

fn rejected(reason: &str) -> Course<'static> {
    Course::Ended(answer::rejected(reason))
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{Outcome, Timestamp};
    use grid_batch_withdrawals::WithdrawalId;

    use super::*;

    fn payment(cancel_requested: bool, open: Option<Option<NonceOutcome>>) -> Payment {
        Payment {
            withdrawal_id: WithdrawalId::from_bytes([1; 16]),
            generation: 1,
            pool: String::new(),
            beneficiary: String::new(),
            amount: String::new(),
            cancel_requested,
            nonce: open.map(|outcome| AssignedNonce {
                nonce: 7,
                generation: 1,
                assigned_at: Timestamp::default(),
                note: None,
                foreign_hash: None,
                outcome,
                transactions: Vec::new(),
            }),
        }
    }

    #[test]
    fn a_nonce_is_taken_where_there_is_none_or_it_was_lost() {
        assert_eq!(course_of(&payment(false, None)), Course::First);
        assert_eq!(
            course_of(&payment(false, Some(Some(NonceOutcome::UsedElsewhere)))),
            Course::First
        );
    }

    #[test]
    fn what_is_cancelled_before_anything_is_signed_ends() {
        for open in [None, Some(Some(NonceOutcome::UsedElsewhere))] {
            let payment = payment(true, open);
            let Course::Ended(answer) = course_of(&payment) else { panic!("{payment:?}") };
            assert_eq!(answer.outcome, Outcome::Rejected, "{payment:?}");
        }
    }

    #[test]
    fn an_open_nonce_is_gone_on_with_cancelled_or_not() {
        for cancelled in [false, true] {
            let payment = payment(cancelled, Some(None));
            assert!(matches!(course_of(&payment), Course::Again(open) if open.nonce == 7));
        }
    }

    #[test]
    fn nothing_is_sent_for_what_has_ended() {
        let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
        for (cancelled, open, outcome) in [
            (false, Some(Some(NonceOutcome::Reverted)), Outcome::Rejected),
            (true, Some(Some(NonceOutcome::Cancelled)), Outcome::Rejected),
            (true, Some(Some(withdrawn)), Outcome::Accepted),
        ] {
            let payment = payment(cancelled, open);
            let Course::Ended(answer) = course_of(&payment) else { panic!("{payment:?}") };
            assert_eq!(answer.outcome, outcome, "{payment:?}");
        }
    }
}
