use std::{collections::VecDeque, sync::Mutex};

use grid_batch_support::lock;
use grid_batch_withdrawals::NewSignedTransaction;

use super::bid::Fees;
use crate::{node::BlockTip, values::GasPrice};

/// The tip that is offered to block producers: what others paid lately, but at most a limit.
///
/// Transactions of this process are left out. Otherwise one with a high tip would keep the tips of the next ones high.
#[derive(Debug)]
pub(crate) struct Tips {
    highest: u128,
    own: Mutex<VecDeque<Fees>>,
}

impl Tips {
    /// How many transactions of this process are remembered.
    const CAPACITY: usize = 256;
    /// With fewer blocks, a few outliers would determine the tip.
    const FEWEST_BLOCKS: usize = 5;

    /// Offers tips up to this limit.
    pub(crate) fn new(highest: GasPrice) -> Self {
        Self { highest: highest.wei().max(1), own: Mutex::default() }
    }

    /// The highest tip.
    pub(super) fn highest(&self) -> u128 {
        self.highest
    }

    /// Remembers a transaction that was signed.
    pub(crate) fn record(&self, signed: &NewSignedTransaction) {
        let mut own = lock(&self.own);
        if own.len() >= Self::CAPACITY {
            own.pop_front();
        }
        own.push_back(Fees::of(signed));
    }

    /// The 20th percentile of what others paid in these blocks. `None`: too few blocks have transactions of others.
    pub(super) fn of_blocks(&self, blocks: &[BlockTip]) -> Option<u128> {
        let mut tips = self.of_others(blocks);
        if tips.len() < Self::FEWEST_BLOCKS {
            return None;
        }
        tips.sort_unstable();
        tips.get((tips.len() - 1) / 5).copied()
    }

    /// The tips of the blocks that are not empty and do not show a transaction of this process. Each own transaction
    /// excludes one block; further blocks with the same tip are included.
    fn of_others(&self, blocks: &[BlockTip]) -> Vec<u128> {
        let mut own = lock(&self.own).clone();
        let mut tips = Vec::new();
        for BlockTip { base_fee, tip } in blocks.iter().filter(|block| block.tip > 0) {
            match own.iter().position(|fees| tip_paid(fees, *base_fee) == Some(*tip)) {
                Some(index) => drop(own.swap_remove_back(index)),
                None => tips.push(*tip),
            }
        }
        tips
    }
}

/// The tip that a transaction pays in a block with this base fee.
fn tip_paid(fees: &Fees, base_fee: u128) -> Option<u128> {
    Some(fees.tip.min(fees.max_fee.checked_sub(base_fee)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u128 = 100;

    fn tips() -> Tips {
        Tips::new(GasPrice::from_wei(50))
    }

    fn blocks(tips: &[u128]) -> Vec<BlockTip> {
        tips.iter().map(|tip| BlockTip { base_fee: BASE, tip: *tip }).collect()
    }

    fn signed(max_fee: u128, tip: u128) -> NewSignedTransaction {
        NewSignedTransaction {
            nonce: 0,
            hash: [0; 32],
            bytes: Vec::new(),
            max_fee,
            tip,
            is_filler: false,
        }
    }

    #[test]
    fn tip_is_a_low_percentile_of_many_blocks() {
        for (sample, tip) in [
            (&[9, 9, 9, 9, 1][..], Some(1)),
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], Some(3)),
            (&[7; 20], Some(7)),
            (&[3, 120, 120, 3, 3, 3, 3, 3], Some(3)),
            (&[120, 120], None),
            (&[], None),
        ] {
            assert_eq!(tips().of_blocks(&blocks(sample)), tip, "{sample:?}");
        }
    }

    #[test]
    fn empty_blocks_do_not_count() {
        assert_eq!(tips().of_blocks(&blocks(&[0, 0, 0, 0, 5, 5, 5, 5])), None);
        assert_eq!(tips().of_blocks(&blocks(&[0, 0, 5, 5, 5, 5, 5])), Some(5));
    }

    #[test]
    fn own_transactions_do_not_count() {
        let tips = tips();
        (0..5).for_each(|_| tips.record(&signed(500, 40)));
        assert_eq!(tips.of_blocks(&blocks(&[40; 5])), None);
        assert_eq!(tips.of_blocks(&blocks(&[40, 40, 40, 40, 40, 2, 2, 2, 2, 2])), Some(2));
        // Others offer the same.
        assert_eq!(tips.of_blocks(&blocks(&[40; 10])), Some(40));
    }

    #[test]
    fn own_transaction_is_known_when_its_max_fee_limits_its_tip() {
        let tips = tips();
        tips.record(&signed(BASE + 7, 40));
        assert_eq!(tips.of_blocks(&blocks(&[7, 9, 9, 9, 9])), None);
        tips.record(&signed(BASE - 1, 1));
        assert_eq!(tips.of_blocks(&blocks(&[1, 9, 9, 9, 9])), Some(1));
    }

    #[test]
    fn number_of_remembered_transactions_is_limited() {
        let tips = tips();
        (0..2 * Tips::CAPACITY).for_each(|_| tips.record(&signed(500, 40)));
        assert_eq!(lock(&tips.own).len(), Tips::CAPACITY);
    }
}
