use super::quote::GasQuote;
use crate::node::{FeeHistory, NodeClient, NodeError};

/// The gas price of a node.
pub(super) async fn node_price(node: &NodeClient) -> Result<GasQuote, NodeError> {
    let history = match node.fee_history().await {
        Err(error) if error.is_method_not_found() => None,
        history => Some(history?),
    };
    let base_fee = history.as_ref().and_then(|history| history.next_base_fee);
    match (history, base_fee) {
        (Some(history), Some(base_fee)) => {
            Ok(GasQuote::with_base_fee(base_fee, tip(node, history).await?))
        }
        _ => Ok(GasQuote::without_base_fee(node.gas_price().await?)),
    }
}

/// The median tip of the latest blocks, and at least what the node suggests: empty blocks have no
/// tips.
async fn tip(node: &NodeClient, history: FeeHistory) -> Result<u128, NodeError> {
    let suggested = node.max_priority_fee().await?.unwrap_or_default();
    Ok(median(history.median_tips).max(suggested).max(1))
}

fn median(mut tips: Vec<u128>) -> u128 {
    tips.sort_unstable();
    tips.get(tips.len() / 2).copied().unwrap_or_default()
}
