//! Batches that the simulated Sawtooth executes, and the audit of what they have written.

use std::time::Duration;

use grid_batch_core::ItemId;
use grid_batch_ledger_sim::{
    ExecutionResult, Fault, RandomBatches, StateOperation, When, audit_state,
};
use grid_batch_protocol::{Batch, BatchBuilder};

use crate::{
    batches::{id, key, transaction_id},
    ledgers::{Ledger, sawtooth},
};

const SECOND: Duration = Duration::from_secs(1);
const SHARED: &str = "5a7e00";

/// A batch that appends its number to that at an address.
fn append(address: &str, number: u64) -> Batch {
    append_after(address, number, [])
}

fn append_after(
    address: &str,
    number: u64,
    dependencies: impl IntoIterator<Item = ItemId>,
) -> Batch {
    let operation = StateOperation::Append { address: address.to_owned(), number };
    declaring([operation], [address], [address], number, dependencies)
}

fn declaring<const N: usize>(
    operations: [StateOperation; N],
    inputs: [&str; 1],
    outputs: [&str; 1],
    number: u64,
    dependencies: impl IntoIterator<Item = ItemId>,
) -> Batch {
    let transaction = StateOperation::transaction(&operations)
        .inputs(inputs)
        .outputs(outputs)
        .nonce(number.to_string())
        .dependencies(dependencies)
        .sign(&key(), &key().public_key());
    BatchBuilder::new().transaction(transaction).sign(&key())
}

/// A ledger that executes its batches when the clock is advanced.
fn ledger(seed: u64) -> Ledger {
    sawtooth(|b| b.pending_for(SECOND).seed(seed))
}

fn assert_clean(ledger: &Ledger, accepted: &[Batch]) {
    let audit = ledger.audit_state(accepted);
    assert!(audit.is_clean(), "seed {}: {audit}\n{audit:#?}", ledger.seed());
}

#[test]
fn conflicting_batches_are_applied_as_they_arrived() {
    let batches: Vec<_> = (0..40).map(|number| append(SHARED, number)).collect();
    for seed in 0..5 {
        let ledger = ledger(seed);
        ledger.submit(&batches);
        ledger.advance(1);
        assert_eq!(ledger.applied(), batches.iter().map(id).collect::<Vec<_>>());
        assert_clean(&ledger, &batches);
    }
}

#[test]
fn independent_batches_are_applied_in_any_order() {
    let mut random = RandomBatches::new(1);
    let batches: Vec<_> = (0..40).map(|_| random.independent()).collect();
    let applied = [1, 2].map(|seed| {
        let ledger = ledger(seed);
        ledger.submit(&batches);
        ledger.advance(1);
        assert_clean(&ledger, &batches);
        ledger.applied()
    });
    assert_ne!(applied[0], applied[1]);
    assert_eq!(applied[0].len(), 40);
}

#[test]
fn ledger_that_keeps_order_applies_all_as_they_arrived() {
    let mut random = RandomBatches::new(1);
    let batches: Vec<_> = (0..40).map(|_| random.independent()).collect();
    let ledger = sawtooth(|b| b.pending_for(SECOND).keeps_order());
    ledger.submit(&batches);
    ledger.advance(1);
    assert_eq!(ledger.applied(), batches.iter().map(id).collect::<Vec<_>>());
}

#[test]
fn dependent_batch_is_applied_after_its_dependency() {
    let first = append("5a7e01", 1);
    let second = append_after("5a7e02", 2, [transaction_id(&first)]);
    let batches = [first, second];
    for seed in 0..10 {
        let ledger = ledger(seed);
        ledger.submit(&batches);
        ledger.advance(1);
        assert_eq!(ledger.applied(), batches.each_ref().map(id));
    }
}

#[test]
fn access_outside_of_what_is_declared_is_invalid() {
    let ledger = sawtooth(|b| b);
    let append = || StateOperation::Append { address: SHARED.to_owned(), number: 1 };
    let below = |address: &str| declaring([append()], [&address[..4]], [&address[..4]], 1, []);
    let unread = declaring([append()], ["5a7e01"], [SHARED], 1, []);
    let unwritten = declaring([append()], [SHARED], ["5a7e01"], 1, []);
    let batches = [unread, unwritten, below(SHARED)];
    ledger.submit(&batches);
    let statuses = batches.each_ref().map(|batch| ledger.status(batch));
    assert_eq!(statuses, ["INVALID", "INVALID", "COMMITTED"]);
    assert_eq!(ledger.state_values().written().len(), 1);
    assert_clean(&ledger, &batches);
}

#[test]
fn blocks_have_an_interval_and_a_greatest_size() {
    let ledger = sawtooth(|b| b.block_interval(10 * SECOND).block_size(15));
    let mut random = RandomBatches::new(1);
    let batches: Vec<_> = (0..40).map(|_| random.independent()).collect();
    ledger.submit(&batches);
    let applied = || ledger.applied().len();
    let after = [0, 9, 1, 9, 1].map(|seconds| {
        ledger.advance(seconds);
        applied()
    });
    assert_eq!(after, [15, 15, 30, 30, 40]);
    assert_eq!(ledger.most_waiting(), 40);
}

