use std::{fmt, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{BatchFormat, FormatError, NewBatch, StatusReport};
use grid_batch_core::evidence::{EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{
    Ledger, LedgerEventStream, LedgerFacts, Submission, SubmissionAnswer,
};
use grid_batch_core::{BatchResult, ScopeId, ScopeIdError, ServiceId};
use grid_batch_http::{HttpClient, HttpRequests};
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_withdrawals::SigningStore;

use crate::{
    AccountScopeId,
    context::EvmContext,
    facts::facts,
    gas::{GasWatch, WatchedAccount},
    heads::HeadWatch,
    identity::EvmIdentityReader,
    options::{EvmError, EvmOptions},
    settle::EvmAccountCheck,
};

/// One EVM chain, with the pools from which withdrawals are made. Clones share their observations.
///
/// Each runtime has connections of its own, so requests may run on any.
#[derive(Clone)]
pub struct Evm {
    pub(crate) context: Arc<EvmContext>,
    pub(crate) heads: Arc<HeadWatch>,
    identity: EvmIdentityReader,
}

impl Evm {
    /// The adapter of the chain with these nodes. `store` keeps the signed transactions.
    pub fn new(
        options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
    ) -> Result<Self, EvmError> {
        let client = Arc::new(HttpClient::new(&options.http)?);
        Self::with_client(options, store, nodes, client)
    }

    /// The same with another client, which sends the requests to nodes.
    pub fn with_client(
        options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
        client: Arc<dyn HttpRequests>,
    ) -> Result<Self, EvmError> {
        options.check()?;
        let identity = EvmIdentityReader::with_client(Arc::clone(&client));
        let context = Arc::new(EvmContext::new(options, store, nodes, client)?);
        let heads = Arc::new(HeadWatch::new(Arc::clone(&context)));
        Ok(Self { context, heads, identity })
    }

    /// Watches the gas price and the balances of these accounts. A balance is low if it pays for fewer withdrawals than
    /// `low_balance`. They are read once per `interval`.
    pub fn gas_watch(
        &self,
        accounts: Vec<WatchedAccount>,
        low_balance: u64,
        interval: Duration,
    ) -> GasWatch {
        GasWatch::new(Arc::clone(&self.context), accounts, low_balance, interval)
    }

    /// Returns a check of whether all transactions that an account has sent are stored.
    pub fn account_check(&self) -> EvmAccountCheck {
        EvmAccountCheck(Arc::clone(&self.context))
    }
}

impl Ledger for Evm {
    fn facts(&self) -> LedgerFacts {
        facts(self.context.options.resend_after)
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        Arc::new(NoBatches)
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(self.identity.read_id(node))
    }

    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(self.send_withdrawal(node, submission))
    }

    fn statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(self.read_statuses(service_id, batch_ids))
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(self.find(batch))
    }

    fn connections(&self) -> usize {
        self.context.options.connections
    }

    fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
        AccountScopeId::from_service_id(service_id).map(drop)
    }

    fn events<'a>(&'a self, service_id: &'a str) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(async { Ok(self.subscribe(service_id)) })
    }
}

/// Clients request withdrawals, and send no batches.
struct NoBatches;

impl BatchFormat for NoBatches {
    fn read(&self, _service_id: &ServiceId, _bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
        let message = "clients of this ledger request withdrawals; it takes no batches";
        Err(FormatError::Undecodable(message.to_owned()))
    }
}

impl fmt::Debug for Evm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evm").field("nodes", &self.context.nodes).finish_non_exhaustive()
    }
}
