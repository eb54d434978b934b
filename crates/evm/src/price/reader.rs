use grid_batch_withdrawals::NewSignedTransaction;

use super::{
    node_price::Urgency,
    price_source::{GasPriceSource, NoPriceError},
    quote::GasQuote,
    tip::Tips,
};
use crate::{node::NodeClient, values::GasPrice};

/// Reads the gas price, with the tip to offer.
#[derive(Debug)]
pub(crate) struct PriceReader {
    source: GasPriceSource,
    tips: Tips,
}

impl PriceReader {
    /// Reads from this source, and offers tips up to this limit.
    pub(crate) fn new(source: GasPriceSource, maximum_tip: GasPrice) -> Self {
        Self { source, tips: Tips::new(maximum_tip) }
    }

    /// The current gas price.
    pub(crate) async fn quote(&self, node: &NodeClient) -> Result<GasQuote, NoPriceError> {
        self.quote_for(node, Urgency::Usual).await
    }

    /// The current gas price for a transaction that is this urgent.
    pub(crate) async fn quote_for(
        &self,
        node: &NodeClient,
        urgency: Urgency,
    ) -> Result<GasQuote, NoPriceError> {
        self.source.quote_with(node, &self.tips, urgency).await
    }

    /// Remembers a transaction that was signed here: what it pays tells nothing about others.
    pub(crate) fn record(&self, signed: &NewSignedTransaction) {
        self.tips.record(signed);
    }
}
