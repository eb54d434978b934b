use crate::{
    node::{FeeHistory, Node, NodeError},
    price::Quote,
};

/// The price that a node gives.
pub(super) async fn node_price(node: &Node) -> Result<Quote, NodeError> {
    let history = match node.fee_history().await {
        Err(error) if error.is_no_such_method() => None,
        history => Some(history?),
    };
    let base_fee = history.as_ref().and_then(|history| history.next_base_fee);
    match (history, base_fee) {
        (Some(history), Some(base_fee)) => Ok(Quote::of_base(base_fee, tip(node, history).await?)),
        _ => Ok(Quote::without_base(node.gas_price().await?)),
    }
}

/// What half of the last blocks' transactions gave, and not less than the node suggests: blocks that
/// were empty say nothing.
async fn tip(node: &Node, history: FeeHistory) -> Result<u128, NodeError> {
    let suggested = node.max_priority_fee().await?.unwrap_or_default();
    Ok(median(history.median_tips).max(suggested).max(1))
}

fn median(mut tips: Vec<u128>) -> u128 {
    tips.sort_unstable();
    tips.get(tips.len() / 2).copied().unwrap_or_default()
}
