use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use grid_batch_core::ItemId;
use grid_batch_protocol::{Batch, Message};

use super::{
    StateValues,
    access::prefixes_overlap,
    order::{AuditedBatch, Ordered, Origin, findings, serial_order},
};
use crate::{Entry, ExecutionResult};

/// The batches of an audit.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditedBatches<'a> {
    /// The accepted batches, in order.
    pub accepted: &'a [Batch],
    /// The accepted batches that an operator has ended as invalid.
    pub ended: &'a [ItemId],
    /// Batches of other clients. They are applied in between, and may be lost.
    pub of_others: &'a [Batch],
}

impl<'a> From<&'a [Batch]> for AuditedBatches<'a> {
    fn from(accepted: &'a [Batch]) -> Self {
        Self { accepted, ..Self::default() }
    }
}

impl<'a> From<&'a Vec<Batch>> for AuditedBatches<'a> {
    fn from(accepted: &'a Vec<Batch>) -> Self {
        accepted.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [Batch; N]> for AuditedBatches<'a> {
    fn from(accepted: &'a [Batch; N]) -> Self {
        accepted.as_slice().into()
    }
}

/// The differences between a ledger's record and the result of applying the accepted batches one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateAudit {
    /// The number of accepted batches.
    pub accepted: usize,
    /// The number of accepted batches that were applied.
    pub applied: usize,
    /// The number of accepted batches that were only found invalid, or that were not sent because a dependency is
    /// invalid.
    pub invalid: usize,
    /// Addresses whose numbers differ.
    pub wrong_values: Vec<WrongValue>,
    /// Batches that were applied although they should be invalid, or the reverse.
    pub wrong_results: Vec<WrongResult>,
    /// Batches that were never executed although they are valid.
    pub lost: Vec<ItemId>,
    /// Batches that were applied more than once.
    pub duplicated: Vec<ItemId>,
    /// Batches that were applied before one that conflicts with them and has an earlier position in the order.
    pub out_of_order: Vec<ItemId>,
    /// Batches that were applied but not accepted.
    pub unaccepted: Vec<ItemId>,
}

/// A number of the ledger that differs from the result of applying the batches one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongValue {
    /// Its address.
    pub address: String,
    /// The expected number.
    pub expected: u64,
    /// The number of the ledger.
    pub found: u64,
}

/// A batch whose result differs from its result when the batches are applied one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongResult {
    /// The batch.
    pub batch_id: ItemId,
    /// The expected result.
    pub expected: ExecutionResult,
    /// The result in the record.
    pub found: ExecutionResult,
}

impl StateAudit {
    /// Whether there is no difference.
    pub fn is_clean(&self) -> bool {
        let batches = [&self.lost, &self.duplicated, &self.out_of_order, &self.unaccepted];
        batches.iter().all(|batches| batches.is_empty())
            && self.wrong_values.is_empty()
            && self.wrong_results.is_empty()
    }
}

impl fmt::Display for StateAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} accepted, {} applied, {} invalid, {} lost, {} duplicated, {} out of order, {} not \
             accepted, {} wrong results, {} wrong values",
            self.accepted,
            self.applied,
            self.invalid,
            self.lost.len(),
            self.duplicated.len(),
            self.out_of_order.len(),
            self.unaccepted.len(),
            self.wrong_results.len(),
            self.wrong_values.len()
        )
    }
}

/// Compares a record of Sawtooth with the result of applying the accepted batches one by one, in the order in which
/// they were accepted: the numbers of the state, the result of each batch, and the order of batches that conflict.
/// Batches that do not conflict may have been applied in any order.
/// A batch that was accepted before its dependency has the position at which the dependency arrived. A batch that a
/// fault or a rule refused, regardless of its content, counts as invalid. A batch with a transaction that was applied
/// with an earlier batch does, too.
pub fn audit_state<'a>(record: &[Entry], batches: impl Into<AuditedBatches<'a>>) -> StateAudit {
    let AuditedBatches { accepted, ended, of_others } = batches.into();
    let findings = findings(record);
    let audited = |(origin, batch)| AuditedBatch::new(batch, origin, &findings);
    let batches = accepted.iter().map(|batch| (Origin::Accepted, batch));
    let batches = batches.chain(of_others.iter().map(|batch| (Origin::OtherClient, batch)));
    let mut batches: Vec<_> = batches.filter_map(audited).collect();
    for batch in batches.iter_mut().filter(|batch| ended.contains(&batch.id)) {
        batch.origin = Origin::Ended;
    }
    let order = serial_order(&batches);
    let mut audit = StateAudit { accepted: accepted.len(), ..StateAudit::default() };
    let expected = apply_one_by_one(&order, &mut audit);
    audit.wrong_values = compare(&expected, &applied_by(record));
    audit.out_of_order = find_out_of_order(&order);
    let ids: HashSet<_> = batches.iter().map(|batch| batch.id).collect();
    let others = findings.iter().filter(|(id, it)| it.times_applied > 0 && !ids.contains(id));
    audit.unaccepted = others.map(|(id, _)| *id).collect();
    audit
}

