use serde::Deserialize;

use super::quantity::Quantity;

/// The fees of the latest blocks, in wei for a unit of gas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeeHistory {
    /// The base fee of the next block. `None`: the chain has no base fee.
    pub(crate) next_base_fee: Option<u128>,
    /// The median tip of each block, weighted by gas.
    pub(crate) median_tips: Vec<u128>,
}

impl FeeHistory {
    /// The percentiles of tips that are requested.
    pub(super) const PERCENTILES: [u8; 1] = [50];
}

/// The fee history in a node's response. A chain without base fees reports zero or nothing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeeHistoryJson {
    base_fee_per_gas: Option<Vec<Quantity<u128>>>,
    reward: Option<Vec<Vec<Quantity<u128>>>>,
}

impl From<FeeHistoryJson> for FeeHistory {
    fn from(json: FeeHistoryJson) -> Self {
        let next_base_fee = json.base_fee_per_gas.unwrap_or_default().pop();
        let rewards = json.reward.unwrap_or_default();
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
