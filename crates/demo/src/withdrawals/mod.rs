//! The demonstration of withdrawals: the server as a process over a chain of one node. During the run, the server is
//! killed, and the gas price rises above the maximum for a while.

mod audit;
mod chain;
mod client;
mod plan;
mod progress;
mod report;
mod server_process;
mod settings;

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use grid_batch_store::{Store, StoreOptions};
use grid_batch_support::Shutdown;

pub use progress::WithdrawalProgress;
pub use report::WithdrawalReport;

use crate::{DemoError, used_database::refuse_used_database};
use audit::audit;
use chain::DemoChain;
use client::WithdrawalClient;
use plan::WithdrawalPlan;
use report::WithdrawalCounts;
use server_process::{ServerDirectory, ServerProcess};
use settings::MAXIMUM_GAS_PRICE_GWEI;

/// The options of a demonstration of withdrawals.
#[derive(Debug, Clone)]
pub struct WithdrawalDemoOptions {
    /// The program `grid-batch`.
    pub program: PathBuf,
    /// The number of withdrawals, not counting those of the reward.
    pub withdrawals: usize,
    /// The database's URL; `None` for an SQLite file that is removed afterwards.
    pub database: Option<String>,
    /// The server's log level. It logs to this process's standard error.
    pub log: String,
    /// Stops the demonstration, which then removes its files and ends its processes.
    pub stop: Shutdown,
}

impl WithdrawalDemoOptions {
    /// A demonstration of less than a minute.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            withdrawals: 24,
            database: None,
            log: "off".to_owned(),
            stop: Shutdown::new(),
        }
    }
}

/// Requests withdrawals, waits until each has ended, and compares the server's reports with the
/// chain.
///
/// Calls `watch` for each event and whenever something has changed.
pub fn demonstrate_withdrawals(
    options: &WithdrawalDemoOptions,
    mut watch: impl FnMut(&WithdrawalProgress),
) -> Result<WithdrawalReport, DemoError> {
    refuse_used(options)?;
    let chain = DemoChain::start()?;
    let plan = WithdrawalPlan::new(options.withdrawals, &chain);
    let mut demo = WithdrawalDemo::start(options, &chain, &plan)?;
    demo.run(&mut watch)?;
    audit(&chain, &plan, &demo.client.withdrawals()?, demo.counts)
}

/// The chain is new, so a database that was used before belongs to another chain. This chain would even
/// accept transactions that were signed for the other one: anvil's chains have the same id and accounts.
fn refuse_used(options: &WithdrawalDemoOptions) -> Result<(), DemoError> {
    let Some(database) = &options.database else { return Ok(()) };
    let url = database.parse().map_err(DemoError::internal)?;
    refuse_used_database(&Store::open(&url, StoreOptions::default())?, None)
}

/// The gas price while it is above the maximum.
const HIGH_GAS_PRICE_GWEI: u64 = 3 * MAXIMUM_GAS_PRICE_GWEI;

/// A running demonstration.
struct WithdrawalDemo<'a> {
    options: &'a WithdrawalDemoOptions,
    chain: &'a DemoChain,
    plan: &'a WithdrawalPlan,
    // The server ends before its directory is removed.
    server: ServerProcess,
    directory: ServerDirectory,
    client: WithdrawalClient,
    counts: WithdrawalCounts,
    started: Instant,
}

impl<'a> WithdrawalDemo<'a> {
    const CHECK_INTERVAL: Duration = Duration::from_millis(100);
    /// If nothing changes for this long, the demonstration fails.
    const PROGRESS_TIMEOUT: Duration = Duration::from_secs(60);

    fn start(
        options: &'a WithdrawalDemoOptions,
        chain: &'a DemoChain,
        plan: &'a WithdrawalPlan,
    ) -> Result<Self, DemoError> {
        let directory = ServerDirectory::new(chain)?;
        let server = ServerProcess::start(options, chain, &directory)?;
        let client = WithdrawalClient::new(server.url())?;
        let counts = WithdrawalCounts::default();
        let started = Instant::now();
        Ok(Self { options, chain, plan, directory, server, client, counts, started })
    }

    fn run(&mut self, watch: &mut impl FnMut(&WithdrawalProgress)) -> Result<(), DemoError> {
        let half = self.plan.len() / 2;
        self.client.schedule(&self.plan.requests()[..half])?;
        self.watch_until("", watch, |progress| progress.withdrawn * 4 >= half)?;

        self.kill_and_restart()?;
        // A real client would not know which requests were answered: it repeats all.
        self.client.schedule(self.plan.requests())?;
        self.counts.claims_refused = self.client.claim_twice(self.plan)?;
        self.watch_until("killed with -9", watch, |progress| progress.withdrawn >= half)?;

        self.chain.set_base_fee(HIGH_GAS_PRICE_GWEI)?;
        let risen = Instant::now();
        self.watch_until("the gas price rises", watch, |progress| progress.parked > 0)?;
        let event = "parked until the gas price falls";
        self.watch_until(event, watch, |progress| progress.parked == 0)?;
        self.counts.parked_for = risen.elapsed();

        let all = self.plan.len();
        let event = "the gas price is below the maximum";
        self.watch_until(event, watch, |progress| progress.ended() == all)?;
        self.counts.time = self.started.elapsed();
        Ok(())
    }

    fn kill_and_restart(&mut self) -> Result<(), DemoError> {
        self.server.kill()?;
        self.counts.kills += 1;
        self.server = ServerProcess::start(self.options, self.chain, &self.directory)?;
        self.client.set_url(self.server.url())
    }

    /// Reports an event, and then every change, until `done`.
    fn watch_until(
        &self,
        event: &'static str,
        watch: &mut impl FnMut(&WithdrawalProgress),
        done: impl Fn(&WithdrawalProgress) -> bool,
    ) -> Result<(), DemoError> {
        let mut reported: Option<WithdrawalProgress> = None;
        loop {
            if self.options.stop.is_requested() {
                return Err(DemoError::Stopped);
            }
            let progress = self.progress(if reported.is_none() { event } else { "" })?;
            if reported.is_none_or(|last| progress.differs_from(&last)) {
                watch(&progress);
                reported = Some(progress);
            }
            if done(&progress) {
                return Ok(());
            }
            if reported.is_some_and(|last| progress.time > last.time + Self::PROGRESS_TIMEOUT) {
                return Err(DemoError::internal(format!(
                    "no progress for {:?}: {progress}",
                    Self::PROGRESS_TIMEOUT
                )));
            }
            thread::sleep(Self::CHECK_INTERVAL);
        }
    }

    fn progress(&self, event: &'static str) -> Result<WithdrawalProgress, DemoError> {
        let withdrawals = self.client.withdrawals()?;
        Ok(WithdrawalProgress {
            event,
            time: self.started.elapsed(),
            gas_price_gwei: self.chain.gas_price_gwei()?,
            ..WithdrawalProgress::new(&withdrawals)
        })
    }
}
