//! What must be so in every state.

use grid_batch_core::BatchState;
use stateright::{Model, Property};

use crate::{
    protocol::Protocol,
    state::{Batch, Service, State},
};

pub const ONE_OWNER: &str = "an epoch of a service has one owner";
pub const TRUE_RECORD: &str = "what is recorded as ended ended so at the ledger";
pub const ONE_UNDER_WAY: &str =
    "one batch of a service is under way, and those before it have ended";
pub const IN_ORDER: &str = "batches of a service are applied in order";
pub const ONCE: &str = "no batch is applied twice";
pub const NOT_BLINDLY: &str = "nothing is sent again without certainty or evidence";
pub const NOT_TOO_EARLY: &str = "nothing is sent again while it may still be applied";
pub const NO_DEAD_END: &str = "where nothing more happens, all has ended or a person is asked";

pub fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_OWNER, |_, state| one_owner(state)),
        Property::always(TRUE_RECORD, |_, state| batches(state).all(is_recorded_truly)),
        Property::always(ONE_UNDER_WAY, |_, state: &State| {
            state.services.iter().all(one_under_way)
        }),
        Property::always(IN_ORDER, |_, state: &State| !state.seen.out_of_order),
        Property::always(ONCE, |_, state| batches(state).all(|batch| batch.ledger.applied <= 1)),
        Property::always(NOT_BLINDLY, |_, state: &State| !state.seen.sent_blindly),
        Property::always(NOT_TOO_EARLY, |_, state: &State| !state.seen.sent_too_early),
        Property::always(NO_DEAD_END, no_dead_end),
        Property::sometimes("all batches are committed", |_, state| {
            batches(state).all(|batch| batch.progress.state == BatchState::Committed)
        }),
    ]
}

fn batches(state: &State) -> impl Iterator<Item = &Batch> {
    state.services.iter().flat_map(|service| &service.batches)
}

/// No two that run believe to hold the same service in the same epoch.
fn one_owner(state: &State) -> bool {
    (0..state.services.len()).all(|service| {
        let mut believed: Vec<u64> = state
            .desks()
            .filter(|desk| desk.service == service)
            .map(|desk| state.work(desk).epoch)
            .filter(|&epoch| epoch > 0)
            .collect();
        let believers = believed.len();
        believed.sort_unstable();
        believed.dedup();
        believed.len() == believers
    })
}

fn is_recorded_truly(batch: &Batch) -> bool {
    match batch.progress.state {
        BatchState::New => batch.ledger.accepted == 0 && batch.ledger.applied == 0,
        BatchState::Committed => batch.ledger.applied > 0,
        BatchState::Invalid => batch.ledger.applied == 0,
        _ => true,
    }
}

fn one_under_way(service: &Service) -> bool {
    let head = service.head().unwrap_or(service.batches.len());
    service.batches.iter().skip(head + 1).all(|batch| batch.progress.state == BatchState::New)
}

/// A state without a step is one in which every batch has ended, but for what a person must decide.
fn no_dead_end(protocol: &Protocol, state: &State) -> bool {
    let is_settled = |service: &Service| match service.head() {
        None => true,
        Some(head) => protocol.may_wait_for_a_person(&service.batches[head]),
    };
    let mut actions = Vec::new();
    protocol.actions(state, &mut actions);
    !actions.is_empty() || state.services.iter().all(is_settled)
}
