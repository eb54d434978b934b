//! Which part is connected to which.

use std::{sync::Arc, time::Duration};

use grid_batch_api::CommitProgress;
use grid_batch_claims::{
    ClaimMaintainer, ClaimMaintainerOptions, ClaimRequests, NotificationListener, OrphanRecovery,
    ReceivedClaimRequests, RecordedStream, Retention, RetentionOptions,
};
use grid_batch_core::batches::FormatError;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_core::{ScopeIdError, ServiceId};
use grid_batch_ledger_check::{LedgerCheck, compare_states};
use grid_batch_monitoring::{
    CompareSettings, CountsLog, EventObserver, Health, HealthSources, HistoryRecorder,
    MetricsSources, QueueMetrics, QueueSources, watch_gas,
};
use grid_batch_poller::{
    InconclusivePolicy, LedgerStatusReader, LookupProgress, MissingTransactionMonitor,
    MissingTransactionOptions, MonitorCounters, MonitorOptions, PollingMonitorBuilder,
};
use grid_batch_queuer::{BatchQueue, Recall};
use grid_batch_store::{ClaimStore, Dependents, IntakeLists, MonitorStore, Store, StoreObserver};
use grid_batch_submitter::{LedgerSender, RunnableSubmitter, SubmitterBuilder, SubmitterCounters};
use grid_batch_support::Stops;
use grid_batch_webhooks::{Deliverer, DeliveryParts};
use log::info;

use super::{
    RunningServer, StartError, access,
    base::Base,
    http_interface::{self, HttpInterface},
    ledger::{OpenFn, ServerLedger},
    shared::Shared,
    traces::trace_export,
};
use crate::Config;

/// Starts all parts.
pub(super) fn compose(
    config: &Config,
    check: LedgerCheck,
    open_ledger: OpenFn<'_>,
) -> Result<RunningServer, StartError> {
    let connections = http_interface::fitting_http_connections(config)?;
    let listeners = http_interface::open_listeners(config)?;
    let (base, opened) = Base::open(config, check, open_ledger)?;
    let parts = &mut Stops::default();
    base.start_ledger_check(parts)?;
    let shared = Shared::start(&base, parts)?;
    let (claim_requests, received) = ClaimRequests::new();
    let stream = &shared.stream(&base, &claim_requests);

    start_state_roots(&base, stream, parts);
    let poller = start_poller(&base, &shared, stream, parts)?;
    let lookups = start_lookups(&base, stream, parts);
    let freed = stream.clone();
    parts.last_jobs([Dependents::start(&base.store, freed, &shared.looks, &base.jobs)]);
    parts.last_jobs(shared.in_flight.as_ref().map(|window| window.start(&base.jobs)));
    let submitter = start_submitter(&base, &shared, stream, parts)?;
    let recall = start_recall(&base, &shared, parts);
    start_recovery(&base, &shared, stream, parts);
    start_retention(&base, parts);
    start_intake_lists(&base, stream, parts);
    start_webhooks(&base, parts)?;
    start_notifications(&base, &shared, stream, parts);
    let claims = start_claims(&base, stream, claim_requests.clone(), received)?;
    parts.last_jobs(opened.gas.clone().map(|gas| watch_gas(gas, &base.jobs)));
    let counters = Counters { claims: &claims, poller, submitter: submitter.clone(), lookups };
    let commits = CommitProgress::default();
    let health = start_health(&base, &shared, &counters, &opened, commits.clone(), parts)?;
    let metrics = start_metrics(&base, &shared, &counters, &opened, &health, parts);
    let counts = CountsLog::start(
        config.testing.log_counts,
        submitter.clone(),
        shared.changes.clone(),
        shared.window(),
        &base.jobs,
    );
    let (access, tokens) = access::start(config, &base.store, &base.jobs);
    parts.last_jobs(tokens);
    parts.last_dropped("claims", claims);
    parts.last_dropped("counts of batches", counts);

    let interface =
        HttpInterface { health, metrics, access, commits, recall, stream: stream.clone() };
    let api = interface.serve(&base, &shared, opened, listeners, connections)?;
    let url = http_interface::url(config, api.local_addr());
    parts.first("HTTP interface", api);
    info!(url = url.as_str(), database:% = config.general.database; "server started");
    Ok(RunningServer {
        url,
        submitter,
        changes: shared.changes,
        delayed: shared.delayed,
        check: base.check,
        claim_requests,
        parts: std::mem::take(parts),
        stop_limit: config.times().drain_limit + STOP_SLACK,
        store: base.store,
        stream: stream.clone(),
        format: base.ledger.format(),
        _jobs: base.jobs,
    })
}

