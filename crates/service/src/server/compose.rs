//! Which part is connected to which.

use std::{sync::Arc, time::Duration};

use grid_batch_api::{ApiBuilder, ApiOptions, AwaitedBatches, CommitProgress, RateLimits};
use grid_batch_claims::{
    AwaitedEnds, ChangeCounters, ClaimMaintainer, ClaimMaintainerOptions, ClaimRequests,
    DependentsRequests, NotificationListener, OrphanRecovery, RecordedStream, Retention,
    RetentionOptions, log_recorded,
};
use grid_batch_core::{
    Admission, Ledger, LedgerFacts, Recorded, RecordedSubscriber, SearchLimits, ServiceId,
    StatusReport,
};
use grid_batch_nodes::NodePool;
use grid_batch_poller::{
    EventFollower, EventMonitor, EventOptions, InconclusivePolicy, LedgerStatusReader,
    MonitorOptions, NextBatchMonitor, NextBatchRequests, PollTrigger, PollingMonitorBuilder,
    RunningEventMonitor, RunningNextBatchMonitor, RunningPollingMonitor,
};
use grid_batch_queuer::{BatchQueue, PlaceLimits, Places, WakeUp};
use grid_batch_store::{
    ClaimOptions, ClaimStore, MonitorStore, PendingBatch, Store, StoreError, StoreObserver,
    StoreOptions,
};
use grid_batch_submitter::{
    DelayedServices, LedgerSender, RunnableSubmitter, SubmitterBuilder, SubmitterCounters,
    SubmitterWaker,
};
use grid_batch_withdrawals::WithdrawalRules;
use grid_batch_work::WorkTable;
use log::{info, warn};

use super::{
    LedgerMismatchError, RunningAccess, RunningServer, StartError, StoppableSubmitter,
    counts_log::CountsLog,
    dependencies, dependents,
    event_observer::EventObserver,
    file_descriptors,
    gas::{GasMonitor, RunningGasWatch},
    health::{Health, HealthSources},
    in_flight::ReadWindow,
    ledger::{OpenFn, ServerLedger},
    ledger_check::{CheckedClaims, LedgerCheck, RunningLedgerCheck},
    listeners,
    metrics::{History, HistoryRecorder, MetricsSources, QueueMetrics, StageTimes},
    reads::with_reads,
    recall::Recall,
    registration::register,
    state_roots::RunningStateRootWatch,
    statuses::Statuses,
    webhooks,
};
use crate::Config;