/// The state after all batches, in this order. Compares their results with those in the record.
fn apply_one_by_one(order: &[Ordered<'_>], audit: &mut StateAudit) -> StateValues {
    let mut values = StateValues::default();
    let mut transactions = Transactions::default();
    for ordered in order {
        let batch = ordered.batch;
        let is_applied = batch.may_apply()
            && !batch.findings.is_refused
            && transactions.let_apply(ordered)
            && values.apply(batch.batch).is_ok();
        let ids = if is_applied { &mut transactions.applied } else { &mut transactions.invalid };
        ids.extend(&batch.transaction_ids);
        count_result(batch, is_applied, audit);
    }
    values
}

/// The transactions of the batches until now, by whether these were applied.
#[derive(Debug, Default)]
struct Transactions {
    applied: HashSet<ItemId>,
    invalid: HashSet<ItemId>,
}

impl Transactions {
    /// Whether a batch can be applied after these: its dependencies were applied, and none of its own transactions.
    fn let_apply(&self, Ordered { batch, is_late }: &Ordered<'_>) -> bool {
        let mut dependencies = batch.dependencies.iter();
        let was_not_sent = *is_late && batch.findings.position.is_none();
        // It has ended with the batch that first had the transaction, before the batch that was applied arrived.
        let has_ended = was_not_sent && dependencies.clone().any(|id| self.invalid.contains(id));
        !has_ended
            && dependencies.all(|id| self.applied.contains(id))
            && !batch.transaction_ids.iter().any(|id| self.applied.contains(id))
    }
}

fn count_result(batch: &AuditedBatch<'_>, is_applied: bool, audit: &mut StateAudit) {
    let expected = if is_applied { ExecutionResult::Applied } else { ExecutionResult::Invalid };
    match batch.result() {
        _ if batch.origin == Origin::OtherClient => {}
        Some(ExecutionResult::Applied) => audit.applied += 1,
        Some(ExecutionResult::Invalid) => audit.invalid += 1,
        None if is_applied => audit.lost.push(batch.id),
        None => audit.invalid += 1,
    }
    if batch.findings.times_applied > 1 {
        audit.duplicated.push(batch.id);
    }
    if let Some(found) = batch.result()
        && found != expected
    {
        audit.wrong_results.push(WrongResult { batch_id: batch.id, expected, found });
    }
}

/// The state of the ledger with this record.
fn applied_by(record: &[Entry]) -> StateValues {
    let mut values = StateValues::default();
    let batches = record.iter().filter(|entry| entry.result == ExecutionResult::Applied);
    for batch in batches.filter_map(|entry| Batch::decode(entry.batch.as_deref()?).ok()) {
        // An error would mean that the ledger has applied an invalid batch: then its values differ.
        let _ = values.apply(&batch);
    }
    values
}

fn compare(expected: &StateValues, found: &StateValues) -> Vec<WrongValue> {
    let addresses: BTreeMap<&String, ()> =
        expected.written().keys().chain(found.written().keys()).map(|it| (it, ())).collect();
    let value = |values: &StateValues, address: &str| {
        values.written().get(address).copied().unwrap_or_default()
    };
    let compared = addresses.into_keys().map(|address| WrongValue {
        address: address.clone(),
        expected: value(expected, address),
        found: value(found, address),
    });
    compared.filter(|it| it.expected != it.found).collect()
}

/// Finds batches that were applied before a conflicting one with an earlier position. For each declared
/// prefix, the latest position at which it was read and written by the batches until now is enough.
fn find_out_of_order(order: &[Ordered<'_>]) -> Vec<ItemId> {
    let mut latest: HashMap<&str, Latest> = HashMap::new();
    let mut found = Vec::new();
    let applied = order.iter().map(|ordered| ordered.batch);
    let applied = applied.filter(|batch| batch.findings.times_applied > 0);
    for (batch, position) in applied.filter_map(|batch| Some((batch, batch.findings.position?))) {
        let overlaps = |declared: &[String], prefix: &str| {
            declared.iter().any(|own| prefixes_overlap(own, prefix))
        };
        let has_overtaken = latest.iter().any(|(prefix, latest)| {
            (latest.written > position
                && (overlaps(batch.access.reads(), prefix)
                    || overlaps(batch.access.writes(), prefix)))
                || (latest.read > position && overlaps(batch.access.writes(), prefix))
        });
        if has_overtaken {
            found.push(batch.id);
        }
        for prefix in batch.access.reads() {
            let latest = latest.entry(prefix).or_default();
            latest.read = latest.read.max(position);
        }
        for prefix in batch.access.writes() {
            let latest = latest.entry(prefix).or_default();
            latest.written = latest.written.max(position);
        }
    }
    found
}

/// The latest position in the record at which a prefix was read and written.
#[derive(Debug, Default)]
struct Latest {
    read: usize,
    written: usize,
}