/// For what follows the drain: the outcomes are recorded and the claims released.
const STOP_SLACK: Duration = Duration::from_secs(5);

/// Pauses services whose nodes have different states, and resumes them when the states agree.
fn start_state_roots(base: &Base<'_>, stream: &RecordedStream, parts: &mut Stops) {
    if base.ledger.facts().compares_states {
        let (ledger, claims) = (Arc::clone(&base.ledger), base.claims.clone());
        parts.last_jobs([compare_states(ledger, claims, stream.clone(), &base.jobs)]);
    }
}

fn start_poller(
    base: &Base<'_>,
    shared: &Shared,
    stream: &RecordedStream,
    parts: &mut Stops,
) -> Result<MonitorCounters, StartError> {
    let config = base.config;
    let store = MonitorStore::new(base.claims.clone(), stream.clone());
    let resubmitted = config.services.resubmit_inconclusive.clone();
    let policy = move |service: &ServiceId| {
        if resubmitted.of(service).copied().unwrap_or(false) {
            InconclusivePolicy::Resubmit
        } else {
            InconclusivePolicy::Hold
        }
    };
    let monitor = PollingMonitorBuilder::new()
        .with_jobs(&base.jobs)
        .with_nodes(base.nodes.clone())
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_evidence(store, Arc::clone(&base.ledger))
        .with_reader(Arc::new(LedgerStatusReader(Arc::clone(&base.ledger))))
        .with_inconclusive_policy(policy)
        .with_trigger(shared.trigger.clone())
        .with_options(monitor_options(config, base.ledger.facts()))
        .with_clock(config.clock());
    let running = monitor.build().map_err(StartError::part)?.run()?;
    let counters = running.counters();
    parts.first("poller", running);
    Ok(counters)
}

/// Asks the ledger for transactions that batches depend on, if it has such batches. Returns the progress of these
/// questions.
fn start_lookups(
    base: &Base<'_>,
    stream: &RecordedStream,
    parts: &mut Stops,
) -> Option<LookupProgress> {
    if !base.ledger.facts().enforces_declared_access {
        return None;
    }
    let stream = stream.clone();
    let monitor = MissingTransactionMonitor::new(
        base.claims.clone(),
        Arc::clone(&base.ledger),
        move |services| stream.recorded(Recorded::Submittable(services)),
        MissingTransactionOptions::hold_after(base.config.testing.dependency_limit),
    );
    let progress = monitor.progress();
    parts.first_jobs([monitor.run(&base.jobs)]);
    Some(progress)
}

/// Ledgers commit within milliseconds at best.
const SHORTEST_POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) fn monitor_options(config: &Config, facts: LedgerFacts) -> MonitorOptions {
    let Config { poll, testing, .. } = config;
    let times = config.times();
    MonitorOptions {
        poll_interval: poll.interval,
        shortest_interval: Some(SHORTEST_POLL_INTERVAL),
        longest_interval: times.longest_interval,
        requests_per_second: poll.requests_per_second,
        trigger_gap: testing.trigger_gap,
        quiet_after: facts.quiet_after(times.quiet_after),
        facts: Some(facts),
        believe_absence_after: facts.absence_counts_after(times.accept_absence_after),
        believe_listed_absence_after: facts.listed_absence_counts_after(times.accept_absence_after),
        hold_after: poll.hold_after,
        give_up_after: poll.give_up_after,
        warn_after: times.warn_after,
        max_attempts: testing.max_attempts,
        late_arrival_limit: facts.invalid_is_final_after(),
        drain_limit: times.drain_limit.min(MonitorOptions::default().drain_limit),
        ..MonitorOptions::default()
    }
}