/// Starts all parts.
pub(super) fn compose(
    config: &Config,
    check: LedgerCheck,
    open_ledger: OpenFn<'_>,
) -> Result<RunningServer, StartError> {
    let connections = file_descriptors::fitting_http_connections(config)?;
    let listeners = listeners::open(config)?;
    let store = open_store(config)?;
    let ServerLedger { ledger, withdrawals, gas } = open_ledger(&store)?;
    let nodes = check.pool().clone();
    let claim_store = register(&store, &*ledger, &claim_options(config));
    let claim_store = claim_store.map_err(|source| store_error(config, source))?;
    if let Some(missing) = config.ledger.missing_peers() {
        warn!("{missing}; list the other nodes of its circuit");
    }
    let ledger_check = start_ledger_check(check.clone(), &ledger, &claim_store)?;
    let claims = CheckedClaims::new(claim_store.clone(), check.clone(), Arc::clone(&ledger));

    let work = WorkTable::default();
    let waker = SubmitterWaker::new();
    let wake_submitter = waker.clone();
    let wake_up = WakeUp::new(move || wake_submitter.wake()).with_clock(config.clock());
    let trigger = PollTrigger::with_table(work.clone());
    let events = start_event_monitor(config, &ledger, &trigger)?;
    let follower = events.as_ref().map(RunningEventMonitor::follower);
    let changes = ChangeCounters::default();
    let stages = StageTimes::new();
    let notifications = claim_store.work_notifications();
    let awaited_ends = AwaitedEnds::default();
    let awaited = match &notifications {
        Some(_) => {
            let ends = awaited_ends.clone();
            AwaitedBatches::new(move |ids| ends.awaited(ids))
        }
        None => AwaitedBatches::default(),
    };
    let in_flight = ReadWindow::new(config, &claim_store, &work, &wake_up);
    let dependents_requests = DependentsRequests::new();
    let claim_requests = ClaimRequests::new();
    let (next_batches, ask_ahead) =
        start_ask_ahead(config, &ledger, &nodes, &claim_store, &trigger)?.unzip();
    let delayed = DelayedServices::new(
        work.clone(),
        config.submit.warn_after,
        config.delays.longest_delay(),
        Arc::clone(&config.queue.clock),
    )
    .with_several_batches(config.store.scheduling.uses_declared_access);
    follow_open_services(&*ledger, &store, follower.as_ref(), config.ledger.event_sockets)?;
    let stream = RecordedStream::default()
        .with("counters", changes.clone())
        .with("log", log_recorded)
        .with("stage times", stages.clone())
        .with("requests that wait", awaited.clone())
        .with("requests that wait elsewhere", awaited_ends.clone())
        .with("delayed services", delayed.clone())
        .with("events", follower.clone());
    let looks = dependents::request_looks(&store, &dependents_requests.0);
    let stream = with_queue(stream, in_flight.clone(), wake_up.clone(), looks)
        .with("poller", trigger.clone())
        .with("questions", next_batches)
        .with("claims", claim_requests.0.clone());

    let state_roots = start_state_root_watch(&ledger, &claim_store, &stream)?;
    let poller = start_poller(config, &ledger, &nodes, &claim_store, &stream, trigger)?;
    let dependencies = dependencies::start(config, &ledger, &claim_store, &stream)?;
    let (dependencies, lookups) = dependencies.unzip();
    let admission = match &in_flight {
        Some(in_flight) => Some(Arc::new(in_flight.window().clone()) as Arc<dyn Admission>),
        None => nodes.has_own_nodes().then(|| places(config, &nodes, &work, &wake_up)),
    };
    let dependents = dependents::start(&store, &stream, dependents_requests)?;
    let running_in_flight = in_flight.as_ref().map(ReadWindow::start).transpose()?;
    let next_due = wake_up.clone();
    let queue = BatchQueue::new(claims.clone(), wake_up, config.queue.clone());
    let mut queue = queue.with_table(work.clone());
    if let Some(admission) = &admission {
        queue = queue.with_admission(Arc::clone(admission));
    }
    let (submitter, submitter_counters) = start_submitter(
        config,
        (&ledger, &nodes),
        queue,
        &store,
        &stream,
        (waker, next_due, admission, delayed.clone(), work.clone()),
        EventObserver { follower: follower.clone(), stages: stages.clone() },
    )?;
    let window = in_flight.as_ref().map(|in_flight| in_flight.window().clone());
    let recall = Recall::new(work.clone(), claim_store.clone(), window.clone());
    let running_recall = recall.start()?;
    let counts_log = CountsLog::start(
        config.log_counts,
        submitter_counters.clone(),
        changes.clone(),
        window.clone(),
    )?;
    let recovery = OrphanRecovery::start(
        work.clone(),
        claims.clone(),
        config.longest_submission(),
        config.clock(),
        stream.clone(),
    )?;
    let retention = start_retention(config, &store)?;
    let webhooks = webhooks::start(config, &store)?;
    let options = ClaimMaintainerOptions::for_idle_expiry(config.claims.idle_expiry);
    let claims = ClaimMaintainer::start(claims, options, stream.clone(), claim_requests)?;
    let notifications = notifications
        .map(|it| NotificationListener::start(it, stream.clone(), awaited_ends))
        .transpose()?;
    let commits = CommitProgress::default();
    let sources = HealthSources {
        claims: claims.health(),
        renewal_limit: config.claims.idle_expiry / 2,
        ledger: check.clone(),
        commits: commits.clone(),
        poller: poller.counters(),
        delayed: delayed.clone(),
        locked: count_locked(&store),
        events: follower.clone(),
        gas: gas.clone(),
        in_flight: window.clone(),
        lookups,
    };
    let running_gas = gas.clone().map(RunningGasWatch::start).transpose()?;
    let (health, running_health) = Health::start(sources, &store)?;
    let access = RunningAccess::start(config, store.clone())?;
    let queues = QueueMetrics::default();
    let history = History::default();
    let recorder = HistoryRecorder {
        history: history.clone(),
        submitter: submitter_counters.clone(),
        changes: changes.clone(),
    };
    let queue_metrics = queues.watch(&store, &claim_store, config.metrics_services, recorder)?;
    let metrics = MetricsSources {
        queues,
        gas: gas.clone(),
        health: health.clone(),
        claims: claims.health(),
        submitter: submitter_counters.clone(),
        poller: poller.counters(),
        changes: changes.clone(),
        stages: stages.clone(),
        store: Store::clone(&store),
    };
    let options = api_options(config, connections);
    let in_memory = (window, check);
    let api = configure_api(options, config, &ledger, &store, (health, follower), in_memory);
    let api = with_withdrawals(api, &store, withdrawals, gas)
        .with_stored_callback(move |services| stream.recorded(Recorded::Stored(services)))
        .with_operators(Arc::new(store.clone()), move || Some(claim_store.instance()))
        .with_recall(move || recall.run())
        .with_access(access.control())
        .with_commit_progress(commits)
        .with_awaited_batches(awaited)
        .with_received_callback(move |ids| stages.received(ids))
        .with_metrics(move |text| metrics.write(text))
        .with_history(move || history.read())
        .with_clock(config.clock());
    let api = api.build().map_err(StartError::part)?.serve_all(listeners)?;
    let url = listeners::url(config, api.local_addr());
    info!(url = url.as_str(), database:% = config.database; "server started");
    Ok(RunningServer {
        api,
        url,
        access,
        events,
        ask_ahead,
        dependencies,
        submitter,
        submitter_counters,
        delayed,
        counts_log,
        poller,
        recovery,
        retention,
        webhooks,
        dependents,
        in_flight: running_in_flight,
        recall: running_recall,
        notifications,
        claims,
        ledger_check,
        state_roots,
        gas: running_gas,
        health: running_health,
        queue_metrics,
        stop_limit: config.submit.drain_limit + STOP_SLACK,
        changes,
        store,
    })
}

