use std::{
    sync::{atomic::Ordering::Relaxed, mpsc::channel},
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchFilter;
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_service::{Config, RunningServer, Server};
use grid_batch_store::Store;
use grid_batch_support::Shutdown;

use crate::{
    DemoError, DemoOptions, DemoProgress, DemoReport, FaultLevel, SimulatedLedger,
    batches::DemoBatches,
    clients::{ClientCounts, run_clients},
    directory::{DemoDirectory, DemoPlan},
    faults::{fault_probabilities, restart_until},
    operator::decide_held_batches,
    report::DemoCounts,
    settings,
    used_database::refuse_used_database,
};

/// Sends batches to a server over a simulated ledger, waits until every batch has ended, and
/// compares the result with the ledger's own record.
///
/// Calls `watch` about twice a second.
pub fn demonstrate(
    options: &DemoOptions,
    watch: impl FnMut(&DemoProgress),
) -> Result<DemoReport, DemoError> {
    demonstrate_and_keep(options, watch, |_, _| {})
}

/// The same, but the server and the ledger run until `keep` returns, which gets the report and the URL of the server.
pub fn demonstrate_and_keep(
    options: &DemoOptions,
    mut watch: impl FnMut(&DemoProgress),
    keep: impl FnOnce(&DemoReport, &str),
) -> Result<DemoReport, DemoError> {
    options.check()?;
    let directory = DemoDirectory::open(options.keep.as_deref())?;
    let seed = options.seed.unwrap_or_else(time_as_seed);
    let mut plan = directory.plan(options, seed)?;
    let batches = DemoBatches::new(options.ledger, plan.services, plan.seed)?;

    let ledger = start_ledger(options, &plan, &directory, &batches)?;
    let config = config(options, &plan, &directory, &ledger)?;
    let store = Store::open(&config.general.database, config.store_options())?;
    refuse_used_database(&store, Some(&config.ledger.name))?;
    let server = Server::start(&config)?;

    let counts = run(options, &plan, &batches, &ledger, &server, &mut watch);
    let report = counts.and_then(|counts| {
        let promised = batches.ids(plan.batches)?;
        let mut report = DemoReport::new(&store, &ledger.record(), &promised, counts, plan.seed)?;
        if options.ledger == SimulatedLedger::Sawtooth {
            report.add_state(&ledger, &batches.in_order(plan.batches), options.strategy);
        }
        keep(&report, &server.url());
        Ok(report)
    });
    server.stop()?;
    let report = report?;
    plan.done = true;
    directory.write(&plan)?;
    Ok(report)
}

/// Runs clients, operator and restarts until every batch has ended.
fn run(
    options: &DemoOptions,
    plan: &DemoPlan,
    batches: &DemoBatches,
    ledger: &LedgerSim,
    server: &RunningServer,
    watch: &mut impl FnMut(&DemoProgress),
) -> Result<DemoCounts, DemoError> {
    let url = server.url();
    let client_counts = ClientCounts::default();
    let (end_restarts, restarts_ended) = channel();
    thread::scope(|scope| {
        let clients = scope.spawn(|| run_clients(&url, batches, plan.batches, &client_counts));
        let restarts = (options.faults == FaultLevel::Harsh)
            .then(|| scope.spawn(move || restart_until(ledger, &restarts_ended)));
        let started = Instant::now();
        let stop = &options.stop;
        let watcher =
            Watcher { plan, ledger, server, client_counts: &client_counts, started, stop };
        let counts = watcher.wait_until_all_ended(|| clients.is_finished(), watch);
        client_counts.stop.store(true, Relaxed);
        let panicked = |_| Err(DemoError::internal("a client has panicked"));
        let clients_result = clients.join().unwrap_or_else(panicked);
        drop(end_restarts);
        let ledger_restarts = restarts.map_or(0, |thread| thread.join().unwrap_or_default());
        let counts = counts?;
        clients_result?;
        Ok(DemoCounts { ledger_restarts, ..counts })
    })
}

/// Reports the progress, and plays the operator.
struct Watcher<'a> {
    plan: &'a DemoPlan,
    ledger: &'a LedgerSim,
    server: &'a RunningServer,
    client_counts: &'a ClientCounts,
    started: Instant,
    stop: &'a Shutdown,
}

