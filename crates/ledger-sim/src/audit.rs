use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use grid_batch_core::{ItemId, ServiceId};

use crate::{Entry, ExecutionResult};

/// The differences between a ledger's record and the promised batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// The number of promised batches.
    pub promised: usize,
    /// The number of promised batches that were applied at least once.
    pub applied: usize,
    /// Promised batches that were only found invalid.
    pub invalid: Vec<ItemId>,
    /// Promised batches that were never executed.
    pub lost: Vec<ItemId>,
    /// Promised batches that were applied more than once.
    pub duplicated: Vec<ItemId>,
    /// Batches that were first applied after a later batch of the same service.
    pub out_of_order: Vec<ItemId>,
    /// Batches that were applied but not promised.
    pub unpromised: Vec<ItemId>,
}

impl Audit {
    /// Whether every promised batch was applied once and in order, or found invalid, and no other
    /// batch was applied.
    pub fn is_clean(&self) -> bool {
        [&self.lost, &self.duplicated, &self.out_of_order, &self.unpromised]
            .iter()
            .all(|batches| batches.is_empty())
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} promised, {} applied, {} invalid, {} lost, {} duplicated, {} out of order, \
             {} not promised",
            self.promised,
            self.applied,
            self.invalid.len(),
            self.lost.len(),
            self.duplicated.len(),
            self.out_of_order.len(),
            self.unpromised.len()
        )
    }
}

/// Compares a ledger's record with the promised batches. These are the batches that the ledger should have executed, in
/// the order in which they were promised.
///
/// The order matters only within a service. A batch that was both applied and found invalid counts
/// as applied.
///
/// ```
/// use grid_batch_core::ItemId;
/// use grid_batch_ledger_sim::audit;
///
/// let promised = ("a::b".parse()?, ItemId::from_bytes([1; 64]));
/// let audit = audit(&[], &[promised]);
/// assert_eq!(audit.lost.len(), 1);
/// assert!(!audit.is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn audit(record: &[Entry], promised: &[(ServiceId, ItemId)]) -> Audit {
    let mut audit = Audit { promised: promised.len(), ..Audit::default() };
    let mut applied: HashMap<_, usize> = HashMap::new();
    let mut invalid = HashSet::new();
    for entry in record {
        let key = (&entry.service_id, entry.batch_id);
        match entry.result {
            ExecutionResult::Applied => *applied.entry(key).or_default() += 1,
            ExecutionResult::Invalid => drop(invalid.insert(key)),
        }
    }
    for (service_id, batch_id) in promised {
        let key = (service_id, *batch_id);
        match applied.get(&key) {
            Some(times) => {
                audit.applied += 1;
                if *times > 1 {
                    audit.duplicated.push(*batch_id);
                }
            }
            None if invalid.contains(&key) => audit.invalid.push(*batch_id),
            None => audit.lost.push(*batch_id),
        }
    }
    compare_order(record, promised, &mut audit);
    audit
}

fn compare_order(record: &[Entry], promised: &[(ServiceId, ItemId)], audit: &mut Audit) {
    let positions: HashMap<_, _> = promised
        .iter()
        .enumerate()
        .map(|(position, (service_id, batch_id))| ((service_id, *batch_id), position))
        .collect();
    let mut last_position: HashMap<&ServiceId, usize> = HashMap::new();
    let mut seen = HashSet::new();
    for entry in record.iter().filter(|entry| entry.result == ExecutionResult::Applied) {
        let key = (&entry.service_id, entry.batch_id);
        if !seen.insert(key) {
            continue;
        }
        let Some(&position) = positions.get(&key) else {
            audit.unpromised.push(entry.batch_id);
            continue;
        };
        let last_position = last_position.entry(&entry.service_id).or_default();
        if position < *last_position {
            audit.out_of_order.push(entry.batch_id);
        }
        *last_position = position.max(*last_position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grid_batch_core::Timestamp;

    fn id(number: u8) -> ItemId {
        ItemId::from_bytes([number; 64])
    }

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn entry(name: &str, number: u8, result: ExecutionResult) -> Entry {
        Entry {
            position: 0,
            service_id: service(name),
            batch_id: id(number),
            transaction_ids: Vec::new(),
            time: Timestamp::default(),
            result,
            batch: None,
            refused: false,
        }
    }

    fn applied(number: u8) -> Entry {
        entry("a", number, ExecutionResult::Applied)
    }

    fn invalid(number: u8) -> Entry {
        entry("a", number, ExecutionResult::Invalid)
    }

    fn promise(numbers: &[u8]) -> Vec<(ServiceId, ItemId)> {
        numbers.iter().map(|number| (service("a"), id(*number))).collect()
    }

    #[test]
    fn batches_applied_as_promised_are_clean() {
        let audit = audit(&[applied(1), invalid(2), applied(3)], &promise(&[1, 2, 3]));
        assert!(audit.is_clean(), "{audit}");
        assert_eq!((audit.applied, audit.invalid), (2, vec![id(2)]));
    }

    #[test]
    fn every_difference_is_found() {
        let record = [applied(2), applied(1), applied(2), applied(9)];
        let audit = audit(&record, &promise(&[1, 2, 3]));
        assert_eq!(audit.lost, [id(3)]);
        assert_eq!(audit.duplicated, [id(2)]);
        assert_eq!(audit.out_of_order, [id(1)]);
        assert_eq!(audit.unpromised, [id(9)]);
        assert_eq!(
            audit.to_string(),
            "3 promised, 2 applied, 0 invalid, 1 lost, 1 duplicated, 1 out of order, 1 not promised"
        );
    }

    #[test]
    fn applied_batch_is_not_invalid() {
        for record in [[applied(1), invalid(1)], [invalid(1), applied(1)]] {
            let audit = audit(&record, &promise(&[1]));
            assert!(audit.is_clean() && audit.invalid.is_empty(), "{audit}");
        }
    }

    #[test]
    fn order_between_services_does_not_matter() {
        let promised = [(service("a"), id(1)), (service("b"), id(2))];
        let record = [entry("b", 2, ExecutionResult::Applied), applied(1)];
        assert!(audit(&record, &promised).is_clean());
    }
}
