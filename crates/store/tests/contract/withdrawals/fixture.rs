//! Test withdrawals, and helpers that take them to an end.

use grid_batch_core::batches::{Change, ChangeOutcome, Event, LedgerStatus, Receipt};
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::{
    AheadCount, BatchAttempt, NewSignedTransaction, NonceOutcome, ScheduleOutcome,
    SignedTransaction, SigningStore, Withdrawal, WithdrawalConflict, WithdrawalDetails,
    WithdrawalId, WithdrawalKind, WithdrawalStore,
};

use crate::fixture::{StoreExt, TestStore, happened, service};

/// The gas admin of the withdrawals in most tests.
pub const ACCOUNT: &str = "eip155:1:0x0a";

pub fn withdrawal_id(number: u128) -> WithdrawalId {
    WithdrawalId::from_bytes(number.to_be_bytes())
}

/// A withdrawal with this gas admin.
pub fn withdrawal(account: &str, number: u128) -> Withdrawal {
    Withdrawal {
        id: withdrawal_id(number),
        service_id: service(account),
        kind: WithdrawalKind::Propose,
        reward_id: None,
        pool: "0xpool".to_owned(),
        beneficiary: format!("0xmember{number}"),
        amount: (1_000 + number).to_string(),
        idempotency_key: None,
        call: None,
        trace: None,
    }
}

/// A transaction with this nonce and maximum fee.
pub fn signed(nonce: u64, max_fee: u128) -> NewSignedTransaction {
    let mut hash = [7; 32];
    hash[..8].copy_from_slice(&nonce.to_be_bytes());
    hash[8..24].copy_from_slice(&max_fee.to_be_bytes());
    let bytes = format!("signed with {nonce} for {max_fee}").into_bytes();
    NewSignedTransaction { nonce, hash, bytes, max_fee, tip: 1, is_filler: false }
}

/// The current attempt of a taken batch.
pub fn attempt_of(taken: &TakenBatch) -> BatchAttempt {
    BatchAttempt {
        service_id: taken.service_id.clone(),
        batch_id: taken.batch_id,
        attempt_id: AttemptId { attempt: taken.attempt, epoch: taken.epoch },
    }
}

/// The answer to a withdrawal that was stored before.
pub const KNOWN: Result<ScheduleOutcome, WithdrawalConflict> = Ok(ScheduleOutcome::AlreadyStored);

pub fn is_stored(answer: &Result<ScheduleOutcome, WithdrawalConflict>) -> bool {
    matches!(answer, Ok(ScheduleOutcome::Stored { .. }))
}

/// Exactly so many are ahead.
pub fn exactly(count: u64) -> Option<AheadCount> {
    Some(AheadCount::exactly(count))
}

/// Shortcuts for what most tests do with withdrawals.
pub trait WithdrawalsExt {
    fn schedule_all(&self, withdrawals: &[Withdrawal]);
    fn details_of(&self, number: u128) -> WithdrawalDetails;
    fn sign(&self, taken: &TakenBatch, at_least: u64) -> Option<SignedTransaction>;
    fn take_and_sign(&self, account: &str) -> (TakenBatch, u64);
    fn close_as(&self, account: &str, nonce: u64, spent: NonceOutcome);
    fn reject(&self, taken: &TakenBatch, reason: &str);
    fn accept_and(&self, taken: &TakenBatch, status: LedgerStatus);
}

impl WithdrawalsExt for TestStore {
    /// Schedules withdrawals that are not stored yet.
    fn schedule_all(&self, withdrawals: &[Withdrawal]) {
        let answers = self.schedule(withdrawals).unwrap();
        assert_eq!(answers.len(), withdrawals.len());
        assert!(answers.iter().all(is_stored), "{answers:?}");
    }

    fn details_of(&self, number: u128) -> WithdrawalDetails {
        self.withdrawal(&withdrawal_id(number)).unwrap().unwrap()
    }

    /// Assigns a nonce and signs with a fee of 100.
    fn sign(&self, taken: &TakenBatch, at_least: u64) -> Option<SignedTransaction> {
        self.assign_nonce(&attempt_of(taken), at_least, &mut |nonce| Ok(signed(nonce, 100)))
            .unwrap()
    }

    /// Takes the account's next batch, signs for it, and returns the nonce.
    fn take_and_sign(&self, account: &str) -> (TakenBatch, u64) {
        let taken = self.take_one(account);
        let nonce = self.sign(&taken, 0).unwrap().signed.nonce;
        (taken, nonce)
    }

    fn close_as(&self, account: &str, nonce: u64, spent: NonceOutcome) {
        self.close_nonce(&service(account), nonce, &spent).unwrap();
    }

    /// Has the ledger reject the batch for this reason.
    fn reject(&self, taken: &TakenBatch, reason: &str) {
        let attempt = taken.attempt;
        let event = Event::Outcome { attempt, outcome: Outcome::Rejected };
        let reason =
            Receipt { transaction_id: None, error_message: reason.to_owned(), error_data: vec![] };
        let change = Change { receipts: vec![reason], ..happened(taken, event) };
        assert!(matches!(self.record_one(change), ChangeOutcome::Applied { .. }));
    }

    /// Has the ledger accept the batch and then report this status.
    fn accept_and(&self, taken: &TakenBatch, status: LedgerStatus) {
        self.outcome(taken, Outcome::Accepted);
        assert!(matches!(self.status(taken, status), ChangeOutcome::Applied { .. }));
    }
}
