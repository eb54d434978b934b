use std::{collections::HashMap, fmt, net::TcpListener, sync::Arc, time::Duration};

use grid_batch_core::batches::{BatchFormat, IntakeStore};
use grid_batch_core::claims::InstanceId;
use grid_batch_core::events::EventStore;
use grid_batch_core::ledger::Ledger;
use grid_batch_core::operators::OperatorStore;
use grid_batch_core::queries::{BatchQueryStore, Sample, SearchLimits, ServicePause, WaitReason};
use grid_batch_core::tokens::TokenStore;
use grid_batch_core::webhooks::{AllowedNetworks, WebhookStore};
use grid_batch_core::{
    BatchResult, Clock, InternalError, ItemId, ServiceId, SystemClock, Timestamp,
};
use grid_batch_support::{Jobs, ServicePattern};
use grid_batch_withdrawals::{CallRules, WithdrawalRules, WithdrawalStore};

use crate::{
    AccessControl, ApiBuildError, ApiListener, ApiOptions, AwaitedBatches, CommitProgress,
    GasAdminReport, HealthReport, HostName, InProcessApi, LedgerReport, Maintenance, MetricsText,
    OpenCounts, RateLimits, RunningApi, SignerPattern, TrustedProxies, WebOrigin,
    allow_list::AllowLists,
    batches::KnownWaits,
    guard::AllowedSites,
    parts::{ApiParts, WithdrawalParts},
    reads::ReadSources,
    running,
    state::{Actors, StoredCallback},
    webhooks::WebhookParts,
};

/// Builds an HTTP interface.
///
/// With a [format](ApiBuilder::with_format) and nothing else it accepts batches, for every service and from every
/// signer. By default it answers requests to the address of its listener and to the loopback names, has no callback, and is always healthy.
#[must_use]
pub struct ApiBuilder {
    parts: ApiParts,
}

impl ApiBuilder {
    /// An interface that stores batches in one store and reads their statuses from the other. Usually
    /// both are the same object.
    pub fn new(intake_store: Arc<dyn IntakeStore>, query_store: Arc<dyn BatchQueryStore>) -> Self {
        let parts = ApiParts {
            options: ApiOptions::default(),
            jobs: None,
            intake_store,
            query_store,
            format: None,
            allow_lists: AllowLists::default(),
            allowed_sites: AllowedSites::default(),
            access: None,
            rate_limits: RateLimits::default(),
            proxies: TrustedProxies::default(),
            service_rule: Arc::new(|_| Ok(())),
            ledger: None,
            pass_through: None,
            stored: StoredCallback::new(|_| ()),
            health: Arc::new(HealthReport::default),
            metrics: Arc::new(|_| ()),
            received: Arc::new(|_| ()),
            database_check: Arc::new(|| true),
            commit_progress: CommitProgress::default(),
            awaited: AwaitedBatches::default(),
            clock: Arc::new(SystemClock),
            serves_reads: false,
            read_sources: ReadSources::default(),
            events: None,
            webhooks: None,
            gas_admins: None,
            operators: None,
            actors: Actors::default(),
            maintenance: None,
            tokens: None,
            recall: Arc::new(|| ()),
            withdrawals: None,
            calls: None,
        };
        Self { parts }
    }

    fn with(mut self, change: impl FnOnce(&mut ApiParts)) -> Self {
        change(&mut self.parts);
        self
    }

    /// Accepts batches of this format.
    pub fn with_format(self, format: Arc<dyn BatchFormat>) -> Self {
        self.with(|parts| parts.format = Some(format))
    }

    /// Serves on the runtime of these jobs instead of one of its own.
    pub fn with_jobs(self, jobs: &Jobs) -> Self {
        self.with(|parts| parts.jobs = Some(jobs.clone()))
    }

    /// Sets the options.
    pub fn with_options(self, options: ApiOptions) -> Self {
        self.with(|parts| parts.options = options.capped())
    }

