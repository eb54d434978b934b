//! The stages of a batch, and how each is reached.

use std::time::Duration;

use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_ledger_sim::{Fault, When};

use crate::harness::{DatabaseKind, Jump, LedgerKind, Machine};

/// What the first of two batches is doing when the clock jumps.
#[derive(Debug, Clone, Copy)]
pub enum Stage {
    BeforeTaken,
    SlowPost,
    InDoubt,
    Pending,
    Delayed,
    BetweenSearches,
    Held,
}

impl Stage {
    /// How long the ledger needs for each step of a batch.
    fn step(self) -> Duration {
        match self {
            // Long enough for a busy machine to notice it.
            Self::Pending => Duration::from_secs(2),
            _ => Duration::from_millis(250),
        }
    }

    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // The ledger gets the batch before that.
            Self::SlowPost | Self::InDoubt => &[("testing.accept_absence_after", "50s")],
            Self::Delayed => &[("testing.first_delay", "4s"), ("testing.longest_delay", "4s")],
            Self::Held => &[("testing.max_attempts", "1")],
            _ => &[],
        }
    }
}

/// How long the ledger keeps a request, unless it is told to deliver it: longer than a test waits.
const UNTIL_DELIVERED: Duration = Duration::from_mins(2);

/// Lets the clock jump at this stage. Both batches must be applied once, in order, and as soon as
/// without the jump: in much less time than the clock jumps by.
pub fn run(stage: Stage, jump: Jump, ledger: LedgerKind, database: DatabaseKind) {
    let machine = Machine::start(ledger, database, 2, stage.step(), stage.settings());
    let inject = |fault, times| machine.ledger.inject(fault, When::Next(times));
    match stage {
        Stage::BeforeTaken | Stage::Pending => {}
        Stage::SlowPost | Stage::InDoubt => inject(Fault::LateArrival(UNTIL_DELIVERED), 1),
        Stage::Delayed => inject(Fault::Busy, 1),
        Stage::BetweenSearches | Stage::Held => inject(Fault::ResetBefore, 1),
    }
    if let Stage::BeforeTaken = stage {
        machine.jump(jump);
    }
    machine.submit();
    match stage {
        Stage::BeforeTaken => {}
        Stage::SlowPost => in_state(&machine, BatchState::Submitting),
        Stage::InDoubt | Stage::BetweenSearches => in_doubt_and_searched_for(&machine),
        Stage::Pending => in_state(&machine, BatchState::Pending),
        Stage::Delayed => in_state(&machine, BatchState::Delayed),
        Stage::Held => machine.wait_for_first("held", |first| first.held.is_some()),
    }
    if !matches!(stage, Stage::BeforeTaken) {
        machine.jump(jump);
    }
    match stage {
        Stage::SlowPost | Stage::InDoubt => {
            in_doubt_and_searched_for(&machine);
            machine.ledger.deliver_late();
        }
        Stage::Held => {
            let first = machine.first();
            let store = machine.server.store();
            let attempt = first.progress.attempts;
            store.decide(&first.service_id, &first.batch_id, attempt, Decision::Absent).unwrap();
        }
        _ => {}
    }
    machine.check_all_committed();
}

/// Lets a server on a machine with another time of day continue with a batch at this stage.
pub fn continue_elsewhere(stage: Stage, difference: Jump, ledger: LedgerKind) {
    let machine = Machine::start(ledger, DatabaseKind::Postgres, 2, stage.step(), stage.settings());
    match stage {
        Stage::Delayed => {
            machine.ledger.inject(Fault::Busy, When::Next(1));
            machine.submit();
            in_state(&machine, BatchState::Delayed);
        }
        Stage::BetweenSearches => {
            machine.ledger.inject(Fault::ResetBefore, When::Next(1));
            machine.submit();
            in_state(&machine, BatchState::InDoubt);
        }
        _ => {
            machine.submit();
            in_state(&machine, BatchState::Pending);
        }
    }
    machine.continue_on_another(difference).check_all_committed();
}

fn in_doubt_and_searched_for(machine: &Machine) {
    machine.wait_for_first("in doubt, and searched for", |first| {
        first.progress.state == BatchState::InDoubt && first.checked_at.is_some()
    });
}

fn in_state(machine: &Machine, state: BatchState) {
    machine.wait_for_first(&format!("{state}"), |first| first.progress.state == state);
}
