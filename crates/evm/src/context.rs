use std::{collections::HashMap, iter, mem, sync::Arc};

use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult, ItemId, MonotonicTime, ServiceId};
use grid_batch_http::{HttpClient, HttpError, HttpRequests};
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_support::ErrorChain;
use grid_batch_withdrawals::{Call, CallRules, Payment, SigningStore, WithdrawalRules};

use crate::{
    account::SkippedNodes,
    ahead::AheadPauses,
    chain_facts::ChainFacts,
    gas::GasObservations,
    heads::HeadWakeUp,
    memory::Memory,
    node::NodeClient,
    options::EvmOptions,
    price::{GasPriceSource, GasQuote, NoPriceError, Oracle, Tips, Urgency},
    send::{ParkedLog, UnknownPendingLog},
    sent_times::SentTimes,
    signer::{AccountSigner, TransactionSigner},
    signing_store::AsyncSigningStore,
    sync::{HighestBlock, PoolRefusals},
    values::{GasPrice, parse_address},
};

/// The state that the sender and the readers of one adapter share.
#[derive(Debug)]
pub(crate) struct EvmContext {
    pub(crate) options: EvmOptions,
    pub(crate) signers: HashMap<Address, AccountSigner>,
    pub(crate) price_source: GasPriceSource,
    pub(crate) tips: Tips,
    pub(crate) ahead_pauses: AheadPauses,
    /// The services for which nothing is signed ahead, because a stored nonce is not settled.
    pub(crate) not_signing_ahead: Memory<ServiceId, bool>,
    /// The services for which transactions that were signed ahead could only be sent with errors.
    pub(crate) refused_ahead: Memory<ServiceId, bool>,
    pub(crate) unknown_pending: UnknownPendingLog,
    pub(crate) parked_log: ParkedLog,
    pub(crate) wake_up: HeadWakeUp,
    pub(crate) sent_times: SentTimes,
    pub(crate) gas: GasObservations,
    pub(crate) facts: ChainFacts,
    pub(crate) highest_block: HighestBlock,
    pub(crate) pool_refusals: PoolRefusals,
    pub(crate) skipped_nodes: SkippedNodes,
    /// Each runtime has connections of its own, so the shutdown of a poller does not interrupt a transaction that is
    /// being sent.
    pub(crate) http: Arc<dyn HttpRequests>,
    pub(crate) store: AsyncSigningStore,
    pub(crate) nodes: Arc<dyn StatusUrlResolver>,
}