    /// Accepts batches only for services that the rule allows. Its error explains the rule to the
    /// client. It must not block.
    pub fn with_service_rule(
        self,
        rule: impl Fn(&ServiceId) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.service_rule = Arc::new(rule))
    }

    /// Accepts batches only for services of these forms; an empty list accepts all.
    pub fn with_allowed_services(self, services: Vec<ServicePattern>) -> Self {
        self.with(|parts| parts.allow_lists.services = services)
    }

    /// Accepts batches only from signers of these forms; an empty list accepts all. It is the signer of
    /// the batch that counts, not those of its transactions.
    pub fn with_allowed_signers(self, signers: Vec<SignerPattern>) -> Self {
        self.with(|parts| parts.allow_lists.signers = signers)
    }

    /// Also answers requests to these hosts. Others are refused, except those to the address of the
    /// listener and to the loopback names: a web page could have made its own name lead here.
    pub fn with_allowed_hosts(self, hosts: Vec<HostName>) -> Self {
        self.with(|parts| parts.allowed_sites.hosts = hosts)
    }

    /// Also answers requests of web pages of these origins. Those of others are refused, except pages of
    /// the host that the request was sent to.
    pub fn with_allowed_origins(self, origins: Vec<WebOrigin>) -> Self {
        self.with(|parts| parts.allowed_sites.origins = origins)
    }

    /// Answers requests as far as this allows them. Without it, everyone who reaches the interface may do
    /// everything.
    pub fn with_access(self, access: AccessControl) -> Self {
        self.with(|parts| parts.access = Some(access))
    }

    /// Limits how many batches clients and services may get stored in a second. By default, no rate is limited.
    pub fn with_rate_limits(self, limits: RateLimits) -> Self {
        self.with(|parts| parts.rate_limits = limits)
    }

    /// Believes these proxies where their requests come from. By default, no proxy is believed.
    pub fn with_trusted_proxies(self, proxies: TrustedProxies) -> Self {
        self.with(|parts| parts.proxies = proxies)
    }

    /// Accepts batches only for services that the ledger can have, and has as far as it has said so.
    pub fn with_ledger(mut self, ledger: Arc<dyn Ledger>) -> Self {
        let rule = Arc::clone(&ledger);
        self.parts.ledger = Some(ledger);
        self.with_service_rule(move |id| {
            rule.check_service_id(id).map_err(|error| error.to_string())
        })
    }

    /// Has the requests of clients of the ledger that do not concern batches stored here answered by one
    /// of its nodes.
    pub fn with_pass_through(self, ledger: Arc<dyn Ledger>) -> Self {
        self.with(|parts| parts.pass_through = Some(ledger))
    }

    /// Calls a function after each commit, before the clients are answered, with the services that
    /// have new batches. A new withdrawal counts as a batch of its gas admin. The next commit waits
    /// until the function returns.
    pub fn with_stored_callback(
        self,
        callback: impl Fn(&[ServiceId]) + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.stored = StoredCallback::new(callback))
    }

    /// Accepts withdrawals and rewards instead of batches. The rules must not block.
    pub fn with_withdrawals(
        self,
        store: Arc<dyn WithdrawalStore>,
        rules: Arc<dyn WithdrawalRules>,
    ) -> Self {
        self.with(|parts| parts.withdrawals = Some(WithdrawalParts { store, rules }))
    }

    /// Accepts any transactions of the accounts beside withdrawals, if withdrawals are accepted. The rules must not
    /// block.
    pub fn with_calls(self, rules: Arc<dyn CallRules>) -> Self {
        self.with(|parts| parts.calls = Some(rules))
    }

    /// Serves what is read below `/v1`: batches, services, claims and ledgers.
    pub fn with_reads(self) -> Self {
        self.with(|parts| parts.serves_reads = true)
    }

    /// Sets where it is read which services are paused. It may read the store.
    pub fn with_pauses(
        self,
        pauses: impl Fn(&[ServiceId]) -> BatchResult<HashMap<ServiceId, ServicePause>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.with(|parts| parts.read_sources.pauses = Some(Arc::new(pauses)))
    }

    /// Sets the function behind `GET /v1/ledgers`. It may read the store, and asks no node.
    pub fn with_ledgers(
        self,
        ledgers: impl Fn() -> BatchResult<Vec<LedgerReport>> + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.read_sources.ledgers = Some(Arc::new(ledgers)))
    }

    /// Sets what only this process knows of why the batches of a service wait: a node that does not answer, a locked
    /// row, a place that is not free, a ledger that is busy or does not report a batch. The function sends no request and
    /// does not use the store's database.
    pub fn with_known_waits(
        self,
        waits: impl Fn(&ServiceId) -> Vec<WaitReason> + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.read_sources.known_waits = KnownWaits(Some(Arc::new(waits))))
    }

    /// Sets how long evidence about a batch is looked for, which explanations tell.
    pub fn with_search_limits(self, limits: SearchLimits) -> Self {
        self.with(|parts| parts.read_sources.search = Some(limits))
    }

    /// Sets the function behind `GET /v1/history`: the samples since a time, in periods of a length. It may read the
    /// store.
    pub fn with_history(
        self,
        history: impl Fn(Timestamp, Duration) -> BatchResult<Vec<Sample>> + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.read_sources.history = Some(Arc::new(history)))
    }

    /// Sets the function behind `GET /v1/counts`. It must not block.
    pub fn with_counts(
        self,
        counts: impl Fn() -> Option<OpenCounts> + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.read_sources.counts = Some(Arc::new(counts)))
    }

    /// Serves the events of this store, also as the history of each batch.
    pub fn with_events(self, store: Arc<dyn EventStore>) -> Self {
        self.with(|parts| parts.events = Some(store))
    }

    /// Creates, lists, changes and removes the webhooks of this store. Something else delivers the events, also to these
    /// private networks.
    pub fn with_webhooks(self, store: Arc<dyn WebhookStore>, allowed: AllowedNetworks) -> Self {
        self.with(|parts| parts.webhooks = Some(WebhookParts { store, allowed }))
    }

    /// Carries out decisions about the whole database.
    pub fn with_maintenance(self, maintenance: Arc<dyn Maintenance>) -> Self {
        self.with(|parts| parts.maintenance = Some(maintenance))
    }

    /// Creates, lists and revokes the access tokens of this store.
    pub fn with_tokens(self, store: Arc<dyn TokenStore>) -> Self {
        self.with(|parts| parts.tokens = Some(store))
    }

    /// Sets the function behind `GET /v1/gas-admins`. It may read the store, and asks no node.
    pub fn with_gas_admins(
        self,
        reports: impl Fn() -> BatchResult<Vec<GasAdminReport>> + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.gas_admins = Some(Arc::new(reports)))
    }

    /// Serves what operators do: verbs about batches, and the log of what was done. The log names this
    /// instance.
    pub fn with_operators(
        mut self,
        store: Arc<dyn OperatorStore>,
        instance: impl Fn() -> Option<InstanceId> + Send + Sync + 'static,
    ) -> Self {
        self.parts.operators = Some(store);
        self.parts.actors.instance = Arc::new(instance);
        self
    }

    /// The same for a command that this user runs on the database: the log names the user, and no instance.
    pub fn with_command_user(mut self, store: Arc<dyn OperatorStore>, user: String) -> Self {
        self.parts.operators = Some(store);
        self.parts.actors.command_user = Some(user);
        self
    }

    /// Calls a function after an operator has paused, drained or held something, before the answer names the
    /// batches that are being sent. The function gives the batches back to the store that this process has taken and
    /// not sent. It may block.
    pub fn with_recall(self, recall: impl Fn() + Send + Sync + 'static) -> Self {
        self.with(|parts| parts.recall = Arc::new(recall))
    }

    /// Sets the function behind `GET /health`. It must not block.
    pub fn with_health(self, health: impl Fn() -> HealthReport + Send + Sync + 'static) -> Self {
        self.with(|parts| parts.health = Arc::new(health))
    }

    /// Adds what this function writes to `GET /metrics`. It must not block.
    pub fn with_metrics(self, metrics: impl Fn(&mut MetricsText) + Send + Sync + 'static) -> Self {
        self.with(|parts| parts.metrics = Arc::new(metrics))
    }

    /// Calls a function with the batches of a request before they are stored. It must return quickly.
    pub fn with_received_callback(
        self,
        received: impl Fn(&[ItemId]) + Send + Sync + 'static,
    ) -> Self {
        self.with(|parts| parts.received = Arc::new(received))
    }

    /// Answers requests with 503 while the database does not answer. The check must not block.
    pub fn with_database_check(self, answers: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.with(|parts| parts.database_check = Arc::new(answers))
    }

    /// Wakes requests that wait for batches when these end. Tell a clone of each end.
    pub fn with_awaited_batches(self, awaited: AwaitedBatches) -> Self {
        self.with(|parts| parts.awaited = awaited)
    }

    /// Shows there how long a commit of new batches takes.
    pub fn with_commit_progress(self, progress: CommitProgress) -> Self {
        self.with(|parts| parts.commit_progress = progress)
    }

    /// Sets the clock that gives the times of new rewards: the store's.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        self.with(|parts| parts.clock = clock)
    }

    #[cfg(test)]
    pub(crate) fn into_parts(self) -> ApiParts {
        self.parts
    }

    /// Checks the options, and returns an interface that is ready to serve.
    pub fn build(self) -> Result<Api, ApiBuildError> {
        self.parts.options.check()?;
        Ok(Api { parts: self.parts })
    }
}

impl fmt::Debug for ApiBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiBuilder").field("options", &self.parts.options).finish_non_exhaustive()
    }
}

/// An HTTP interface that does not serve yet.
pub struct Api {
    parts: ApiParts,
}

impl Api {
    /// Serves connections, on threads of its own, until it is shut down.
    pub fn serve(self, listener: TcpListener) -> Result<RunningApi, InternalError> {
        self.serve_all(vec![ApiListener::tcp(listener)])
    }

    /// The same for the connections of several listeners.
    pub fn serve_all(self, listeners: Vec<ApiListener>) -> Result<RunningApi, InternalError> {
        running::start(self.parts, listeners)
    }

    /// Serves no connections: answers requests of this process.
    pub fn in_process(self) -> Result<InProcessApi, InternalError> {
        running::start_in_process(self.parts)
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("options", &self.parts.options).finish_non_exhaustive()
    }
}
