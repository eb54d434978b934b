use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult, Clock, HeaderId, ServiceId, StatusUrlResolver};
use grid_batch_http::{HttpClient, HttpError};
use grid_batch_withdrawals::SigningStore;

use crate::{
    EvmOptions, GasAdminKey, GasPrice, OracleOptions,
    node::Node,
    price::{Oracle, Prices},
    records::Records,
};

/// What the parts of one adapter share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) chain_id: u64,
    pub(crate) keys: HashMap<Address, GasAdminKey>,
    pub(crate) cap: GasPrice,
    pub(crate) pool_caps: HashMap<Address, GasPrice>,
    pub(crate) prices: Prices,
    pub(crate) gate_interval: Duration,
    pub(crate) confirmations: u64,
    pub(crate) resend_after: Duration,
    pub(crate) connections: usize,
    pub(crate) clock: Arc<dyn Clock>,
    /// Connections end with the runtime that opened them, and the end of a poller's must not leave
    /// a withdrawal in doubt.
    pub(crate) sending: HttpClient,
    pub(crate) asking: HttpClient,
    pub(crate) records: Records,
    pub(crate) nodes: Arc<dyn StatusUrlResolver>,
}

impl Shared {
    pub(crate) fn new(
        options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
    ) -> Result<Self, HttpError> {
        let [sending, asking] = [HttpClient::new(&options.http)?, HttpClient::new(&options.http)?];
        Ok(Self {
            chain_id: options.chain_id,
            keys: options.keys.into_iter().map(|key| (key.address(), key)).collect(),
            cap: options.cap,
            pool_caps: options.pool_caps.into_iter().collect(),
            prices: prices_of(options.oracle, options.oracle_first, &sending),
            gate_interval: options.gate_interval,
            confirmations: options.confirmations,
            resend_after: options.resend_after,
            connections: options.connections,
            clock: options.clock,
            sending,
            asking,
            records: Records::new(store),
            nodes,
        })
    }

    /// The nodes to ask about a batch, the best first.
    pub(crate) fn nodes_of(
        &self,
        http: &HttpClient,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> BatchResult<Vec<Node>> {
        let urls = self.nodes.status_urls(service_id.as_str(), &batch_id.to_string());
        if urls.is_empty() {
            let reason = format!("there is no node to ask about the service {service_id}");
            return Err(BatchError::InternalError(reason));
        }
        Ok(urls.into_iter().map(|url| Node::new(http.clone(), url)).collect())
    }
}

fn prices_of(oracle: Option<OracleOptions>, oracle_first: bool, http: &HttpClient) -> Prices {
    let Some(OracleOptions { url, pointer }) = oracle else { return Prices::Node };
    let oracle = Oracle::new(http.clone(), url, pointer);
    if oracle_first { Prices::OracleFirst(oracle) } else { Prices::NodeFirst(oracle) }
}