#[test]
fn recorded_state_is_restored() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let batches = RandomBatches::new(5).take(60);
    let ledger = sawtooth(|b| b.record_to(&record));
    ledger.submit(&batches);
    let values = ledger.state_values();
    assert!(values.written().len() > 10);
    drop(ledger);
    assert_eq!(sawtooth(|b| b.record_to(&record)).state_values(), values);
}

#[test]
fn one_by_one_is_what_a_ledger_does_with_one_at_a_time() {
    for seed in 0..20 {
        let batches = RandomBatches::new(seed).take(80);
        let ledger = sawtooth(|b| b.seed(seed));
        // A batch that is sent before what it depends on is executed after it.
        batches.iter().for_each(|batch| assert_eq!(ledger.submit_one(batch).status(), 202));
        let audit = ledger.audit_state(&batches);
        assert!(audit.is_clean(), "seed {seed}: {audit:#?}");
        assert!(audit.applied > 40 && audit.invalid > 0, "seed {seed}: {audit}");
    }
}

#[test]
fn audit_finds_conflicting_batches_in_another_order() {
    let [first, second] = [1, 2].map(|number| append(SHARED, number));
    let ledger = sawtooth(|b| b);
    ledger.submit(&[second.clone(), first.clone()]);
    let audit = ledger.audit_state(&[first.clone(), second.clone()]);
    assert_eq!(audit.out_of_order, [id(&second)]);
    assert_eq!(audit.wrong_values.len(), 1, "{audit}");
    assert!(!audit.is_clean());
}

#[test]
fn audit_finds_a_wrong_result() {
    let odd = append(SHARED, 1);
    let require = StateOperation::RequireEven { address: SHARED.to_owned() };
    let reader = declaring([require], [SHARED], ["5a7e01"], 2, []);
    let ledger = sawtooth(|b| b);
    ledger.submit(&[reader.clone(), odd.clone()]);
    let audit = ledger.audit_state(&[odd, reader.clone()]);
    let [wrong] = audit.wrong_results[..] else { panic!("{audit:?}") };
    assert_eq!((wrong.batch_id, wrong.expected), (id(&reader), ExecutionResult::Invalid));
}

#[test]
fn audit_finds_what_is_lost_or_was_not_accepted() {
    let [first, second, third] = [1, 2, 3].map(|number| append(SHARED, number));
    let ledger = sawtooth(|b| b);
    ledger.submit(&[first.clone(), third.clone()]);
    let audit = ledger.audit_state(&[first.clone(), second.clone()]);
    assert_eq!((audit.lost, audit.unaccepted), (vec![id(&second)], vec![id(&third)]));
    let mut record = ledger.record();
    record.push(record[0].clone());
    assert_eq!(audit_state(&record, &[first.clone(), third]).duplicated, [id(&first)]);
}

#[test]
fn audit_finds_a_setting_that_was_written_too_early() {
    let batches = [append("5a7e01", 1), append(StateOperation::SETTING, 7), append("5a7e02", 1)];
    let differs = (0..20).filter(|seed| {
        let ledger = ledger(*seed);
        ledger.submit(&batches);
        ledger.advance(1);
        !ledger.audit_state(&batches).is_clean()
    });
    assert!(differs.count() > 0, "the ledger reads its setting without being told");
}

#[test]
fn batch_that_a_fault_made_invalid_changes_nothing() {
    let batches = [1, 2].map(|number| append(SHARED, number));
    let ledger = sawtooth(|b| b.fault(Fault::Invalid, When::Next(1)));
    ledger.submit(&batches);
    let audit = ledger.audit_state(&batches);
    assert!(audit.is_clean() && (audit.applied, audit.invalid) == (1, 1), "{audit:?}");
    assert!(ledger.record()[0].refused);
}

#[test]
fn batch_whose_dependency_is_invalid_is_not_missed() {
    let fail = declaring([StateOperation::Fail], [SHARED], [SHARED], 1, []);
    let dependent = append_after("5a7e01", 2, [transaction_id(&fail)]);
    let ledger = sawtooth(|b| b);
    ledger.submit_one(&fail);
    let audit = ledger.audit_state(&[fail, dependent]);
    assert!(audit.is_clean() && audit.invalid == 2, "{audit:?}");
}

#[test]
fn batch_counts_from_when_its_dependency_came() {
    let first = append(SHARED, 1);
    let early = append_after(SHARED, 2, [transaction_id(&first)]);
    let ledger = sawtooth(|b| b);
    for batch in [&early, &first] {
        ledger.submit_one(batch);
    }
    assert_eq!(ledger.applied(), [&first, &early].map(id));
    assert_clean(&ledger, &[early, first]);
}

#[test]
fn node_that_lags_finds_a_conflicting_batch_invalid() {
    let first = sawtooth(|b| b);
    let second = sawtooth(|b| b.join_chain_of(&first, 60 * SECOND));
    let [one, two, other] = [append(SHARED, 1), append(SHARED, 2), append("5a7e01", 1)];
    first.submit_one(&one);
    second.submit(&[two.clone(), other.clone()]);
    assert_eq!([two, other].map(|batch| second.status(&batch)), ["INVALID", "COMMITTED"]);
    second.advance(60);
    assert_eq!(second.state_values().written().len(), 2);
}