/// For what follows the drain: the outcomes are recorded and the claims released.
const STOP_SLACK: Duration = Duration::from_secs(5);

fn open_store(config: &Config) -> Result<Store, StartError> {
    // The health has a connection of its own, and the listener to notifications of PostgreSQL has one.
    let is_file = config.database.file().is_some();
    let reserved = if is_file { 1 } else { 2 };
    let connections = config.store.connections.saturating_sub(reserved).max(1);
    let options = StoreOptions { connections, ..config.store.clone() };
    let failed = |source| store_error(config, source);
    let store = Store::open(&config.database, options).map_err(failed)?;
    if let (Some(configured), Some(recorded)) =
        (config.ledger.identity(), store.ledger().map_err(failed)?)
    {
        LedgerMismatchError::of_settings(&configured, &recorded)?;
    }
    for warning in store.durability_warnings().map_err(failed)? {
        warn!(database:% = config.database; "{warning}");
    }
    Ok(store)
}

fn store_error(config: &Config, source: StoreError) -> StartError {
    StartError::Store { database: config.database.to_string(), source }
}

fn claim_options(config: &Config) -> ClaimOptions {
    ClaimOptions {
        name: config.claims.name.clone(),
        idle_expiry: config.claims.idle_expiry,
        full_expiry: config.claims.full_expiry,
        longest_submission: config.longest_submission(),
        fair_share: config.claims.share,
        ..ClaimOptions::default()
    }
}

