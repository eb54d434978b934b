use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult, Clock, HeaderId, ServiceId, StatusUrlResolver};
use grid_batch_http::{HttpClient, HttpError};
use grid_batch_withdrawals::SigningStore;

use crate::{
    funds::AccountsWithoutFunds,
    key::GasAdminKey,
    node::NodeClient,
    options::{EvmOptions, OracleOptions},
    price::{GasPriceSource, Oracle},
    sent_times::SentTimes,
    signing_store::AsyncSigningStore,
    values::GasPrice,
};

/// What the sender and the readers of one adapter share.
#[derive(Debug)]
pub(crate) struct EvmContext {
    pub(crate) chain_id: u64,
    pub(crate) keys: HashMap<Address, GasAdminKey>,
    pub(crate) cap: GasPrice,
    pub(crate) pool_caps: HashMap<Address, GasPrice>,
    pub(crate) price_source: GasPriceSource,
    pub(crate) gate_interval: Duration,
    pub(crate) confirmations: u64,
    pub(crate) resend_after: Duration,
    pub(crate) connections: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sent_times: SentTimes,
    pub(crate) without_funds: AccountsWithoutFunds,
    /// Separate from `read_http`: connections close when the runtime that opened them shuts down,
    /// and the shutdown of a poller must not interrupt a transaction that is being sent.
    pub(crate) send_http: HttpClient,
    pub(crate) read_http: HttpClient,
    pub(crate) store: AsyncSigningStore,
    pub(crate) nodes: Arc<dyn StatusUrlResolver>,
}

impl EvmContext {
    pub(crate) fn new(
        options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
    ) -> Result<Self, HttpError> {
        let send_http = HttpClient::new(&options.http)?;
        let read_http = HttpClient::new(&options.http)?;
        Ok(Self {
            chain_id: options.chain_id,
            keys: options.keys.into_iter().map(|key| (key.address(), key)).collect(),
            cap: options.cap,
            pool_caps: options.pool_caps.into_iter().collect(),
            price_source: price_source(options.oracle, options.oracle_first, &send_http),
            gate_interval: options.gate_interval,
            confirmations: options.confirmations,
            resend_after: options.resend_after,
            connections: options.connections,
            clock: options.clock,
            sent_times: SentTimes::default(),
            without_funds: AccountsWithoutFunds::default(),
            send_http,
            read_http,
            store: AsyncSigningStore::new(store),
            nodes,
        })
    }

    /// Whether a transaction that is pending was sent so long ago that it is sent again.
    pub(crate) fn is_pending_too_long(&self, hash: [u8; 32]) -> bool {
        self.sent_times.elapsed(hash, self.clock.monotonic()) > self.resend_after
    }

    /// The nodes to ask about a batch, in order of preference.
    pub(crate) fn nodes_for(
        &self,
        http: &HttpClient,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> BatchResult<Vec<NodeClient>> {
        let urls = self.nodes.status_urls(service_id.as_str(), &batch_id.to_string());
        if urls.is_empty() {
            let reason = format!("no node is configured for service {service_id}");
            return Err(BatchError::InternalError(reason));
        }
        Ok(urls.into_iter().map(|url| NodeClient::new(http.clone(), url)).collect())
    }
}

fn price_source(
    oracle: Option<OracleOptions>,
    oracle_first: bool,
    http: &HttpClient,
) -> GasPriceSource {
    let Some(options) = oracle else { return GasPriceSource::Node };
    let oracle = Oracle::new(http.clone(), options);
    if oracle_first {
        GasPriceSource::OracleFirst(oracle)
    } else {
        GasPriceSource::NodeFirst(oracle)
    }
}
