//! The stages of a batch, and how each is reached.

use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_ledger_sim::{Fault, When};

use crate::harness::{DatabaseKind, Jump, LATE_ARRIVAL, LedgerKind, Machine};

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

/// Lets the clock jump at this stage. Both batches must be applied once, in order, and as soon as
/// without the jump: in much less time than the clock jumps by.
pub fn run(stage: Stage, jump: Jump, ledger: LedgerKind, database: DatabaseKind) {
    let settings: &[(&str, &str)] = match stage {
        Stage::Held => &[("testing.max_attempts", "1")],
        _ => &[],
    };
    let machine = Machine::start(ledger, database, 2, settings);
    let inject = |fault, times| machine.ledger.inject(fault, When::Next(times));
    match stage {
        Stage::BeforeTaken | Stage::Pending => {}
        Stage::SlowPost | Stage::InDoubt => inject(Fault::LateArrival(LATE_ARRIVAL), 1),
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
        Stage::InDoubt | Stage::BetweenSearches => {
            machine.wait_for_first("in doubt, and searched for", |first| {
                first.progress.state == BatchState::InDoubt && first.checked_at.is_some()
            });
        }
        Stage::Pending => in_state(&machine, BatchState::Pending),
        Stage::Delayed => in_state(&machine, BatchState::Delayed),
        Stage::Held => machine.wait_for_first("held", |first| first.held.is_some()),
    }
    if !matches!(stage, Stage::BeforeTaken) {
        machine.jump(jump);
    }
    if let Stage::Held = stage {
        let first = machine.first();
        let store = machine.server.store();
        let attempt = first.progress.attempts;
        store.decide(&first.service_id, &first.batch_id, attempt, Decision::Absent).unwrap();
    }
    machine.check_all_committed();
}

/// Lets a server on a machine with another time of day continue with a batch at this stage.
pub fn continue_elsewhere(stage: Stage, difference: Jump, ledger: LedgerKind) {
    let machine = Machine::start(ledger, DatabaseKind::Postgres, 2, &[]);
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

fn in_state(machine: &Machine, state: BatchState) {
    machine.wait_for_first(&format!("{state}"), |first| first.progress.state == state);
}
