//! The HTTP interface: what it listens at, and what it shows and takes.

use std::{net::SocketAddr, sync::Arc};

use grid_batch_api::{
    AccessControl, AccessMode, ApiBuilder, ApiListener, ApiOptions, CommitProgress, ListenAddress,
    RunningApi, TlsCertificate, TooFewFileDescriptorsError, fitting_connections,
};
use grid_batch_claims::RecordedStream;
#[cfg(feature = "evm")]
use grid_batch_core::ServiceId;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::queries::{BatchCounts, SearchLimits};
#[cfg(feature = "evm")]
use grid_batch_monitoring::gas_reports;
use grid_batch_monitoring::{Health, MetricsSources, WaitSources, ledger_report};
use grid_batch_poller::{EventFollower, MonitorOptions};
use grid_batch_queuer::Recall;
use grid_batch_store::ClaimStore;
use grid_batch_support::is_open_to_others;
use log::warn;

use super::{
    StartError, base::Base, compose::monitor_options, ledger::ServerLedger,
    maintenance::DatabaseMaintenance, shared::Shared,
};
use crate::{Config, PollConfig};

/// What the HTTP interface shows, beside the store.
pub(super) struct HttpInterface {
    pub(super) health: Health,
    pub(super) metrics: MetricsSources,
    pub(super) access: AccessControl,
    pub(super) commits: CommitProgress,
    pub(super) recall: Recall<ClaimStore>,
    pub(super) stream: RecordedStream,
}

impl HttpInterface {
    /// Starts to serve.
    pub(super) fn serve(
        self,
        base: &Base<'_>,
        shared: &Shared,
        opened: ServerLedger,
        listeners: Vec<ApiListener>,
        connections: usize,
    ) -> Result<RunningApi, StartError> {
        let Self { health, metrics, access, commits, recall, stream } = self;
        let (queues, samples) = (metrics.queues.clone(), base.store.clone());
        let (stages, claims) = (shared.stages.clone(), base.claims.clone());
        let api =
            configure(base, shared, health).with_options(api_options(base.config, connections));
        let api = with_withdrawals(api, base, opened)
            .with_jobs(&base.jobs)
            .with_stored_callback(move |services| stream.recorded(Recorded::Stored(services)))
            .with_operators(Arc::new(base.store.clone()), move || Some(claims.instance()))
            .with_recall(move || {
                if let Err(error) = recall.run() {
                    warn!(error:%;
                        "cannot call back batches that an operator has stopped; it is tried again");
                }
            })
            .with_access(access)
            .with_commit_progress(commits)
            .with_awaited_batches(shared.awaited.clone())
            .with_received_callback(move |ids| stages.received(ids))
            .with_metrics(move |text| metrics.write(text))
            .with_counts(move || queues.counts())
            .with_history(move |since, period| BatchCounts::samples(&samples, since, period))
            .with_clock(base.config.clock());
        Ok(api.build().map_err(StartError::part)?.serve_all(listeners)?)
    }
}

/// The number of HTTP connections that fit into the limit of file descriptors beside what the other parts need. An error
/// if they are too few to be of use.
pub fn fitting_http_connections(config: &Config) -> Result<usize, StartError> {
    /// An SQLite connection has the database, its log and its index open.
    const FILES_OF_A_DATABASE_CONNECTION: usize = 3;
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let database = (size(config.store.connections) + 2) * FILES_OF_A_DATABASE_CONNECTION;
    let ledger = size(config.submit.concurrency) + PollConfig::CONNECTIONS;
    let others = database + ledger + config.ledger.event_sockets;
    fitting_connections(others).map_err(|TooFewFileDescriptorsError { limit, needed }| {
        StartError::FileDescriptors { limit, needed }
    })
}

/// Opens all listeners.
pub(super) fn open_listeners(config: &Config) -> Result<Vec<ApiListener>, StartError> {
    let certificate = certificate(config)?;
    warn_of_exposed(config);
    config
        .general
        .listen
        .iter()
        .map(|address| {
            let failed = |source| StartError::Listen { address: address.to_string(), source };
            let listener = address.open(certificate.as_ref(), config.http.socket_mode.0);
            listener.map_err(failed)
        })
        .collect()
}

fn certificate(config: &Config) -> Result<Option<TlsCertificate>, StartError> {
    let (Some(certificate), Some(key)) = (&config.http.tls_certificate, &config.http.tls_key)
    else {
        return Ok(None);
    };
    if is_open_to_others(key) {
        warn!(file:% = key.display(); "other users can read the key; restrict it with chmod 600");
    }
    Ok(Some(TlsCertificate::read(certificate.clone(), key.clone())?))
}

