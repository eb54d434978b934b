//! The rooms put together.

mod afterwards;
mod counts;
mod error;
mod follower;
mod keeper;
mod ledger;
mod recovery;
mod registration;

use std::{fmt, marker::PhantomData, net::TcpListener, sync::Arc};

use grid_batch_api::{ApiBuilder, ApiOptions, RunningApi};
use grid_batch_core::{
    InternalError, RunnableSubmitter, ScopeId, ServiceId, ShutdownHandle, StatusReport,
};
use grid_batch_poller::{
    EventMonitor, EventOptions, MonitorOptions, PollTrigger, PollingMonitorBuilder,
    RunningEventMonitor, RunningPollingMonitor, Undecided,
};
use grid_batch_queuer::{BatchQueue, WakeUp};
use grid_batch_store::{
    ClaimOptions, ClaimStore, MonitorStore, PendingBatch, Store, StoreObserver,
};
use grid_batch_submitter::{SubmitterBuilder, SubmitterCounters, SubmitterWaker};
use log::info;

pub use counts::ServiceCounts;
pub use error::StartError;

use crate::{Config, LedgerKind};
use afterwards::Afterwards;
use counts::Counters;
use follower::Follower;
use keeper::{HandOver, Keeper, Trouble};
use ledger::Ledger;
use recovery::Recovery;

/// The service: intake, queue, submitter and monitors over one store and one ledger.
#[derive(Debug)]
pub struct Service;

impl Service {
    /// Starts everything, and goes on where the last run ended or was killed.
    pub fn start(config: &Config) -> Result<RunningService, StartError> {
        match config.ledger.kind {
            Some(LedgerKind::Sawtooth) => {
                let ledger = ledger::sawtooth(&config.ledger, &config.poll)?;
                start(config, |_| Ok(ledger))
            }
            Some(LedgerKind::Scabbard) => {
                let ledger = ledger::scabbard(&config.ledger, &config.poll)?;
                start(config, |_| Ok(ledger))
            }
            #[cfg(feature = "evm")]
            Some(LedgerKind::Evm) => {
                let chain = ledger::evm(config)?;
                start(config, |store| chain.over(store))
            }
            #[cfg(not(feature = "evm"))]
            Some(LedgerKind::Evm) => Err(StartError::NotBuilt { kind: "evm" }),
            None => Err(StartError::Missing {
                name: "ledger.kind",
                rule: "it must be \"sawtooth\", \"scabbard\" or \"evm\"",
            }),
        }
    }
}

/// A service at work.
pub struct RunningService {
    api: RunningApi,
    events: Option<RunningEventMonitor>,
    submitter: Box<dyn Ending>,
    poller: RunningPollingMonitor<PendingBatch, StatusReport>,
    recovery: Recovery,
    keeper: Keeper,
    store: Store,
    counters: Counters,
    submitter_counters: SubmitterCounters,
}

impl RunningService {
    /// Where batches are handed in.
    pub fn url(&self) -> String {
        format!("http://{}", self.api.local_addr())
    }

    /// What is stored.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What became of batches since the start.
    pub fn counts(&self) -> ServiceCounts {
        self.counters.read(&self.submitter_counters)
    }

    /// Takes no more batches, sends none, waits for what is being sent, and writes what came of it.
    pub fn stop(self) -> Result<(), StartError> {
        let Self { mut api, events, mut submitter, poller, recovery, keeper, .. } = self;
        keeper.take_no_more();
        // Both wind down at the same time.
        let begun = [api.signal_shutdown(), submitter.begin_to_end()];
        let ended = [
            api.wait_for_shutdown(),
            submitter.end(),
            events.map_or(Ok(()), ShutdownHandle::wait_for_shutdown),
            poller.wait_for_shutdown(),
        ];
        drop((recovery, keeper));
        Ok(begun.into_iter().chain(ended).collect::<Result<(), InternalError>>()?)
    }
}

impl fmt::Debug for RunningService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningService")
            .field("address", &self.api.local_addr())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// Something that runs and can be ended, whatever its scopes.
trait Ending: Send {
    fn begin_to_end(&mut self) -> Result<(), InternalError>;

    fn end(self: Box<Self>) -> Result<(), InternalError>;
}

impl<T: ShutdownHandle + Send> Ending for T {
    fn begin_to_end(&mut self) -> Result<(), InternalError> {
        self.signal_shutdown()
    }

    fn end(self: Box<Self>) -> Result<(), InternalError> {
        self.wait_for_shutdown()
    }
}

fn start<S: ScopeId>(
    config: &Config,
    ledger: impl FnOnce(&Store) -> Result<Ledger<S>, StartError>,
) -> Result<RunningService, StartError> {
    let listener = listen(config)?;
    let claims = open(config)?;
    let store = claims.store().clone();
    let ledger = ledger(&store)?;
    let waker = SubmitterWaker::new();
    let poke = waker.clone();
    let wake_up = WakeUp::new(move || poke.wake())?;
    let trigger = PollTrigger::new();
    let events = event_monitor(config, &ledger, &trigger)?;
    let afterwards = Afterwards {
        wake_up,
        trigger,
        follower: events.as_ref().map(RunningEventMonitor::follower),
        counters: Counters::default(),
    };
    follow_what_waits(&store, &afterwards, config.ledger.event_sockets)?;

    let poller = poller(config, &ledger, &claims, &afterwards)?;
    let (submitter, submitter_counters) = submitter(config, &ledger, &claims, &afterwards, waker)?;
    let recovery = Recovery::start(claims.clone(), config.longest_submission())?;
    let trouble = Trouble::default();
    let keeper =
        Keeper::start(claims, config.claims.expiry_1, afterwards.clone(), trouble.clone())?;
    let api = api(config, &ledger, &store, &afterwards, keeper.hand_over(), trouble, listener)?;
    info!(address:% = api.local_addr(), database:% = config.database; "started");
    let counters = afterwards.counters;
    Ok(RunningService {
        api,
        events,
        submitter,
        poller,
        recovery,
        keeper,
        store,
        counters,
        submitter_counters,
    })
}