/// Asks all nodes, and waits a moment for their answers. Without them the server starts all the same,
/// so that it takes requests while the ledger is down.
fn start_ledger_check(
    check: LedgerCheck,
    ledger: &Arc<dyn Ledger>,
    claims: &ClaimStore,
) -> Result<RunningLedgerCheck, StartError> {
    const FIRST_ANSWERS_LIMIT: Duration = Duration::from_secs(2);
    let was_bound = claims.store().ledger().map_err(StartError::part)?.is_some();
    let confirming = claims.clone();
    let confirm = Arc::new(move |ledger: &_| Ok(confirming.confirm_ledger(ledger)?));
    let running = RunningLedgerCheck::start(check, Arc::clone(ledger), confirm, was_bound)?;
    running.wait_for_answers(FIRST_ANSWERS_LIMIT);
    let check = running.check();
    if let Some(mismatch) = check.mismatch() {
        let mismatch = mismatch.clone();
        if let Err(error) = claims.release() {
            warn!(error:%; "cannot remove the instance; it expires");
        }
        return Err(mismatch.into());
    }
    if let Some(problem) = check.problem() {
        warn!(problem = problem.as_str(); "the server starts without its ledger");
    }
    Ok(running)
}

fn start_event_monitor(
    config: &Config,
    ledger: &Arc<dyn Ledger>,
    trigger: &PollTrigger,
) -> Result<Option<RunningEventMonitor>, StartError> {
    if !ledger.facts().has_events || config.ledger.event_sockets == 0 {
        return Ok(None);
    }
    let options = EventOptions {
        sockets: config.ledger.event_sockets,
        reconnect_backoff: config.ledger.reconnect_backoff,
        ..EventOptions::default()
    };
    let monitor = EventMonitor::new(Arc::clone(ledger), trigger.clone(), options);
    let monitor = monitor.map_err(StartError::part)?.with_nodes(config.ledger.http.nodes.clone());
    Ok(Some(monitor.run()?))
}

/// Asks about the next batch of each service, if the ledger needs that.
fn start_ask_ahead(
    config: &Config,
    ledger: &Arc<dyn Ledger>,
    nodes: &NodePool,
    claims: &ClaimStore,
    trigger: &PollTrigger,
) -> Result<Option<(NextBatchRequests, RunningNextBatchMonitor)>, StartError> {
    if !ledger.facts().asks_before_sending() {
        return Ok(None);
    }
    let store = MonitorStore::new(claims.clone(), RecordedStream::default());
    let monitor = NextBatchMonitor::new(store, Arc::clone(ledger), config.poll.connections)
        .with_nodes(nodes.clone())
        .with_table(trigger.table().clone());
    Ok(Some((monitor.requests(), monitor.run()?)))
}

/// Shares the places of a submitter among the nodes. `wake_up` is that of the queue.
fn places(
    config: &Config,
    nodes: &NodePool,
    work: &WorkTable,
    wake_up: &WakeUp,
) -> Arc<dyn Admission> {
    let places = usize::try_from(config.submit.concurrency).unwrap_or(usize::MAX);
    let wake_up = wake_up.clone();
    let wake = move |service| wake_up.wake(service);
    let (nodes, clock) = (nodes.clone(), Arc::clone(&config.queue.clock));
    let node_of = move |service: &ServiceId| nodes.only_node_of(service.as_str());
    let limits = PlaceLimits::of_nodes(places, config.node_concurrency, node_of);
    Arc::new(Places::new(limits, work.clone(), clock, wake))
}

/// Subscribes to the events of services with open batches before any of them is submitted.
fn follow_open_services(
    ledger: &dyn Ledger,
    store: &Store,
    follower: Option<&EventFollower>,
    limit: usize,
) -> Result<(), StartError> {
    let Some(follower) = follower else { return Ok(()) };
    let depths = store.depths(None, limit).map_err(StartError::part)?;
    let services = depths.iter().map(|depth| &depth.service_id);
    services
        .filter(|service| ledger.check_service_id(service).is_ok())
        .for_each(|service| follower.follow(service.as_str()));
    Ok(())
}

/// The window returns the place of an ended batch before its service is woken, and before dependents are looked for. So
/// what follows the batch gets the place.
fn with_queue(
    stream: RecordedStream,
    window: impl RecordedSubscriber + 'static,
    wake_up: WakeUp,
    looks: impl RecordedSubscriber + 'static,
) -> RecordedStream {
    stream.with("in-flight window", window).with("queue", wake_up).with("dependents", looks)
}

