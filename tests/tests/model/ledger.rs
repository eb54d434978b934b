//! The ledger: what it does with what it is sent, and what it says of it.

use grid_batch_core::{BatchState, LedgerStatus};

use crate::{
    action::{
        Action, BatchAt,
        LedgerStep::{self, Apply, Refuse, Restart, StrayArrives, StrayIsLost},
    },
    protocol::{Ledger, Protocol},
    state::{Batch, State},
};

pub fn offer(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    let mut offer = |step| actions.push(Action::Ledger(step));
    for (service, of) in state.services.iter().enumerate() {
        for (number, batch) in of.batches.iter().enumerate() {
            let at = BatchAt { service, batch: number };
            if batch.strays > 0 {
                offer(StrayArrives(at));
                offer(StrayIsLost(at));
            }
            if batch.ledger.accepted > 0 {
                offer(Apply(at));
                if state.troubles.ledger > 0 {
                    offer(Refuse(at));
                }
            }
        }
    }
    if state.troubles.ledger > 0 && forgets_anything(protocol, state) {
        offer(Restart);
    }
}

/// A restart after which the ledger is as before changes nothing.
fn forgets_anything(protocol: &Protocol, state: &State) -> bool {
    let mut batches = state.services.iter().flat_map(|service| &service.batches);
    batches.any(|batch| {
        let mut after = batch.clone();
        forget(protocol, &mut after);
        after != *batch
    })
}

pub fn go(protocol: &Protocol, state: &mut State, step: LedgerStep) {
    match step {
        StrayArrives(at) => {
            let batch = state.batch_mut(at);
            batch.strays -= 1;
            accept(protocol, batch);
        }
        StrayIsLost(at) => state.batch_mut(at).strays -= 1,
        Apply(at) => apply(state, at),
        Refuse(at) => {
            state.troubles.ledger -= 1;
            let ledger = &mut state.batch_mut(at).ledger;
            ledger.accepted -= 1;
            ledger.refused = true;
        }
        Restart => {
            state.troubles.ledger -= 1;
            let batches = state.services.iter_mut().flat_map(|service| &mut service.batches);
            batches.for_each(|batch| forget(protocol, batch));
        }
    }
}

/// A POST arrives.
pub fn accept(protocol: &Protocol, batch: &mut Batch) {
    let ledger = &mut batch.ledger;
    let is_there = ledger.accepted > 0 || ledger.applied > 0;
    let is_known = protocol.world.ledger == Ledger::AppliesOnce && is_there;
    let is_refused_again = protocol.world.refusals_last && ledger.refused;
    ledger.known = true;
    if !is_known && !is_refused_again {
        ledger.accepted += 1;
        ledger.refused = false;
    }
}

fn apply(state: &mut State, at: BatchAt) {
    let (earlier, later) = state.services[at.service].batches.split_at(at.batch);
    let not_before = earlier
        .iter()
        .any(|batch| batch.ledger.applied == 0 && batch.progress.state != BatchState::Invalid);
    let not_after = later[1..].iter().any(|batch| batch.ledger.applied > 0);
    state.seen.out_of_order |= not_before || not_after;
    let ledger = &mut state.batch_mut(at).ledger;
    ledger.accepted -= 1;
    ledger.applied += 1;
}

fn forget(protocol: &Protocol, batch: &mut Batch) {
    let ledger = &mut batch.ledger;
    let remembers_applied = protocol.world.ledger == Ledger::AppliesOnce;
    ledger.accepted = 0;
    ledger.refused &= protocol.world.refusals_last;
    ledger.known &= remembers_applied && ledger.applied > 0;
    ledger.watched = false;
}

/// What the ledger says of a batch.
pub fn status(batch: &Batch) -> LedgerStatus {
    let ledger = batch.ledger;
    match ledger {
        _ if !ledger.known => LedgerStatus::NotReported,
        _ if ledger.applied > 0 => LedgerStatus::Committed,
        _ if ledger.refused => LedgerStatus::Invalid,
        _ => LedgerStatus::Pending,
    }
}
