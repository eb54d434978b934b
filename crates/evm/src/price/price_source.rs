use thiserror::Error;

use super::{
    node_price::{Urgency, node_price},
    oracle::{Oracle, OracleError},
    quote::GasQuote,
    tip::Tips,
};
use crate::node::{NodeClient, NodeError};

/// Where the gas price is read.
#[derive(Debug, Clone)]
pub(crate) enum GasPriceSource {
    /// The node only.
    Node,
    /// The node, and this oracle if the node fails.
    NodeFirst(Oracle),
    /// This oracle, and the node if the oracle fails. The base fee always comes from the node.
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

#[cfg(test)]
use crate::values::GasPrice;

#[cfg(test)]
impl GasPriceSource {
    /// The current gas price before anything was signed, with any tip.
    pub(crate) async fn quote(&self, node: &NodeClient) -> Result<GasQuote, NoPriceError> {
        self.quote_with(node, &Tips::new(GasPrice::from_wei(u128::MAX)), Urgency::Usual).await
    }
}

fn both_failed(oracle: &Oracle, error: OracleError, node: NodeError) -> NoPriceError {
    NoPriceError::Both { url: oracle.redacted_url(), oracle: error, node }
}