/// Pauses services whose nodes have different states, and resumes them when the states agree.
fn start_state_root_watch(
    ledger: &Arc<dyn Ledger>,
    claims: &ClaimStore,
    stream: &RecordedStream,
) -> Result<Option<RunningStateRootWatch>, StartError> {
    if !ledger.facts().compares_states {
        return Ok(None);
    }
    let (ledger, claims) = (Arc::clone(ledger), claims.clone());
    Ok(Some(RunningStateRootWatch::start(ledger, claims, stream.clone())?))
}

fn start_poller(
    config: &Config,
    ledger: &Arc<dyn Ledger>,
    nodes: &NodePool,
    claims: &ClaimStore,
    stream: &RecordedStream,
    trigger: PollTrigger,
) -> Result<RunningPollingMonitor<PendingBatch, StatusReport>, StartError> {
    let store = MonitorStore::new(claims.clone(), stream.clone());
    let resubmitted = config.poll.resubmit_inconclusive.clone();
    let policy = move |service: &ServiceId| match resubmitted.contains(service) {
        true => InconclusivePolicy::Resubmit,
        false => InconclusivePolicy::Hold,
    };
    let monitor = PollingMonitorBuilder::new()
        .with_nodes(nodes.clone())
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_evidence(store, Arc::clone(ledger))
        .with_reader(Arc::new(LedgerStatusReader(Arc::clone(ledger))))
        .with_inconclusive_policy(policy)
        .with_trigger(trigger)
        .with_options(monitor_options(config, ledger.facts()))
        .with_clock(config.clock());
    Ok(monitor.build().map_err(StartError::part)?.run()?)
}

fn monitor_options(config: &Config, facts: LedgerFacts) -> MonitorOptions {
    let poll = &config.poll;
    MonitorOptions {
        poll_interval: poll.interval,
        longest_interval: poll.longest_interval,
        requests_per_second: poll.requests_per_second,
        trigger_gap: poll.trigger_gap,
        quiet_after: facts.quiet_after(poll.quiet_after),
        facts: Some(facts),
        believe_absence_after: facts.absence_counts_after(poll.accept_absence_after),
        hold_after: poll.hold_after,
        give_up_after: poll.give_up_after,
        warn_after: poll.warn_after,
        max_attempts: poll.max_attempts,
        late_arrival_limit: facts.invalid_is_final_after(),
        drain_limit: config.submit.drain_limit.min(MonitorOptions::default().drain_limit),
        ..MonitorOptions::default()
    }
}

fn start_submitter(
    config: &Config,
    (ledger, nodes): (&Arc<dyn Ledger>, &NodePool),
    queue: BatchQueue<ServiceId, CheckedClaims<ClaimStore>>,
    store: &Store,
    stream: &RecordedStream,
    (waker, next_due, admission, delayed, work): (
        SubmitterWaker,
        WakeUp,
        Option<Arc<dyn Admission>>,
        DelayedServices,
        WorkTable,
    ),
    events: EventObserver,
) -> Result<(Box<dyn StoppableSubmitter>, SubmitterCounters), StartError> {
    let observer = StoreObserver::new(store.clone(), config.delays.clone(), stream.clone());
    let mut submitter = SubmitterBuilder::new()
        .with_queue(queue)
        .with_waker(waker)
        .with_sender(Arc::new(LedgerSender(Arc::clone(ledger))))
        .with_url_resolver(nodes.resolver())
        .with_observer(Arc::new(events))
        .with_group_observer(Arc::new(observer))
        .with_options(config.submit.clone())
        .with_clock(Arc::clone(&config.queue.clock))
        .with_delayed_services(delayed)
        .with_table(work)
        .with_next_due(move || next_due.next_due());
    if let Some(admission) = admission {
        submitter = submitter.with_admission(admission);
    }
    let submitter = submitter.build().map_err(StartError::part)?;
    let running = submitter.run()?;
    let counters = running.counters();
    Ok((Box::new(running), counters))
}

/// Removes batches long after their end, if the settings say so.
fn start_retention(config: &Config, store: &Store) -> Result<Option<Retention>, StartError> {
    let Some(after) = config.retention.after else {
        info!("retention.after is not set: ended batches are kept for ever");
        return Ok(None);
    };
    let interval = config.retention.interval;
    let options = RetentionOptions { interval, ..RetentionOptions::after(after) };
    Ok(Some(Retention::start(store.clone(), options, config.clock())?))
}

