//! Which part is connected to which.

use std::{net::TcpListener, sync::Arc, time::Duration};

use grid_batch_api::{ApiBuilder, ApiOptions, RunningApi};
use grid_batch_claims::{ChangeFollowUp, ClaimMaintainer, ClaimMaintainerOptions, OrphanRecovery};
use grid_batch_core::{RunnableSubmitter, ScopeId, ServiceId, StatusReport};
use grid_batch_poller::{
    EventFollower, EventMonitor, EventOptions, InconclusivePolicy, MonitorOptions,
    NextBatchMonitor, NextBatchRequests, PollTrigger, PollingMonitorBuilder, RunningEventMonitor,
    RunningNextBatchMonitor, RunningPollingMonitor,
};
use grid_batch_queuer::{BatchQueue, WakeUp};
use grid_batch_store::{
    ClaimOptions, ClaimStore, MonitorStore, PendingBatch, Store, StoreObserver,
};
use grid_batch_submitter::{SubmitterBuilder, SubmitterCounters, SubmitterWaker};
use log::{info, warn};

use super::{
    LedgerMismatchError, RunningServer, StartError, StoppableSubmitter,
    event_observer::EventObserver,
    ledger::Ledger,
    ledger_check::{CheckedClaims, LedgerCheck, RunningLedgerCheck},
    registration::register,
};
use crate::{Config, LedgerKind};

/// Starts all parts.
pub(super) fn compose<S: ScopeId>(
    config: &Config,
    check: LedgerCheck,
    ledger: impl FnOnce(&Store) -> Result<Ledger<S>, StartError>,
) -> Result<RunningServer, StartError> {
    let listener = listen(config)?;
    let claim_store = open_store(config)?;
    let store = claim_store.store().clone();
    let ledger = ledger(&store)?.checked(&check);
    if config.ledger.kind == Some(LedgerKind::Scabbard) && config.ledger.name.is_empty() {
        warn!(
            "ledger.name is not set: the database could not be told from that of another scabbard \
             ledger; set it before the first start"
        );
    }
    let ledger_check = start_ledger_check(check.clone(), &claim_store)?;
    let claims = CheckedClaims::<_, S>::new(claim_store.clone(), check.clone());

    let waker = SubmitterWaker::new();
    let wake_submitter = waker.clone();
    let wake_up = WakeUp::new(move || wake_submitter.wake())?;
    let trigger = PollTrigger::new();
    let poll = trigger.clone();
    check.on_return(move |service_id| poll.trigger(service_id));
    let events = start_event_monitor(config, &ledger, &trigger)?;
    let follower = events.as_ref().map(RunningEventMonitor::follower);
    let mut follow_up =
        ChangeFollowUp::new(wake_up.clone(), trigger.clone()).with_clock(config.clock());
    if let Some(follower) = &follower {
        follow_up = follow_up.with_events(follower.clone());
    }
    let ask_ahead = start_ask_ahead(config, &ledger, &claim_store)?;
    let ask_ahead = ask_ahead.map(|(trigger, running)| {
        follow_up = follow_up.clone().with_ask_ahead(trigger);
        running
    });
    follow_open_services::<S>(&store, &follow_up, config.ledger.event_sockets)?;

    let poller = start_poller(config, &ledger, &claim_store, &follow_up, trigger)?;
    let queue = BatchQueue::new(claims.clone(), wake_up, config.queue.clone());
    let (submitter, submitter_counters) =
        start_submitter(config, &ledger, queue, &store, &follow_up, waker)?;
    let recovery = OrphanRecovery::start(
        claims.clone(),
        config.longest_submission(),
        config.clock(),
        follow_up.clone(),
    )?;
    let options = ClaimMaintainerOptions::for_idle_expiry(config.claims.idle_expiry);
    let claims = ClaimMaintainer::start(claims, options, follow_up.clone())?;
    let api = start_api(config, &ledger, &store, &follow_up, &claims, (check, follower), listener)?;
    info!(address:% = api.local_addr(), database:% = config.database; "server started");
    Ok(RunningServer {
        api,
        events,
        ask_ahead,
        submitter,
        submitter_counters,
        poller,
        recovery,
        claims,
        ledger_check,
        follow_up,
        store,
    })
}

fn listen(config: &Config) -> Result<TcpListener, StartError> {
    let address = config.listen;
    TcpListener::bind(address).map_err(|source| StartError::Listen { address, source })
}

