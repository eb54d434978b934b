use serde::Deserialize;

use crate::node::quantity::Quantity;

/// What the last blocks cost, by the unit of gas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeeHistory {
    /// The base fee of the block that comes next; a chain without one says zero, or nothing.
    pub(crate) next_base_fee: Option<u128>,
    /// Of each block, the tip that half of its gas paid at most.
    pub(crate) median_tips: Vec<u128>,
}

impl FeeHistory {
    /// The percentiles of tips that are asked for.
    pub(super) const PERCENTILES: [u8; 1] = [50];
}

/// As nodes write it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    base_fee_per_gas: Option<Vec<Quantity<u128>>>,
    reward: Option<Vec<Vec<Quantity<u128>>>>,
}

impl From<Answered> for FeeHistory {
    fn from(answered: Answered) -> Self {
        let next_base_fee = answered.base_fee_per_gas.unwrap_or_default().pop();
        let rewards = answered.reward.unwrap_or_default();
        Self {
            next_base_fee: next_base_fee.map(|Quantity(fee)| fee).filter(|fee| *fee > 0),
            median_tips: rewards
                .iter()
                .filter_map(|block| block.first())
                .map(|Quantity(tip)| *tip)
                .collect(),
        }
    }
}