impl Watcher<'_> {
    const CHECK_INTERVAL: Duration = Duration::from_millis(50);
    const REPORT_INTERVAL: Duration = Duration::from_millis(500);

    fn wait_until_all_ended(
        &self,
        clients_are_done: impl Fn() -> bool,
        watch: &mut impl FnMut(&DemoProgress),
    ) -> Result<DemoCounts, DemoError> {
        let ended_before = self.ended()?;
        let mut last = DemoProgress { ended: ended_before, ..DemoProgress::default() };
        let mut decided_by_operator = 0;
        loop {
            if self.stop.is_requested() {
                return Err(DemoError::Stopped);
            }
            let all_sent = clients_are_done();
            decided_by_operator += decide_held_batches(self.server.store(), self.ledger)?;
            let done = all_sent && self.no_batch_is_open()?;
            if done || self.started.elapsed() >= last.time + Self::REPORT_INTERVAL {
                last = self.progress(&last)?;
                watch(&last);
            }
            if done {
                let counts = self.server.counts();
                return Ok(DemoCounts {
                    retried: counts.sent_again,
                    in_doubt: counts.in_doubt,
                    decided_by_operator,
                    ledger_restarts: 0,
                    ended: last.ended.saturating_sub(ended_before),
                    time: self.started.elapsed(),
                });
            }
            thread::sleep(Self::CHECK_INTERVAL);
        }
    }

    fn progress(&self, last: &DemoProgress) -> Result<DemoProgress, DemoError> {
        let time = self.started.elapsed();
        let counts = self.server.counts();
        let store = self.server.store();
        let in_doubt = BatchFilter { state: Some(BatchState::InDoubt), ..BatchFilter::default() };
        let ended = self.ended()?;
        let seconds = (time - last.time).as_secs_f64().max(0.001);
        Ok(DemoProgress {
            time,
            total: self.plan.batches as u64,
            accepted: self.client_counts.accepted.load(Relaxed),
            submitted: counts.submitted,
            ended,
            retried: counts.sent_again,
            in_doubt: store.count(&in_doubt)?,
            held: store.held_batches(None, 1_000)?.len() as u64,
            per_second: ended.saturating_sub(last.ended) as f64 / seconds,
        })
    }

    fn ended(&self) -> Result<u64, DemoError> {
        let store = self.server.store();
        let count =
            |state| store.count(&BatchFilter { state: Some(state), ..BatchFilter::default() });
        Ok(count(BatchState::Committed)? + count(BatchState::Invalid)?)
    }

    fn no_batch_is_open(&self) -> Result<bool, DemoError> {
        Ok(self.server.store().depths(None, 1)?.is_empty())
    }
}

fn start_ledger(
    options: &DemoOptions,
    plan: &DemoPlan,
    directory: &DemoDirectory,
    batches: &DemoBatches,
) -> Result<LedgerSim, DemoError> {
    let ledger = match options.ledger {
        SimulatedLedger::Sawtooth => LedgerSim::sawtooth(),
        SimulatedLedger::Scabbard => LedgerSim::scabbard(batches.scopes()?),
    };
    let ledger = ledger
        .seed(plan.seed)
        .pending_for(settings::PENDING_FOR)
        .valid_for(settings::VALID_FOR)
        .coordinator_timeout(settings::COORDINATOR_TIMEOUT)
        .record_to(directory.record());
    let faults = fault_probabilities(&options.faults, options.ledger);
    let ledger = faults.into_iter().fold(ledger, |ledger, (fault, when)| ledger.fault(fault, when));
    Ok(ledger.start()?)
}

/// The server's configuration. It ignores the environment and the configuration file, which are
/// about a real ledger.
fn config(
    options: &DemoOptions,
    plan: &DemoPlan,
    directory: &DemoDirectory,
    ledger: &LedgerSim,
) -> Result<Config, DemoError> {
    let database = match &options.database {
        Some(url) => url.clone(),
        None => {
            let url = format!("sqlite://{}", directory.database().display());
            url.parse().map_err(DemoError::internal)?
        }
    };
    let variable = [
        ("listen", "127.0.0.1:0".to_owned()),
        ("ledger.kind", options.ledger.as_str().to_owned()),
        ("ledger.name", format!("demo {}", plan.seed)),
        ("ledger.urls", ledger.url()),
        ("ledger.key_file", directory.write_key(plan.seed)?.display().to_string()),
        ("ledger.event_sockets", options.services.to_string()),
        ("services.*.strategy", options.strategy.as_str().to_owned()),
    ];
    let of_faults: &[_] = if options.may_have_faults() { settings::WITH_FAULTS } else { &[] };
    let fixed = settings::SETTINGS.iter().chain(of_faults);
    let fixed = fixed.map(|(name, text)| (*name, (*text).to_owned()));
    let flags = variable.into_iter().chain(fixed).map(|(name, text)| (name.to_owned(), text));
    let mut config = Config::from_flags(flags.collect())?;
    config.general.database = database;
    Ok(config)
}

fn time_as_seed() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64)
}
