//! The demonstration: the whole product on one machine, with a ledger that is simulated.

mod batches;
mod error;
mod faults;
mod feeder;
mod kept;
mod options;
mod person;
mod progress;
mod report;
mod timing;
mod verdicts;
#[cfg(feature = "evm")]
mod withdrawals;

use std::{
    sync::{Arc, atomic::Ordering::Relaxed, mpsc::channel},
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::{BatchFilter, BatchState};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_store::Store;

pub use error::DemoError;
pub use options::{DemoOptions, FaultLevel, SimulatedLedger};
pub use progress::DemoProgress;
pub use report::DemoReport;
#[cfg(feature = "evm")]
pub use withdrawals::{
    WithdrawalDemoOptions, WithdrawalProgress, WithdrawalReport, demonstrate_withdrawals,
};

use crate::{Config, RunningService, Service, Setting};
use batches::Batches;
use feeder::{Fed, feed};
use kept::{Place, Plan};
use report::Counted;

/// Shows the whole product: feeds a service that talks to a simulated ledger, and compares what
/// came of it with the ledger's own record.
///
/// `watch` is told about twice a second how far it is.
pub fn demonstrate(
    options: &DemoOptions,
    mut watch: impl FnMut(&DemoProgress),
) -> Result<DemoReport, DemoError> {
    options.check()?;
    let place = Place::open(options.keep.as_deref())?;
    let seed = options.seed.unwrap_or_else(seed_of_now);
    let mut plan = place.plan(options, seed)?;
    let batches = Arc::new(Batches::new(options.ledger, plan.services, plan.seed)?);

    let ledger = start_ledger(options, &plan, &place, &batches)?;
    let service = Service::start(&config(options, &plan, &place, &ledger)?)?;
    refuse_batches_of_others(service.store(), &batches)?;

    let counted = run(options, &plan, &batches, &ledger, &service, &mut watch)?;
    let store = service.store().clone();
    service.stop()?;
    let promised = batches.promised(plan.batches)?;
    let report = DemoReport::of(&store, &ledger.record(), &promised, counted, plan.seed)?;
    plan.done = true;
    place.write(&plan)?;
    Ok(report)
}

/// Feeds, watches, and lets the person decide, until every batch has ended.
fn run(
    options: &DemoOptions,
    plan: &Plan,
    batches: &Arc<Batches>,
    ledger: &LedgerSim,
    service: &RunningService,
    watch: &mut impl FnMut(&DemoProgress),
) -> Result<Counted, DemoError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(DemoError::internal)?;
    let fed = Arc::new(Fed::default());
    let feeding =
        runtime.spawn(feed(service.url(), Arc::clone(batches), plan.batches, Arc::clone(&fed)));
    let (end, ended) = channel();
    thread::scope(|scope| {
        let restarts = (options.faults == FaultLevel::Harsh)
            .then(|| scope.spawn(move || faults::restart_until(ledger, &ended)));
        let watcher = Watcher { plan, ledger, service, fed: &fed, begun: Instant::now() };
        let counted = watcher.until_all_ended(|| feeding.is_finished(), watch);
        fed.stop.store(true, Relaxed);
        let fed_all = runtime.block_on(feeding).map_err(DemoError::internal)?;
        drop(end);
        let restarts = restarts.map_or(0, |thread| thread.join().unwrap_or_default());
        fed_all?;
        Ok(Counted { ledger_restarts: restarts, ..counted? })
    })
}

struct Watcher<'a> {
    plan: &'a Plan,
    ledger: &'a LedgerSim,
    service: &'a RunningService,
    fed: &'a Fed,
    begun: Instant,
}

