//! The audit of transactions that are in several batches.

use std::slice;

use grid_batch_ledger_sim::{AuditedBatches, RandomBatches, StateAudit, StateOperation};
use grid_batch_protocol::{Batch, BatchBuilder, Transaction};

use crate::{
    batches::{id, key},
    ledgers::{Ledger, sawtooth},
};

/// A batch whose second transaction makes it invalid, another one with its first transaction, and one that
/// depends on that.
fn repeated_after_invalid() -> [Batch; 3] {
    let transaction = |operation: StateOperation, nonce: &str| {
        let transaction = StateOperation::transaction(&[operation]);
        let transaction = transaction.inputs(["5a7e01"]).outputs(["5a7e01"]).nonce(nonce);
        transaction.sign(&key(), &key().public_key())
    };
    let good =
        transaction(StateOperation::Append { address: "5a7e01".to_owned(), number: 1 }, "good");
    let bad = transaction(StateOperation::Fail, "bad");
    let batch = |transactions: Vec<Transaction>| {
        BatchBuilder::new().transactions(transactions).sign(&key())
    };
    let repeating = batch(vec![good.clone()]);
    let dependent = RandomBatches::new(1).depending(&repeating);
    [batch(vec![good, bad]), repeating, dependent]
}

fn audit_after(sent: &[&Batch], accepted: &[&Batch]) -> StateAudit {
    let ledger = sawtooth(|b| b);
    for batch in sent {
        assert_eq!(ledger.submit_one(batch).status(), 202);
    }
    let accepted: Vec<Batch> = accepted.iter().copied().cloned().collect();
    ledger.audit_state(&accepted)
}

fn audit_with_others(ledger: &Ledger, accepted: &[Batch], of_others: &[Batch]) -> StateAudit {
    ledger.audit_state(AuditedBatches { accepted, ended: &[], of_others })
}

#[test]
fn transaction_in_two_batches_is_applied_with_one() {
    let [batch, other] = RandomBatches::new(1).twins();
    for (first, second) in [(&batch, &other), (&other, &batch)] {
        let ledger = sawtooth(|b| b);
        ledger.submit_one(first);
        ledger.submit_one(second);
        assert_eq!(ledger.applied(), [id(first)]);
        let audit = audit_with_others(&ledger, slice::from_ref(&batch), slice::from_ref(&other));
        assert!(audit.is_clean(), "{audit:?}");
    }
}

#[test]
fn audit_finds_a_lost_dependent_of_what_others_sent() {
    let mut random = RandomBatches::new(1);
    let [batch, other] = random.twins();
    let dependent = random.depending(&batch);
    let ledger = sawtooth(|b| b);
    ledger.submit_one(&other);
    ledger.submit_one(&batch);
    let accepted = [batch, dependent.clone()];
    assert_eq!(
        audit_with_others(&ledger, &accepted, slice::from_ref(&other)).lost,
        [id(&dependent)]
    );
    ledger.submit_one(&dependent);
    let audit = audit_with_others(&ledger, &accepted, &[other]);
    assert!(audit.is_clean() && audit.applied == 1, "{audit:?}");
}

#[test]
fn dependent_may_end_with_the_first_or_follow_the_second() {
    let [invalid, repeating, dependent] = repeated_after_invalid();
    let accepted = [&invalid, &dependent, &repeating];
    let ended = audit_after(&[&invalid, &repeating], &accepted);
    assert!(ended.is_clean() && ended.invalid == 2, "{ended:?}");
    let applied = audit_after(&[&invalid, &repeating, &dependent], &accepted);
    assert!(applied.is_clean() && applied.applied == 2, "{applied:?}");
}

#[test]
fn audit_finds_a_lost_dependent_of_a_repeated_transaction() {
    let [invalid, repeating, dependent] = repeated_after_invalid();
    let audit = audit_after(&[&invalid, &repeating], &[&invalid, &repeating, &dependent]);
    assert_eq!(audit.lost, [id(&dependent)]);
}

#[test]
fn batch_that_an_operator_ended_is_not_applied() {
    let mut random = RandomBatches::new(1);
    let batches = [random.conflicting(), random.conflicting(), random.conflicting()];
    let ledger = sawtooth(|b| b);
    ledger.submit(&[batches[0].clone(), batches[2].clone()]);
    let audit = |ended: &[&Batch]| {
        let ended: Vec<_> = ended.iter().map(|batch| id(batch)).collect();
        ledger.audit_state(AuditedBatches { accepted: &batches, ended: &ended, of_others: &[] })
    };
    assert!(audit(&[&batches[1]]).is_clean());
    assert_eq!(audit(&[]).lost, [id(&batches[1])]);
    assert_eq!(audit(&[&batches[1], &batches[2]]).wrong_results.len(), 1);
}

#[test]
fn lost_batch_of_another_client_changes_nothing() {
    let [batch, other] = RandomBatches::new(1).twins();
    let ledger = sawtooth(|b| b);
    let ended = [id(&batch)];
    let batches = AuditedBatches { accepted: &[batch], ended: &ended, of_others: &[other] };
    let audit = ledger.audit_state(batches);
    assert!(audit.is_clean(), "{audit:?}");
}
