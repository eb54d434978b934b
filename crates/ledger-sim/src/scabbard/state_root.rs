use std::fmt;

use grid_batch_core::ItemId;

use crate::random::Random;

/// A number that identifies the state of a service. It is computed from the transactions that changed the state, in
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateRoot([u64; 4]);

impl Default for StateRoot {
    fn default() -> Self {
        Self([1, 2, 3, 4])
    }
}

impl StateRoot {
    pub(super) fn apply(&mut self, transaction_id: ItemId) {
        for byte in transaction_id.as_bytes() {
            for part in &mut self.0 {
                *part = Random::from_seed(*part ^ u64::from(*byte)).next();
            }
        }
    }
}

impl fmt::Display for StateRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "{part:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(transactions: &[u8]) -> String {
        let mut root = StateRoot::default();
        transactions.iter().for_each(|number| root.apply(ItemId::from_bytes([*number; 64])));
        root.to_string()
    }

    #[test]
    fn root_follows_from_the_transactions_and_their_order() {
        assert_eq!(root(&[1, 2]), root(&[1, 2]));
        assert_eq!(root(&[]).len(), 64);
        let others = [root(&[]), root(&[1]), root(&[1, 1]), root(&[1, 2]), root(&[2, 1])];
        let distinct: std::collections::HashSet<_> = others.iter().collect();
        assert_eq!(distinct.len(), others.len());
    }
}