fn count_locked(store: &Store) -> Arc<dyn Fn() -> usize + Send + Sync> {
    let store = store.clone();
    Arc::new(move || store.locked_services().len())
}

fn api_options(config: &Config, connections: usize) -> ApiOptions {
    let usual = ApiOptions::default();
    ApiOptions {
        body_limit: config.body_limit,
        memory_limit: config.body_limit.max(usual.memory_limit),
        max_connections: connections,
        max_requests_of_address: config.requests_of_address,
        drain_timeout: config.submit.drain_limit.min(usual.drain_timeout),
        ..usual
    }
}

fn configure_api(
    options: ApiOptions,
    config: &Config,
    ledger: &Arc<dyn Ledger>,
    store: &Store,
    (health, follower): (Health, Option<EventFollower>),
    (window, check): (Option<Places>, LedgerCheck),
) -> ApiBuilder {
    let clock = store.clock().clone();
    let database = health.clone();
    let store = Arc::new(store.clone());
    let statuses = Arc::new(Statuses { store: Store::clone(&store), window });
    let declared_addresses = config.store.scheduling.uses_declared_access;
    let rates = RateLimits { declared_addresses, ..config.access.rates };
    let mut api = ApiBuilder::new(store.clone(), statuses)
        .with_format(ledger.format())
        .with_options(options)
        .with_events(store.clone())
        .with_allowed_hosts(config.intake.allowed_hosts.clone())
        .with_allowed_origins(config.intake.allowed_origins.clone())
        .with_trusted_proxies(config.listen.proxies.clone())
        .with_rate_limits(rates)
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
    api = with_reads(api, &store, check, SearchLimits { quiet_after, hold_after, give_up_after });
    if config.intake.pass_through {
        api = api.with_pass_through(Arc::clone(ledger));
    }
    if config.store.writes_events {
        api = api.with_webhooks(store.clone());
    }
    api
}

/// What the interface shows and takes if the ledger has pools.
fn with_withdrawals(
    mut api: ApiBuilder,
    store: &Store,
    rules: Option<Arc<dyn WithdrawalRules>>,
    gas: Option<Arc<dyn GasMonitor>>,
) -> ApiBuilder {
    if let Some(gas) = gas {
        let store = store.clone();
        api = api.with_gas_admins(move || gas.reports(&store));
    }
    if let Some(rules) = rules {
        api = api.with_withdrawals(Arc::new(store.clone()), rules);
    }
    api
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use grid_batch_core::{
        BatchState, Change, Claim, Event, ItemId, LedgerStatus, ServiceId, Takeover,
    };

    use super::*;

    #[test]
    fn window_is_called_before_the_queue_and_dependents() {
        let (sender, called) = channel();
        let (woken, looked) = (sender.clone(), sender.clone());
        let wake_up = WakeUp::new(move || woken.send("woken").unwrap());
        let window = move |entry: Recorded<'_>| {
            let name = match entry {
                Recorded::Change { .. } => "ended",
                Recorded::TakenOver(_) => "claimed",
                _ => panic!("{entry:?}"),
            };
            sender.send(name).unwrap();
        };
        let looks = move |_: Recorded<'_>| looked.send("looked").unwrap();
        let stream = with_queue(RecordedStream::default(), window, wake_up, looks);
        let service_id: ServiceId = "circuit::service".parse().unwrap();
        let event = Event::status(LedgerStatus::Committed);
        let change = &Change::new(service_id.clone(), ItemId::from_bytes([1; 64]), event);
        let state = BatchState::Committed;
        stream.recorded(Recorded::Change { change, state, next_waits: true });
        let claims = vec![Claim { service_id, epoch: 1 }];
        stream.recorded(Recorded::TakenOver(&Takeover { claims, in_doubt: Vec::new() }));
        let called: Vec<_> = called.try_iter().collect();
        assert_eq!(called, ["ended", "woken", "looked", "claimed", "woken", "looked"]);
    }
}