fn start_submitter(
    base: &Base<'_>,
    shared: &Shared,
    stream: &RecordedStream,
    parts: &mut Stops,
) -> Result<SubmitterCounters, StartError> {
    let Base { config, store, ledger, .. } = base;
    let claims = base.checked_claims.clone();
    let queue = BatchQueue::new(claims, shared.wake_up.clone(), config.queue_options());
    let mut queue = queue.with_table(shared.table.clone());
    let wake_up = shared.wake_up.clone();
    let observer = StoreObserver::new(store.clone(), config.delay_options(), stream.clone());
    let events = EventObserver { follower: shared.follower.clone(), stages: shared.stages.clone() };
    let mut submitter = SubmitterBuilder::new();
    if let Some(admission) = shared.admission(base) {
        queue = queue.with_admission(Arc::clone(&admission));
        submitter = submitter.with_admission(admission);
    }
    let submitter = submitter
        .with_jobs(&base.jobs)
        .with_queue(queue)
        .with_waker(shared.waker.clone())
        .with_sender(Arc::new(LedgerSender(Arc::clone(ledger))))
        .with_url_resolver(base.nodes.resolver())
        .with_observer(Arc::new(events))
        .with_group_observer(Arc::new(observer))
        .with_options(config.submitter_options())
        .with_clock(Arc::clone(&config.machine_clock))
        .with_delayed_services(shared.delayed.clone())
        .with_table(shared.table.clone())
        .with_next_due(move || wake_up.next_due());
    let running = submitter.build().map_err(StartError::part)?.run()?;
    let counters = running.counters();
    parts.first("submitter", running);
    Ok(counters)
}

/// Calls back what operators stop, also what other instances and commands have stopped.
fn start_recall(base: &Base<'_>, shared: &Shared, parts: &mut Stops) -> Recall<ClaimStore> {
    let (table, claims) = (shared.table.clone(), base.claims.clone());
    let stopped = move |services: &[ServiceId]| Ok(claims.stopped(services)?);
    let recall = Recall::new(table, base.claims.clone(), stopped, shared.window());
    parts.last_jobs([recall.start(&base.jobs)]);
    recall
}

fn start_recovery(base: &Base<'_>, shared: &Shared, stream: &RecordedStream, parts: &mut Stops) {
    let claims = base.checked_claims.clone();
    let (limit, clock) = (base.config.longest_submission(), base.config.clock());
    let table = shared.table.clone();
    let recovery = OrphanRecovery::start(&base.jobs, table, claims, limit, clock, stream.clone());
    parts.last_jobs([recovery]);
}

/// Adds the batches of lists that programs leave in the database.
fn start_intake_lists(base: &Base<'_>, stream: &RecordedStream, parts: &mut Stops) {
    let ledger = Arc::clone(&base.ledger);
    let read = move |service: &ServiceId, list: &[u8]| {
        let refused = |error: ScopeIdError| FormatError::Invalid(error.to_string());
        ledger.check_service_id(service).map_err(refused)?;
        ledger.format().read(service, list)
    };
    parts.last_jobs([IntakeLists::start(&base.store, read, stream.clone(), &base.jobs)]);
}

/// Removes batches long after their end, if the settings say so.
fn start_retention(base: &Base<'_>, parts: &mut Stops) {
    let Some(after) = base.config.retention.after else {
        info!("retention.after is not set: ended batches are kept for ever");
        return;
    };
    let interval = base.config.testing.retention_interval;
    let options = RetentionOptions { interval, ..RetentionOptions::after(after) };
    let (store, clock) = (base.store.clone(), base.config.clock());
    parts.last_jobs([Retention::start(&base.jobs, store, options, clock)]);
}