impl EvmContext {
    pub(crate) fn new(
        mut options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
        http: Arc<dyn HttpRequests>,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            signers: mem::take(&mut options.signers).into_iter().map(by_account).collect(),
            price_source: price_source(&options)?,
            tips: Tips::new(options.maximum_tip),
            ahead_pauses: AheadPauses::default(),
            not_signing_ahead: Memory::default(),
            refused_ahead: Memory::default(),
            unknown_pending: UnknownPendingLog::default(),
            parked_log: ParkedLog::default(),
            wake_up: HeadWakeUp::new(),
            sent_times: SentTimes::default(),
            gas: GasObservations::default(),
            facts: ChainFacts::default(),
            highest_block: HighestBlock::default(),
            pool_refusals: PoolRefusals::default(),
            skipped_nodes: SkippedNodes::default(),
            http,
            store: AsyncSigningStore::new(store),
            nodes,
            options,
        })
    }

    pub(crate) fn monotonic(&self) -> MonotonicTime {
        self.options.clock.monotonic()
    }

    /// The cap of the gas price for this pool.
    pub(crate) fn cap_of(&self, pool: Address) -> GasPrice {
        let own = self.options.pool_caps.iter().rfind(|(of, _)| *of == pool);
        own.map_or(self.options.cap, |(_, cap)| *cap)
    }

    /// The highest cap of what waits at a pool or at a gate of calls. `None`: it is neither.
    pub(crate) fn highest_cap_at(&self, pool: &str) -> Option<GasPrice> {
        if let Ok(pool) = parse_address(pool) {
            return Some(self.cap_of(pool));
        }
        let highest = Call::highest_price_at(pool)?.map_or(self.options.cap, GasPrice::from_wei);
        Some(highest.min(self.options.cap))
    }

    /// The cap for a withdrawal or a call. The own limit of a call does not apply to its cancellation. `None`: the pool
    /// cannot be read.
    pub(crate) fn cap_for(&self, payment: &Payment) -> Option<GasPrice> {
        let cap = self.options.cap;
        match &payment.call {
            None => parse_address(&payment.pool).ok().map(|pool| self.cap_of(pool)),
            Some(_) if payment.cancel_requested => Some(cap),
            Some(call) => Some(
                call.maximum_gas_price
                    .map_or(cap, |price| GasPrice::from_wei(price.into()).min(cap)),
            ),
        }
    }

    /// Checks a withdrawal or a call of an account before it is signed. The error says why it fails.
    pub(crate) fn check_request(
        &self,
        account: &ServiceId,
        payment: &Payment,
    ) -> Result<(), String> {
        match &payment.call {
            Some(call) if call.is_too_late(self.options.clock.now()) => {
                Err("its deadline has passed before it was signed".to_owned())
            }
            Some(call) => self.options.calls.may_be_sent(account, call),
            None => self.options.rules.may_be_paid(&payment.pool, &payment.beneficiary),
        }
    }

    /// The highest cap of the pools and the calls of a gas admin.
    pub(crate) fn highest_cap(&self, service_id: &ServiceId) -> Option<GasPrice> {
        let of_pools = self.options.rules.pools_of(service_id).map(|pool| self.cap_of(pool)).max();
        let of_calls = self.options.calls.sends_from(service_id).then_some(self.options.cap);
        of_pools.max(of_calls)
    }

    /// The current gas price at a node, with a tip for a transaction that is this urgent.
    pub(crate) async fn quote(
        &self,
        node: &NodeClient,
        urgency: Urgency,
    ) -> Result<GasQuote, NoPriceError> {
        let quote = self.read_price(node, urgency).await?;
        self.facts.set_quote(quote, self.monotonic());
        Ok(if self.facts.is_legacy_only() {
            GasQuote::without_base_fee(quote.price)
        } else {
            quote
        })
    }

    /// Reads the gas price, and remembers it, or why it could not be read.
    pub(crate) async fn read_price(
        &self,
        node: &NodeClient,
        urgency: Urgency,
    ) -> Result<GasQuote, NoPriceError> {
        let quote = self.price_source.quote_with(node, &self.tips, urgency).await;
        match &quote {
            Ok(quote) => {
                let caps =
                    self.options.pool_caps.iter().map(|(_, cap)| *cap).chain([self.options.cap]);
                let price = Ok(GasPrice::from_wei(quote.price));
                self.gas.note_price(price, caps, self.monotonic());
            }
            Err(error) => self.note_price_error(ErrorChain(error).to_string()),
        }
        quote
    }

    /// The gas limit of a block, as it was observed lately.
    pub(crate) async fn block_gas_limit(&self, node: &NodeClient) -> Option<u64> {
        match self.facts.block_gas_limit(self.monotonic()) {
            Some(limit) => Some(limit),
            None => self.read_block_gas_limit(node).await,
        }
    }

    /// `None`: the node does not report it, so it is not known whether a transaction exceeds it.
    pub(crate) async fn read_block_gas_limit(&self, node: &NodeClient) -> Option<u64> {
        let limit = node.head().await.ok()?.gas_limit?;
        self.facts.set_block_gas_limit(limit, self.monotonic());
        Some(limit)
    }

    /// Remembers why the gas price could not be read.
    pub(crate) fn note_price_error(&self, error: String) {
        self.gas.note_price(Err(error), iter::empty(), self.monotonic());
    }

    /// Whether a pending transaction was sent so long ago that it is sent again.
    pub(crate) fn is_pending_too_long(&self, hash: [u8; 32]) -> bool {
        self.sent_times.elapsed(hash, self.monotonic()) > self.options.resend_after
    }

    /// How many withdrawals after the one under way a look examines: those that are not mined, those that are not
    /// final, and the next ones.
    pub(crate) fn following_limit(&self) -> usize {
        const MOST: usize = 512;
        let blocks = usize::try_from(self.options.confirmations).unwrap_or(MOST).saturating_add(1);
        self.options.in_flight.saturating_mul(blocks).min(MOST.max(self.options.in_flight))
    }

    /// The nodes to ask about a batch, in order of preference.
    pub(crate) fn nodes_for(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Vec<NodeClient>> {
        let urls = self.nodes.status_urls(service_id.as_str(), &batch_id.to_string());
        if urls.is_empty() {
            let reason = format!("no node is configured for service {service_id}");
            return Err(BatchError::InternalError(reason));
        }
        Ok(urls.into_iter().map(|url| self.node(url)).collect())
    }

    /// The node at this URL.
    pub(crate) fn node(&self, url: impl Into<String>) -> NodeClient {
        NodeClient::new(Arc::clone(&self.http), url)
    }
}

fn by_account(signer: Arc<dyn TransactionSigner>) -> (Address, AccountSigner) {
    (signer.address(), AccountSigner::new(signer))
}

fn price_source(options: &EvmOptions) -> Result<GasPriceSource, HttpError> {
    let Some(oracle) = options.oracle.clone() else { return Ok(GasPriceSource::Node) };
    let oracle = Oracle::new(Arc::new(HttpClient::new(&oracle.http)?), oracle);
    Ok(if options.oracle_first {
        GasPriceSource::OracleFirst(oracle)
    } else {
        GasPriceSource::NodeFirst(oracle)
    })
}
