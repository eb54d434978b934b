//! The demonstration of withdrawals: a chain of one node, the service as a process beside it, a price
//! of gas that rises above the cap for a while, a kill, and an audit of what the chain has.

mod audit;
mod chain;
mod client;
mod plan;
mod process;
mod progress;
mod report;
mod settings;

use grid_batch_withdrawals::WithdrawalFilter;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use grid_batch_store::{Store, StoreOptions};

pub use progress::WithdrawalProgress;
pub use report::WithdrawalReport;

use crate::demo::DemoError;
use chain::Chain;
use client::Client;
use plan::Plan;
use process::{Place, Process};
use settings::CAP_GWEI;

/// What a demonstration of withdrawals is to be like.
#[derive(Debug, Clone)]
pub struct WithdrawalDemoOptions {
    /// The program `grid-batch`, which is killed on the way.
    pub program: PathBuf,
    /// How many withdrawals are asked for, besides rewards.
    pub withdrawals: usize,
    /// Where they are stored; otherwise in an SQLite file that is removed afterwards.
    pub database: Option<String>,
    /// What the service logs, to this process's standard error.
    pub log: String,
}

impl WithdrawalDemoOptions {
    /// A demonstration that is over in less than a minute.
    pub fn new(program: PathBuf) -> Self {
        Self { program, withdrawals: 24, database: None, log: "off".to_owned() }
    }
}

/// Shows withdrawals from beginning to end, and compares what the service says of them with what the
/// chain has.
///
/// `watch` is told whenever something has changed, and of each event.
pub fn demonstrate_withdrawals(
    options: &WithdrawalDemoOptions,
    mut watch: impl FnMut(&WithdrawalProgress),
) -> Result<WithdrawalReport, DemoError> {
    refuse_withdrawals_of_others(options)?;
    let chain = Chain::start()?;
    let plan = Plan::new(options.withdrawals, &chain);
    let mut stage = Stage::set(options, &chain, &plan)?;
    stage.play(&mut watch)?;
    audit::audit(&chain, &plan, &stage.client.all()?, stage.counted)
}

/// What was signed on another chain, this one would take too: it has the same id and accounts.
fn refuse_withdrawals_of_others(options: &WithdrawalDemoOptions) -> Result<(), DemoError> {
    let Some(database) = &options.database else { return Ok(()) };
    let url = database.parse().map_err(DemoError::internal)?;
    let store = Store::open(&url, StoreOptions::default())?;
    match store.withdrawals(&WithdrawalFilter::default(), None, 1)?.is_empty() {
        true => Ok(()),
        false => Err(DemoError::Options(
            "the database holds withdrawals of another chain; give it an empty one".to_owned(),
        )),
    }
}

/// A spike of the gas price goes this far above the cap.
const SPIKE_GWEI: u64 = 3 * CAP_GWEI;

/// What was counted on the way.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    claims_refused: usize,
    kills: usize,
    parked_for: Duration,
    time: Duration,
}

/// The service at work, and who looks on.
struct Stage<'a> {
    options: &'a WithdrawalDemoOptions,
    chain: &'a Chain,
    plan: &'a Plan,
    place: Place,
    process: Process,
    client: Client,
    counted: Counted,
    begun: Instant,
}

impl<'a> Stage<'a> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    /// Longer than nothing happens on the slowest machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn set(
        options: &'a WithdrawalDemoOptions,
        chain: &'a Chain,
        plan: &'a Plan,
    ) -> Result<Self, DemoError> {
        let place = Place::new(chain)?;
        let process = Process::start(options, chain, &place)?;
        let client = Client::new(process.url())?;
        let counted = Counted::default();
        Ok(Self { options, chain, plan, place, process, client, counted, begun: Instant::now() })
    }

    fn play(&mut self, watch: &mut impl FnMut(&WithdrawalProgress)) -> Result<(), DemoError> {
        let half = self.plan.len() / 2;
        self.client.schedule(&self.plan.orders()[..half])?;
        self.watch_until("", watch, |progress| progress.withdrawn * 4 >= half)?;

        self.kill_and_start_again()?;
        // Nobody knows which requests were answered: all are made again.
        self.client.schedule(self.plan.orders())?;
        self.counted.claims_refused = self.client.claim_twice(self.plan)?;
        self.watch_until("killed with -9", watch, |progress| progress.withdrawn >= half)?;

        self.chain.set_base_fee(SPIKE_GWEI)?;
        let spike = Instant::now();
        self.watch_until("the gas price rises", watch, |progress| progress.parked > 0)?;
        let event = "parked, until the price falls again";
        self.watch_until(event, watch, |progress| progress.parked == 0)?;
        self.counted.parked_for = spike.elapsed();

        let all = self.plan.len();
        self.watch_until("the price is below the cap", watch, |progress| progress.ended() == all)?;
        self.counted.time = self.begun.elapsed();
        Ok(())
    }

    fn kill_and_start_again(&mut self) -> Result<(), DemoError> {
        self.process.kill()?;
        self.counted.kills += 1;
        self.process = Process::start(self.options, self.chain, &self.place)?;
        self.client.turn_to(self.process.url());
        Ok(())
    }

    /// Tells of an event, and then of what is, until it is so.
    fn watch_until(
        &self,
        event: &'static str,
        watch: &mut impl FnMut(&WithdrawalProgress),
        is_so: impl Fn(&WithdrawalProgress) -> bool,
    ) -> Result<(), DemoError> {
        let mut told: Option<WithdrawalProgress> = None;
        loop {
            let progress = self.progress(if told.is_none() { event } else { "" })?;
            let is_over = is_so(&progress);
            if told.is_none_or(|told| progress.is_news_after(&told)) {
                watch(&progress);
                told = Some(progress);
            }
            if is_over {
                return Ok(());
            }
            if told.is_some_and(|told| progress.time > told.time + Self::PATIENCE) {
                return Err(DemoError::Internal(format!("no end is in sight: {progress}")));
            }
            std::thread::sleep(Self::LOOK_EVERY);
        }
    }

    fn progress(&self, event: &'static str) -> Result<WithdrawalProgress, DemoError> {
        let withdrawals = self.client.all()?;
        Ok(WithdrawalProgress {
            event,
            time: self.begun.elapsed(),
            gas_price_gwei: self.chain.gas_price_gwei()?,
            ..WithdrawalProgress::of(&withdrawals)
        })
    }
}