/// Delivers events, unless none are written.
fn start_webhooks(base: &Base<'_>, parts: &mut Stops) -> Result<(), StartError> {
    if base.config.events.enabled {
        let store = Arc::new(base.store.clone());
        let traces = trace_export(base)?;
        let stores = DeliveryParts { events: store.clone(), webhooks: store, traces };
        let options = base.config.delivery_options();
        parts.first_jobs([Deliverer::start(&base.jobs, stores, options)?]);
    }
    Ok(())
}

/// Exchanges notifications with other instances, if the database has them.
fn start_notifications(
    base: &Base<'_>,
    shared: &Shared,
    stream: &RecordedStream,
    parts: &mut Stops,
) {
    if let Some(exchange) = base.claims.work_notifications() {
        let (stream, awaited) = (stream.clone(), shared.awaited_ends.clone());
        parts.last_jobs([NotificationListener::start(&base.jobs, exchange, stream, awaited)]);
    }
}

fn start_claims(
    base: &Base<'_>,
    stream: &RecordedStream,
    requests: ClaimRequests,
    received: ReceivedClaimRequests,
) -> Result<ClaimMaintainer, StartError> {
    let claims = base.checked_claims.clone();
    let options = ClaimMaintainerOptions::for_idle_expiry(base.config.claims.idle_expiry);
    let stream = stream.clone();
    Ok(ClaimMaintainer::start(&base.jobs, claims, options, stream, requests, received)?)
}

/// What the parts count.
struct Counters<'a> {
    claims: &'a ClaimMaintainer,
    poller: MonitorCounters,
    submitter: SubmitterCounters,
    lookups: Option<LookupProgress>,
}

fn start_health(
    base: &Base<'_>,
    shared: &Shared,
    counters: &Counters<'_>,
    opened: &ServerLedger,
    commits: CommitProgress,
    parts: &mut Stops,
) -> Result<Health, StartError> {
    let sources = HealthSources {
        claims: counters.claims.health(),
        renewal_limit: base.config.claims.idle_expiry / 2,
        ledger: base.check.clone(),
        commits,
        poller: counters.poller.clone(),
        delayed: shared.delayed.clone(),
        invalid: shared.invalid.clone(),
        settings: compare_settings(base),
        locked: count_locked(&base.store),
        events: shared.follower.clone(),
        gas: opened.gas.clone(),
        in_flight: shared.window(),
        jobs: base.jobs.clone(),
        lookups: counters.lookups.clone(),
    };
    let mut probe = base.store.probe();
    let counts = Arc::new(base.store.clone());
    let (health, views) = Health::start(sources, counts, move || probe.check(), &base.jobs)?;
    parts.last_views(views);
    Ok(health)
}

fn start_metrics(
    base: &Base<'_>,
    shared: &Shared,
    counters: &Counters<'_>,
    opened: &ServerLedger,
    health: &Health,
    parts: &mut Stops,
) -> MetricsSources {
    let queues = QueueMetrics::default();
    let recorder = HistoryRecorder::new(counters.submitter.clone(), shared.changes.clone());
    /// Each is a time series of Prometheus for each instance.
    const MOST: usize = 100;
    let (store, claims) = (Arc::new(base.store.clone()), base.claims.clone());
    let counted = QueueSources {
        counts: store.clone(),
        webhooks: store.clone(),
        instance: Box::new(move || claims.instance()),
    };
    parts.last_views([queues.watch(counted, MOST, recorder, &base.jobs)]);
    MetricsSources {
        queues,
        gas: opened.gas.clone(),
        health: health.clone(),
        claims: counters.claims.health(),
        submitter: counters.submitter.clone(),
        poller: counters.poller.clone(),
        changes: shared.changes.clone(),
        stages: shared.stages.clone(),
        store,
        jobs: base.jobs.clone(),
    }
}

fn compare_settings(base: &Base<'_>) -> Arc<CompareSettings> {
    let (store, own) = (base.store.clone(), base.config.equal_settings());
    Arc::new(move || Ok(own.differences(&store.settings_of_instances()?)))
}

fn count_locked(store: &Store) -> Arc<dyn Fn() -> usize + Send + Sync> {
    let store = store.clone();
    Arc::new(move || store.locked_services().len())
}