fn listen(config: &Config) -> Result<TcpListener, StartError> {
    let address = config.listen;
    TcpListener::bind(address).map_err(|source| StartError::Listen { address, source })
}

/// The store, as a new instance sees it.
fn open(config: &Config) -> Result<ClaimStore, StartError> {
    let failed = |source| StartError::Store { database: config.database.to_string(), source };
    let store = Store::open(&config.database, config.store.clone()).map_err(failed)?;
    let options = ClaimOptions {
        name: config.claims.name.clone(),
        idle_expiry: config.claims.expiry_1,
        full_expiry: config.claims.expiry_2,
        longest_submission: config.longest_submission(),
        fair_share: config.claims.share,
        ..ClaimOptions::default()
    };
    registration::register(&store, &options).map_err(failed)
}

fn event_monitor<S: ScopeId>(
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

/// Listens to services from before anything of them is sent.
fn follow_what_waits(
    store: &Store,
    afterwards: &Afterwards,
    sockets: usize,
) -> Result<(), StartError> {
    let waiting = store.depths(None, sockets).map_err(StartError::part)?;
    waiting.iter().for_each(|depth| afterwards.follow(&depth.service_id));
    Ok(())
}

fn poller<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    claims: &ClaimStore,
    afterwards: &Afterwards,
) -> Result<RunningPollingMonitor<PendingBatch, StatusReport>, StartError> {
    let told = afterwards.clone();
    let store =
        MonitorStore::new(claims.clone(), move |change, recorded| told.follow_up(change, recorded));
    let resubmitted = config.poll.resubmit_undecided.clone();
    let undecided = move |service: &ServiceId| match resubmitted.contains(service) {
        true => Undecided::Resubmit,
        false => Undecided::Hold,
    };
    let mut monitor = PollingMonitorBuilder::new()
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_evidence(store, Arc::clone(&ledger.evidence))
        .with_reader(Arc::clone(&ledger.reader))
        .with_undecided(undecided)
        .with_trigger(afterwards.trigger.clone())
        .with_options(monitor_options(config));
    if let Some(follower) = &afterwards.follower {
        monitor = monitor.with_events(follower.clone());
    }
    Ok(monitor.build().map_err(StartError::part)?.run()?)
}

fn monitor_options(config: &Config) -> MonitorOptions {
    let poll = &config.poll;
    let quiet_after = match config.ledger.kind {
        // What is not mined is looked at when it is to be sent again.
        Some(LedgerKind::Evm) => poll.quiet_after.min(config.evm.resend_after),
        _ => poll.quiet_after,
    };
    MonitorOptions {
        poll_interval: poll.interval,
        poll_interval_with_events: poll.interval_with_events,
        longest_interval: poll.longest,
        trigger_gap: poll.trigger_gap,
        quiet_after,
        believe_absence_after: poll.believe_absence_after,
        hold_after: poll.hold_after,
        give_up_after: poll.give_up_after,
        max_attempts: poll.max_attempts,
        ..MonitorOptions::default()
    }
}

fn submitter<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    claims: &ClaimStore,
    afterwards: &Afterwards,
    waker: SubmitterWaker,
) -> Result<(Box<dyn Ending>, SubmitterCounters), StartError> {
    let queue = BatchQueue::<S, ClaimStore>::new(
        claims.clone(),
        afterwards.wake_up.clone(),
        config.queue.clone(),
    );
    let told = afterwards.clone();
    let observer =
        StoreObserver::new(claims.store().clone(), config.delay, move |change, recorded| {
            told.follow_up(change, recorded);
        });
    let submitter = SubmitterBuilder::new()
        .with_queue(queue)
        .with_waker(waker)
        .with_sender(Arc::clone(&ledger.sender))
        .with_observer(Arc::new(Follower { afterwards: afterwards.clone(), scope: PhantomData }))
        .with_group_observer(Arc::new(observer))
        .with_options(config.submit.clone());
    let submitter = ledger.nodes.given_to(submitter).build().map_err(StartError::part)?;
    let running = submitter.run()?;
    let counters = running.counters();
    Ok((Box::new(running), counters))
}

fn api<S: ScopeId>(
    config: &Config,
    ledger: &Ledger<S>,
    store: &Store,
    afterwards: &Afterwards,
    hand_over: HandOver,
    trouble: Trouble,
    listener: TcpListener,
) -> Result<RunningApi, StartError> {
    let options = ApiOptions {
        body_limit: config.body_limit,
        memory_limit: config.body_limit.max(ApiOptions::default().memory_limit),
        ..ApiOptions::default()
    };
    let afterwards = afterwards.clone();
    let api = ApiBuilder::new(store.clone())
        .with_options(options)
        .with_service_rule(|service| {
            S::from_service_id(service).map(drop).map_err(|error| error.to_string())
        })
        .with_stored(move |services| {
            afterwards.stored(services);
            hand_over.handed_in(services);
        })
        .with_health(move || trouble.reason().into_iter().collect());
    let api = match &ledger.withdrawals {
        Some(rules) => api.with_withdrawals(Arc::clone(rules)),
        None => api,
    };
    Ok(api.build().map_err(StartError::part)?.serve(listener)?)
}