/// Opens the store and registers this process as an instance.
fn open_store(config: &Config) -> Result<ClaimStore, StartError> {
    let failed = |source| StartError::Store { database: config.database.to_string(), source };
    let store = Store::open(&config.database, config.store.clone()).map_err(failed)?;
    if let (Some(configured), Some(recorded)) =
        (config.ledger.identity(), store.ledger().map_err(failed)?)
    {
        LedgerMismatchError::of_settings(&configured, &recorded)?;
    }
    for warning in store.durability_warnings().map_err(failed)? {
        warn!(database:% = config.database; "{warning}");
    }
    let options = ClaimOptions {
        name: config.claims.name.clone(),
        idle_expiry: config.claims.idle_expiry,
        full_expiry: config.claims.full_expiry,
        longest_submission: config.longest_submission(),
        fair_share: config.claims.share,
        ..ClaimOptions::default()
    };
    register(&store, &options).map_err(failed)
}

/// Asks all nodes, and waits a moment for their answers. Without them the server starts all the same,
/// so that it takes requests while the ledger is down.
fn start_ledger_check(
    check: LedgerCheck,
    claims: &ClaimStore,
) -> Result<RunningLedgerCheck, StartError> {
    const FIRST_ANSWERS_LIMIT: Duration = Duration::from_secs(2);
    let running = RunningLedgerCheck::start(check, Arc::new(claims.clone()))?;
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

fn start_event_monitor<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    trigger: &PollTrigger,
) -> Result<Option<RunningEventMonitor>, StartError> {
    let Some(source) = ledger.events.as_ref().filter(|_| config.ledger.event_sockets > 0) else {
        return Ok(None);
    };
    let options = EventOptions {
        sockets: config.ledger.event_sockets,
        reconnect_backoff: config.ledger.reconnect_backoff,
        ..EventOptions::default()
    };
    let monitor = EventMonitor::new(Arc::clone(source), trigger.clone(), options);
    Ok(Some(monitor.map_err(StartError::part)?.run()?))
}

/// Asks about the next batch of each service, if the ledger needs that.
fn start_ask_ahead<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    claims: &ClaimStore,
) -> Result<Option<(NextBatchRequests, RunningNextBatchMonitor)>, StartError> {
    let Some(ask_ahead) = &ledger.ask_ahead else { return Ok(None) };
    let store = MonitorStore::new(claims.clone(), |_, _| ());
    let monitor = NextBatchMonitor::new(store, Arc::clone(ask_ahead), config.poll.connections);
    Ok(Some((monitor.requests(), monitor.run()?)))
}

/// Subscribes to the events of services with open batches before any of them is submitted.
fn follow_open_services<S: ScopeId>(
    store: &Store,
    follow_up: &ChangeFollowUp,
    limit: usize,
) -> Result<(), StartError> {
    let depths = store.depths(None, limit).map_err(StartError::part)?;
    let services = depths.iter().map(|depth| &depth.service_id);
    services
        .filter(|service| S::from_service_id(service).is_ok())
        .for_each(|service| follow_up.follow_events(service));
    Ok(())
}

fn start_poller<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    claims: &ClaimStore,
    follow_up: &ChangeFollowUp,
    trigger: PollTrigger,
) -> Result<RunningPollingMonitor<PendingBatch, StatusReport>, StartError> {
    let follow_up = follow_up.clone();
    let store = MonitorStore::new(claims.clone(), move |change, outcome| {
        follow_up.recorded(change, outcome);
    });
    let resubmitted = config.poll.resubmit_inconclusive.clone();
    let policy = move |service: &ServiceId| match resubmitted.contains(service) {
        true => InconclusivePolicy::Resubmit,
        false => InconclusivePolicy::Hold,
    };
    let monitor = PollingMonitorBuilder::new()
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_evidence(store, Arc::clone(&ledger.evidence))
        .with_reader(Arc::clone(&ledger.reader))
        .with_inconclusive_policy(policy)
        .with_trigger(trigger)
        .with_options(monitor_options(config))
        .with_clock(config.clock());
    Ok(monitor.build().map_err(StartError::part)?.run()?)
}

/// Many times as long as a Sawtooth node needs for a batch.
const SAWTOOTH_QUIET_AFTER: Duration = Duration::from_secs(10);

