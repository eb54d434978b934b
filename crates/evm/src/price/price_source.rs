use thiserror::Error;

use super::{
    oracle::{Oracle, OracleError},
    quote::GasQuote,
    tip::Tips,
};
use crate::node::{FeeHistory, NodeClient, NodeError};

/// The limit on the tip while too few blocks show what others pay: 1 gwei.
const TIP_ON_AN_IDLE_CHAIN: u128 = 1_000_000_000;

/// How soon a transaction is to be mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It is the first transaction with its nonce.
    Usual,
    /// An earlier transaction with its nonce was not mined in time.
    Late,
}

/// Where the gas price is read.
#[derive(Debug, Clone)]
pub(crate) enum GasPriceSource {
    /// The node only.
    Node,
    /// The node, or this oracle if the node fails.
    NodeFirst(Oracle),
    /// This oracle, or the node if the oracle fails. The base fee always comes from the node.
    OracleFirst(Oracle),
}

/// No source has a gas price.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NoPriceError {
    #[error("the gas price is unavailable")]
    Node(#[source] NodeError),
    #[error("the gas price is unavailable; the oracle at {url} failed: {oracle}; the node failed")]
    Both {
        url: String,
        oracle: OracleError,
        #[source]
        node: NodeError,
    },
}

impl GasPriceSource {
    /// The current gas price, with the tip to offer.
    pub(crate) async fn quote_with(
        &self,
        node: &NodeClient,
        tips: &Tips,
        urgency: Urgency,
    ) -> Result<GasQuote, NoPriceError> {
        match self {
            Self::Node => node_price(node, tips, urgency).await.map_err(NoPriceError::Node),
            Self::NodeFirst(oracle) => match node_price(node, tips, urgency).await {
                Ok(quote) => Ok(quote),
                Err(node_error) => match oracle.price().await {
                    Ok(price) => Ok(GasQuote::oracle_only(price)),
                    Err(error) => Err(both_failed(oracle, error, node_error)),
                },
            },
            Self::OracleFirst(oracle) => {
                match (oracle.price().await, node_price(node, tips, urgency).await) {
                    (Ok(price), Ok(quote)) => Ok(quote.with_oracle_price(price)),
                    (Ok(price), Err(_)) => Ok(GasQuote::oracle_only(price)),
                    (Err(_), Ok(quote)) => Ok(quote),
                    (Err(error), Err(node_error)) => Err(both_failed(oracle, error, node_error)),
                }
            }
        }
    }
}

fn both_failed(oracle: &Oracle, error: OracleError, node: NodeError) -> NoPriceError {
    NoPriceError::Both { url: oracle.redacted_url(), oracle: error, node }
}

/// The gas price of a node.
async fn node_price(
    node: &NodeClient,
    tips: &Tips,
    urgency: Urgency,
) -> Result<GasQuote, NodeError> {
    let history = match node.fee_history().await {
        Err(error) if error.is_method_not_found() => None,
        // Without a base fee, the method of hardhat and of ganache fails.
        Err(NodeError::Rpc { .. }) if node.has_base_fee().await == Ok(false) => None,
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

/// What others paid in the latest blocks. If too few blocks show this, the node's suggestion up to a low maximum,
/// because the suggestion is based on the same few transactions and on those of this process. A transaction that was
/// not mined in time offers at least what the node suggests. The tip never exceeds the limit.
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
        (None, Urgency::Usual) => suggested_tip(node, base_fee).await?.min(TIP_ON_AN_IDLE_CHAIN),
        (None, Urgency::Late) => suggested_tip(node, base_fee).await?,
    };
    Ok(tip.clamp(1, tips.highest()))
}

/// The tip that the node suggests, or its gas price minus the base fee.
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