impl Watcher<'_> {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    const TELL_EVERY: Duration = Duration::from_millis(500);

    fn until_all_ended(
        &self,
        feeding_is_over: impl Fn() -> bool,
        watch: &mut impl FnMut(&DemoProgress),
    ) -> Result<Counted, DemoError> {
        let ended_before = self.ended()?;
        let mut last = DemoProgress { ended: ended_before, ..DemoProgress::default() };
        let mut decided_by_a_person = 0;
        loop {
            let all_fed = feeding_is_over();
            decided_by_a_person += person::decide_what_is_held(self.service.store(), self.ledger)?;
            let is_over = all_fed && self.nothing_is_open()?;
            if is_over || self.begun.elapsed() >= last.time + Self::TELL_EVERY {
                last = self.progress(&last)?;
                watch(&last);
            }
            if is_over {
                let counts = self.service.counts();
                return Ok(Counted {
                    retried: counts.sent_again,
                    in_doubt: counts.in_doubt,
                    decided_by_a_person,
                    ledger_restarts: 0,
                    ended: last.ended.saturating_sub(ended_before),
                    time: self.begun.elapsed(),
                });
            }
            thread::sleep(Self::LOOK_EVERY);
        }
    }

    fn progress(&self, last: &DemoProgress) -> Result<DemoProgress, DemoError> {
        let time = self.begun.elapsed();
        let counts = self.service.counts();
        let store = self.service.store();
        let in_doubt = BatchFilter { state: Some(BatchState::InDoubt), ..BatchFilter::default() };
        let ended = self.ended()?;
        let since = (time - last.time).as_secs_f64().max(0.001);
        Ok(DemoProgress {
            time,
            total: self.plan.batches as u64,
            accepted: self.fed.accepted.load(Relaxed),
            submitted: counts.submitted,
            ended,
            retried: counts.sent_again,
            in_doubt: store.count(&in_doubt)?,
            held: store.held_batches(None, 1_000)?.len() as u64,
            per_second: ended.saturating_sub(last.ended) as f64 / since,
        })
    }

    fn ended(&self) -> Result<u64, DemoError> {
        let store = self.service.store();
        let of_state =
            |state| store.count(&BatchFilter { state: Some(state), ..BatchFilter::default() });
        Ok(of_state(BatchState::Committed)? + of_state(BatchState::Invalid)?)
    }

    fn nothing_is_open(&self) -> Result<bool, DemoError> {
        Ok(self.service.store().depths(None, 1)?.is_empty())
    }
}

/// Batches of others would go to a ledger that does not know their services, for ever.
fn refuse_batches_of_others(store: &Store, batches: &Batches) -> Result<(), DemoError> {
    let mut after = None;
    loop {
        let depths = store.depths(after.as_ref(), 1_000)?;
        let Some(last) = depths.last() else { return Ok(()) };
        if let Some(other) = depths.iter().find(|d| !batches.services().contains(&d.service_id)) {
            return Err(DemoError::OthersBatches { service_id: other.service_id.clone() });
        }
        after = Some(last.service_id.clone());
    }
}

fn start_ledger(
    options: &DemoOptions,
    plan: &Plan,
    place: &Place,
    batches: &Batches,
) -> Result<LedgerSim, DemoError> {
    let ledger = match options.ledger {
        SimulatedLedger::Sawtooth => LedgerSim::sawtooth(),
        SimulatedLedger::Scabbard => LedgerSim::scabbard(batches.scopes()?),
    };
    let ledger = ledger
        .seed(plan.seed)
        .pending_for(timing::PENDING_FOR)
        .valid_for(timing::VALID_FOR)
        .coordinator_timeout(timing::COORDINATOR_TIMEOUT)
        .record_to(place.record());
    let faults = faults::faults(&options.faults, options.ledger);
    let ledger = faults.into_iter().fold(ledger, |ledger, (fault, when)| ledger.fault(fault, when));
    Ok(ledger.start()?)
}

/// The settings of the demonstration. What is set around it is left out: it is about a genuine
/// ledger.
fn config(
    options: &DemoOptions,
    plan: &Plan,
    place: &Place,
    ledger: &LedgerSim,
) -> Result<Config, DemoError> {
    let database = match &options.database {
        Some(url) => url.clone(),
        None => {
            let url = format!("sqlite://{}", place.database().display());
            url.parse().map_err(DemoError::internal)?
        }
    };
    let given = [
        ("listen", "127.0.0.1:0".to_owned()),
        ("ledger.kind", options.ledger.as_str().to_owned()),
        ("ledger.urls", ledger.url()),
        ("ledger.key_file", place.key(plan.seed)?.display().to_string()),
        ("ledger.event_sockets", options.services.to_string()),
    ];
    let fixed = timing::SETTINGS.iter().map(|(name, text)| (*name, (*text).to_owned()));
    let flags = given.into_iter().chain(fixed).map(|(name, text)| {
        let setting = Setting::named(name).ok_or_else(|| DemoError::internal(name))?;
        Ok((setting, text))
    });
    let flags = flags.collect::<Result<Vec<_>, DemoError>>()?;
    let mut config = Config::of_flags(flags)?;
    config.database = database;
    Ok(config)
}

fn seed_of_now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64)
}