fn monitor_options(config: &Config) -> MonitorOptions {
    let poll = &config.poll;
    let quiet_after = match config.ledger.kind {
        // The search for evidence is also what resends a transaction that is not mined.
        Some(LedgerKind::Evm) => poll.quiet_after.min(config.evm.resend_after),
        // A batch that can never be applied stays pending, and blocks everything behind it.
        Some(LedgerKind::Sawtooth) => poll.quiet_after.min(SAWTOOTH_QUIET_AFTER),
        _ => poll.quiet_after,
    };
    let late_arrival_limit = match config.ledger.kind {
        // A transaction that arrives late has a nonce that was used.
        Some(LedgerKind::Evm) => Duration::ZERO,
        _ => config.ledger.late_arrival_limit,
    };
    MonitorOptions {
        poll_interval: poll.interval,
        longest_interval: poll.longest_interval,
        requests_per_second: poll.requests_per_second,
        trigger_gap: poll.trigger_gap,
        quiet_after,
        believe_absence_after: poll.accept_absence_after,
        hold_after: poll.hold_after,
        give_up_after: poll.give_up_after,
        warn_after: poll.warn_after,
        max_attempts: poll.max_attempts,
        late_arrival_limit,
        ..MonitorOptions::default()
    }
}

fn start_submitter<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    queue: BatchQueue<S, CheckedClaims<ClaimStore, S>>,
    store: &Store,
    follow_up: &ChangeFollowUp,
    waker: SubmitterWaker,
) -> Result<(Box<dyn StoppableSubmitter>, SubmitterCounters), StartError> {
    let recorded = follow_up.clone();
    let observer = StoreObserver::new(store.clone(), config.delay, move |change, outcome| {
        recorded.recorded(change, outcome);
    });
    let mut submitter = SubmitterBuilder::new()
        .with_queue(queue)
        .with_waker(waker)
        .with_sender(Arc::clone(&ledger.sender))
        .with_observer(Arc::new(EventObserver::new(follow_up.clone())))
        .with_group_observer(Arc::new(observer))
        .with_options(config.submit.clone())
        .with_clock(Arc::clone(&config.queue.clock));
    if let Some(check) = &ledger.node_check {
        submitter = submitter.with_node_check(Arc::clone(check));
    }
    let submitter = ledger.nodes.set_resolver(submitter).build().map_err(StartError::part)?;
    let running = submitter.run()?;
    let counters = running.counters();
    Ok((Box::new(running), counters))
}

fn start_api<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    store: &Store,
    follow_up: &ChangeFollowUp,
    claims: &ClaimMaintainer,
    (check, follower): (LedgerCheck, Option<EventFollower>),
    listener: TcpListener,
) -> Result<RunningApi, StartError> {
    let options = ApiOptions {
        body_limit: config.body_limit,
        memory_limit: config.body_limit.max(ApiOptions::default().memory_limit),
        ..ApiOptions::default()
    };
    let (follow_up, requests, health) = (follow_up.clone(), claims.requests(), claims.health());
    let skew_of = store.clock().clone();
    let store = Arc::new(store.clone());
    let mut api = ApiBuilder::new(store.clone(), store.clone())
        .with_options(options)
        .with_allowed_hosts(config.intake.allowed_hosts.clone())
        .with_allowed_origins(config.intake.allowed_origins.clone())
        .with_allowed_services(config.intake.services.clone())
        .with_allowed_signers(config.intake.signers.clone())
        .with_service_rule(|service| {
            S::from_service_id(service).map(drop).map_err(|error| error.to_string())
        })
        .with_stored_callback(move |services| {
            follow_up.stored(services);
            requests.claim(services);
        })
        .with_health_check(move || {
            let claims = health.error().map(|error| error.to_string());
            claims.into_iter().chain(check.problem()).collect()
        })
        .with_health_details(move || {
            let silent_streams = follower.as_ref().map_or(0, EventFollower::silent_streams);
            let silent_streams = u32::try_from(silent_streams).unwrap_or(u32::MAX);
            vec![
                ("clock_ahead_seconds", skew_of.skew().ahead_seconds()),
                ("silent_event_streams", f64::from(silent_streams)),
            ]
        })
        .with_clock(config.clock());
    if let Some(check) = &ledger.service_check {
        api = api.with_service_check(Arc::clone(check));
    }
    if let Some(rules) = &ledger.withdrawals {
        api = api.with_withdrawals(store, Arc::clone(rules));
    }
    Ok(api.build().map_err(StartError::part)?.serve(listener)?)
}
