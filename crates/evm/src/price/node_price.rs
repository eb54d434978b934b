use super::{quote::GasQuote, tip::Tips};
use crate::node::{FeeHistory, NodeClient, NodeError};

/// How soon a transaction is to be mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It is the first one with its nonce.
    Usual,
    /// An earlier one with its nonce was not mined in time.
    Late,
}

/// The highest tip while too few blocks show what others pay: 1 gwei.
const TIP_ON_A_QUIET_CHAIN: u128 = 1_000_000_000;

/// The gas price of a node.
pub(super) async fn node_price(
    node: &NodeClient,
    tips: &Tips,
    urgency: Urgency,
) -> Result<GasQuote, NodeError> {
    let history = match node.fee_history().await {
        Err(error) if error.is_method_not_found() => None,
        history => Some(history?),
    };
    let base_fee = history.as_ref().and_then(|history| history.next_base_fee);
    match (history, base_fee) {
        (Some(history), Some(base_fee)) => {
            let tip = tip(node, &history, base_fee, tips, urgency).await?;
            Ok(GasQuote::with_base_fee(base_fee, tip))
        }
        _ => Ok(GasQuote::without_base_fee(node.gas_price().await?)),
    }
}

/// What others paid in the latest blocks. If too few blocks show that, the node's suggestion up to a low
/// maximum, because it follows the same few transactions and those of this process. A transaction that was
/// not mined in time offers at least what the node suggests. Never more than the limit.
async fn tip(
    node: &NodeClient,
    history: &FeeHistory,
    base_fee: u128,
    tips: &Tips,
    urgency: Urgency,
) -> Result<u128, NodeError> {
    let tip = match (tips.of_blocks(&history.blocks), urgency) {
        (Some(tip), Urgency::Usual) => tip,
        (Some(tip), Urgency::Late) => tip.max(suggested_tip(node, base_fee).await?),
        (None, Urgency::Usual) => suggested_tip(node, base_fee).await?.min(TIP_ON_A_QUIET_CHAIN),
        (None, Urgency::Late) => suggested_tip(node, base_fee).await?,
    };
    Ok(tip.clamp(1, tips.highest()))
}

/// The tip that the node suggests, or what is left of its gas price.
async fn suggested_tip(node: &NodeClient, base_fee: u128) -> Result<u128, NodeError> {
    if let Some(tip) = node.max_priority_fee().await? {
        return Ok(tip);
    }
    match node.gas_price().await {
        Ok(price) => Ok(price.saturating_sub(base_fee)),
        Err(error) if error.is_method_not_found() => Ok(0),
        Err(error) => Err(error),
    }
}