fn warn_of_exposed(config: &Config) {
    let exposed = |address: &&ListenAddress| address.is_reached_from_elsewhere();
    for address in config.general.listen.iter().filter(exposed) {
        if config.access_mode() != AccessMode::Tokens {
            warn!(address:%; "everyone who reaches the address may do everything (access.allow_anonymous)");
        } else if matches!(address, ListenAddress::Tcp(_)) && config.http.trusted_proxies.is_empty()
        {
            warn!(address:%; "tokens are sent to the address without encryption; use tls: or a proxy");
        }
    }
}

/// The URL of the first listener.
pub(super) fn url(config: &Config, local_addr: SocketAddr) -> String {
    let addresses = &config.general.listen;
    match addresses.iter().find(|address| address.socket_addr().is_some()) {
        Some(ListenAddress::Tls(_)) => format!("https://{local_addr}"),
        Some(_) => format!("http://{local_addr}"),
        None => addresses.first().map_or_else(String::new, ToString::to_string),
    }
}

fn api_options(config: &Config, connections: usize) -> ApiOptions {
    let usual = ApiOptions::default();
    ApiOptions {
        body_limit: config.intake.body_limit,
        memory_limit: config.intake.body_limit.max(usual.memory_limit),
        max_connections: connections,
        drain_timeout: config.times().drain_limit.min(usual.drain_timeout),
        ..usual
    }
}

fn configure(base: &Base<'_>, shared: &Shared, health: Health) -> ApiBuilder {
    let Base { config, ledger, .. } = base;
    let (clock, follower) = (base.store.clock().clone(), shared.follower.clone());
    let database = health.clone();
    let store = Arc::new(base.store.clone());
    let maintenance = DatabaseMaintenance { config: (*config).clone(), store: base.store.clone() };
    let mut api = ApiBuilder::new(store.clone(), store.clone())
        .with_format(ledger.format())
        .with_events(store.clone())
        .with_tokens(store.clone())
        .with_maintenance(Arc::new(maintenance))
        .with_allowed_hosts(config.http.allowed_hosts.clone())
        .with_allowed_origins(config.http.allowed_origins.clone())
        .with_trusted_proxies(config.http.proxies())
        .with_rate_limits(config.rate_limits())
        .with_allowed_services(config.intake.services.clone())
        .with_allowed_signers(config.intake.signers.clone())
        .with_ledger(Arc::clone(ledger))
        .with_database_check(move || database.database_answers())
        .with_health(move || {
            let silent_streams = follower.as_ref().map_or(0, EventFollower::silent_streams);
            let silent_streams = u32::try_from(silent_streams).unwrap_or(u32::MAX);
            health.report().with_measured([
                ("clock_ahead_seconds", clock.skew().ahead_seconds()),
                ("silent_event_streams", f64::from(silent_streams)),
            ])
        });
    let MonitorOptions { quiet_after, hold_after, give_up_after, .. } =
        monitor_options(config, ledger.facts());
    let search = SearchLimits { quiet_after, hold_after, give_up_after };
    api = with_reads(api, base, shared).with_search_limits(search);
    if config.http.pass_through {
        api = api.with_pass_through(Arc::clone(ledger));
    }
    if config.events.enabled {
        api = api.with_webhooks(store.clone(), config.delivery_options().allowed);
    }
    api
}

/// What is read from the store, and from memory.
fn with_reads(api: ApiBuilder, base: &Base<'_>, shared: &Shared) -> ApiBuilder {
    let [locked, pauses, ledgers] = [(); 3].map(|()| base.store.clone());
    let check = base.check.clone();
    let waits = WaitSources {
        table: shared.table.clone(),
        delayed: shared.delayed.clone(),
        check: check.clone(),
        locked_since: Arc::new(move |service| locked.locked_since(service)),
        clock: base.config.clock(),
    };
    api.with_reads()
        .with_pauses(move |services| Ok(pauses.pauses(services)?))
        .with_known_waits(move |service| waits.of(service))
        .with_ledgers(move || Ok(vec![ledger_report(&check, ledgers.ledger()?)]))
}

/// What the interface shows and takes if the ledger has pools.
#[cfg(not(feature = "evm"))]
fn with_withdrawals(api: ApiBuilder, _: &Base<'_>, _: ServerLedger) -> ApiBuilder {
    api
}

/// What the interface shows and takes if the ledger has pools.
#[cfg(feature = "evm")]
fn with_withdrawals(mut api: ApiBuilder, base: &Base<'_>, opened: ServerLedger) -> ApiBuilder {
    if let Some(gas) = opened.gas {
        let (store, limits) = (base.store.clone(), Arc::clone(&base.config.payment_limits));
        api = api.with_gas_admins(move || {
            let queues = |services: &[ServiceId]| Ok(store.gas_admin_queues(services)?);
            gas_reports(&*gas, &limits, queues, |pools| Ok(store.pool_sums(pools)?))
        });
    }
    if let Some(rules) = opened.withdrawals {
        api = api.with_withdrawals(Arc::new(base.store.clone()), rules);
    }
    if let Some(rules) = opened.calls {
        api = api.with_calls(rules);
    }
    api
}
