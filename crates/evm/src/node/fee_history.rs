use serde::Deserialize;

use super::quantity::Quantity;

/// The fees of the latest blocks, in wei per unit of gas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeeHistory {
    /// The base fee of the next block. `None`: the chain has no base fee.
    pub(crate) next_base_fee: Option<u128>,
    /// The blocks, the oldest first.
    pub(crate) blocks: Vec<BlockTip>,
}

/// What a transaction with a low bid paid in a block, in wei per unit of gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockTip {
    /// The part that was burned.
    pub(crate) base_fee: u128,
    /// The part that went to the block producer: the 20th percentile of the tips, weighted by gas. Zero in an empty
    /// block.
    pub(crate) tip: u128,
}

impl FeeHistory {
    /// The percentiles of tips that are requested.
    pub(super) const PERCENTILES: [u8; 1] = [20];
}

/// The fee history in a node's response. A chain without base fees reports zero, null or nothing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeeHistoryJson {
    base_fee_per_gas: Option<Vec<Option<Quantity<u128>>>>,
    reward: Option<Vec<Vec<Quantity<u128>>>>,
}

impl From<FeeHistoryJson> for FeeHistory {
    fn from(json: FeeHistoryJson) -> Self {
        let base_fees = json.base_fee_per_gas.into_iter().flatten().flatten();
        let base_fees: Vec<u128> = base_fees.map(|Quantity(fee)| fee).collect();
        let tip = |block: Vec<Quantity<u128>>| block.first().map_or(0, |Quantity(tip)| *tip);
        let tips = json.reward.into_iter().flatten().map(tip);
        let block = |(base_fee, tip): (&u128, u128)| BlockTip { base_fee: *base_fee, tip };
        Self {
            next_base_fee: base_fees.last().copied().filter(|fee| *fee > 0),
            blocks: base_fees.iter().zip(tips).map(block).collect(),
        }
    }
}
