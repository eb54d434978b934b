use grid_batch_core::ItemId;

use crate::{AssignedNonce, BatchAttempt, FinalTransaction, NonceOutcome, Payment};

/// The withdrawals after the first one of a gas admin. They may be signed before their turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowingPayments {
    /// The present attempt of the first withdrawal, and the present epoch of its claim.
    pub head: BatchAttempt,
    /// Whether the first withdrawal is under way: the ledger has accepted it, and it is not held. Otherwise nothing
    /// after it is signed.
    pub is_under_way: bool,
    /// The nonce after the highest one that was assigned or filled.
    pub next_nonce: u64,
    /// Whether a stored nonce must be settled before another one is assigned.
    pub has_unsettled: bool,
    /// The open withdrawals after it in their order, without those of parked pools.
    pub payments: Vec<FollowingPayment>,
    /// The parked pools whose first withdrawals are due. Such a withdrawal is taken only while no other one has a
    /// nonce, so nothing is signed ahead of one whose gate is open.
    pub due_pools: Vec<String>,
}

/// An open withdrawal that follows one under way, or has a lower nonce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowingPayment {
    /// Its batch.
    pub batch_id: ItemId,
    /// Whether an operator holds it.
    pub is_held: bool,
    /// What is to be paid, and what was signed for it.
    pub payment: Payment,
}

/// The final outcome of a nonce, with the note for operators and clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedNonce {
    /// The nonce.
    pub nonce: u64,
    /// What was observed.
    pub note: String,
    /// How the use of the nonce ended. `None`: only the note is stored.
    pub outcome: Option<NonceOutcome>,
    /// The transaction that used the nonce.
    pub transaction: Option<FinalTransaction>,
}

impl FollowingPayments {
    /// The withdrawals to sign next, in order. They end before the first one that must not be signed, so that no
    /// withdrawal gets a lower nonce than an earlier one.
    pub fn unsigned(&self) -> impl Iterator<Item = &FollowingPayment> {
        let undisturbed = self.payments.iter().take_while(|following| !following.is_obstacle());
        undisturbed.filter(|following| following.payment.nonce.is_none())
    }

    /// The signed withdrawals with open nonces, in order, with their nonces.
    pub fn in_flight(&self) -> impl Iterator<Item = (&FollowingPayment, &AssignedNonce)> {
        self.payments.iter().filter_map(|it| Some((it, it.payment.open_nonce()?)))
    }
}

impl FollowingPayment {
    /// Whether it must be left to its own attempt.
    fn is_obstacle(&self) -> bool {
        match &self.payment.nonce {
            None => self.is_held || self.payment.is_restored || self.payment.cancel_requested,
            Some(nonce) => nonce.outcome == Some(NonceOutcome::UsedElsewhere),
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::Timestamp;
    use grid_batch_core::ledger::AttemptId;

    use super::*;
    use crate::{AssignedNonce, WithdrawalId};

    fn following(number: u8, nonce: Option<Option<NonceOutcome>>) -> FollowingPayment {
        let nonce = nonce.map(|outcome| AssignedNonce {
            nonce: number.into(),
            generation: 1,
            assigned_at: Timestamp::default(),
            note: None,
            foreign_hash: None,
            outcome,
            final_transaction: None,
            transactions: Vec::new(),
        });
        let withdrawal_id = WithdrawalId::from_bytes([number; 16]);
        let payment = Payment {
            withdrawal_id,
            generation: 1,
            pool: String::new(),
            beneficiary: String::new(),
            amount: String::new(),
            call: None,
            cancel_requested: false,
            speed_up_at: None,
            is_restored: false,
            nonce,
        };
        let batch_id = withdrawal_id.batch_id(1);
        FollowingPayment { batch_id, is_held: false, payment }
    }

    fn unsigned(payments: Vec<FollowingPayment>) -> Vec<u8> {
        let head = BatchAttempt {
            service_id: "account".parse().unwrap(),
            batch_id: WithdrawalId::from_bytes([9; 16]).batch_id(1),
            attempt_id: AttemptId { attempt: 1, epoch: 1 },
        };
        let following = FollowingPayments {
            head,
            is_under_way: true,
            next_nonce: 1,
            has_unsettled: false,
            payments,
            due_pools: Vec::new(),
        };
        let number = |it: &FollowingPayment| it.payment.withdrawal_id.as_bytes()[0];
        following.unsigned().map(number).collect()
    }

    #[test]
    fn signed_ones_do_not_end_those_to_sign() {
        let reverted = Some(NonceOutcome::Reverted);
        let payments = vec![following(1, Some(None)), following(2, Some(reverted))];
        let payments = [payments, vec![following(3, None), following(4, None)]].concat();
        assert_eq!(unsigned(payments), [3, 4]);
    }

    #[test]
    fn those_to_sign_end_before_one_that_must_not_be_signed() {
        let mut held = following(2, None);
        held.is_held = true;
        assert_eq!(unsigned(vec![following(1, None), held, following(3, None)]), [1]);
        let mut restored = following(2, None);
        restored.payment.is_restored = true;
        assert_eq!(unsigned(vec![following(1, None), restored, following(3, None)]), [1]);
        let mut cancelled = following(1, None);
        cancelled.payment.cancel_requested = true;
        assert_eq!(unsigned(vec![cancelled, following(2, None)]), [0; 0]);
        let used_elsewhere = following(1, Some(Some(NonceOutcome::UsedElsewhere)));
        assert_eq!(unsigned(vec![used_elsewhere, following(2, None)]), [0; 0]);
    }
}
