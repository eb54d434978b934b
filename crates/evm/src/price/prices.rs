use thiserror::Error;

use crate::{
    node::{Node, NodeError},
    price::{Oracle, Quote, node_price::node_price, oracle::OracleError},
};

/// Whom to ask what gas costs.
#[derive(Debug, Clone)]
pub(crate) enum Prices {
    /// The node alone.
    Node,
    /// The node, and this oracle where it fails.
    NodeFirst(Oracle),
    /// This oracle, and the node where it fails. Of the base fee the node knows in either case.
    OracleFirst(Oracle),
}

/// Nobody says what gas costs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NoPrice {
    #[error("no price to be had: {0}")]
    Node(NodeError),
    #[error("no price to be had: {node}; the oracle at {origin}: {oracle}")]
    Neither { node: NodeError, origin: String, oracle: OracleError },
}

impl Prices {
    /// What gas costs now.
    pub(crate) async fn quote(&self, node: &Node) -> Result<Quote, NoPrice> {
        match self {
            Self::Node => node_price(node).await.map_err(NoPrice::Node),
            Self::NodeFirst(oracle) => match node_price(node).await {
                Ok(quote) => Ok(quote),
                Err(error) => {
                    let price = oracle.price().await;
                    price.map(Quote::alone).map_err(|of_oracle| neither(error, oracle, of_oracle))
                }
            },
            Self::OracleFirst(oracle) => match (oracle.price().await, node_price(node).await) {
                (Ok(price), Ok(quote)) => Ok(quote.at(price)),
                (Ok(price), Err(_)) => Ok(Quote::alone(price)),
                (Err(_), Ok(quote)) => Ok(quote),
                (Err(of_oracle), Err(error)) => Err(neither(error, oracle, of_oracle)),
            },
        }
    }
}

fn neither(node: NodeError, oracle: &Oracle, error: OracleError) -> NoPrice {
    NoPrice::Neither { node, origin: oracle.origin(), oracle: error }
}
