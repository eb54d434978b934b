//! The properties of all states.

use grid_batch_core::batches::BatchState;
use grid_batch_core::queue::StrategyKind;
use stateright::{Model, Property};

use crate::{
    protocol::Protocol,
    state::{Batch, Relations, Service, State},
};

pub const ONE_OWNER: &str = "an epoch of a service has one owner";
pub const TRUE_RECORD: &str = "the recorded end of a batch is its end at the ledger";
pub const NO_CONFLICT_UNDER_WAY: &str = "a batch is under way only after those that it depends on, and after or with those that it conflicts with";
pub const IN_ORDER: &str = "batches of a service that conflict are applied in order";
pub const AFTER_DEPENDENCIES: &str = "no batch is applied before one that it depends on";
pub const TOGETHER: &str = "two batches of a service are under way together";
pub const APPLIED_ONCE: &str = "no batch is applied twice";
pub const NOT_SENT_BLINDLY: &str = "no batch is sent again without certainty or evidence";
pub const NOT_SENT_TOO_EARLY: &str = "no batch is sent again while it may still be applied";
pub const RIGHT_LEDGER: &str = "no batch is sent to another ledger";
pub const NOT_INVALID_BY_LAG: &str = "no batch ends as invalid because a node lags";
pub const NO_DEADLOCK: &str = "without further steps, every batch has ended or may be held";

pub fn all(protocol: &Protocol) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::always(ONE_OWNER, |_, state| one_owner(state)),
        Property::always(TRUE_RECORD, |_, state| batches(state).all(is_recorded_truly)),
        Property::always(NO_CONFLICT_UNDER_WAY, |protocol: &Protocol, state: &State| {
            protocol.strategy == StrategyKind::Pipeline
                || state.services.iter().all(|it| no_conflict_under_way(protocol, it))
        }),
        Property::always(IN_ORDER, |_, state: &State| !state.violations.out_of_order),
        Property::always(AFTER_DEPENDENCIES, |_, state: &State| {
            !state.violations.before_dependency
        }),
        Property::always(APPLIED_ONCE, |_, state| {
            batches(state).all(|batch| batch.ledger.applied <= 1)
        }),
        Property::always(NOT_SENT_BLINDLY, |_, state: &State| !state.violations.sent_blindly),
        Property::always(NOT_SENT_TOO_EARLY, |_, state: &State| !state.violations.sent_too_early),
        Property::always(RIGHT_LEDGER, |_, state| {
            batches(state).all(|batch| batch.ledger.elsewhere == 0)
        }),
        Property::always(NOT_INVALID_BY_LAG, |_, state| {
            batches(state).all(|batch| {
                batch.progress.state != BatchState::Invalid || !batch.ledger.is_refused_by_follower
            })
        }),
        Property::always(NO_DEADLOCK, no_deadlock),
        Property::sometimes("all batches are committed", |_, state| {
            batches(state).all(|batch| batch.progress.state == BatchState::Committed)
        }),
    ];
    if protocol.lanes > 1 {
        properties.push(Property::sometimes(TOGETHER, |_, state: &State| {
            state.services.iter().any(|service| under_way(service).count() > 1)
        }));
    }
    properties
}

/// The numbers of the batches that were taken and have not ended.
fn under_way(service: &Service) -> impl Iterator<Item = usize> {
    (0..service.batches.len()).filter(|&number| {
        let batch = &service.batches[number];
        batch.was_tried() && !batch.has_ended()
    })
}

fn batches(state: &State) -> impl Iterator<Item = &Batch> {
    state.services.iter().flat_map(|service| &service.batches)
}

/// No two running instances have a claim on the same service with the same epoch.
fn one_owner(state: &State) -> bool {
    (0..state.services.len()).all(|service| {
        let mut claimed_epochs: Vec<u64> = state
            .running_workers()
            .filter(|worker| worker.service == service)
            .map(|worker| state.memory(worker).epoch)
            .filter(|&epoch| epoch > 0)
            .collect();
        let claim_count = claimed_epochs.len();
        claimed_epochs.sort_unstable();
        claimed_epochs.dedup();
        claimed_epochs.len() == claim_count
    })
}

fn is_recorded_truly(batch: &Batch) -> bool {
    match batch.progress.state {
        BatchState::New if batch.is_restored => true,
        BatchState::New => batch.ledger.accepted == 0 && batch.ledger.applied == 0,
        BatchState::Committed => batch.ledger.applied > 0,
        BatchState::Invalid => batch.ledger.applied == 0,
        _ => true,
    }
}

/// Those that were tried have no earlier open batch that they must wait for. Of a list, all were tried.
fn no_conflict_under_way(protocol: &Protocol, service: &Service) -> bool {
    service.batches.iter().filter(|batch| batch.was_tried()).all(|batch| {
        let Relations { conflicts, dependencies, .. } = batch.relations;
        let has_lists = protocol.list > 1;
        let mut earlier = service.batches.iter().enumerate();
        earlier.all(|(other, earlier)| {
            let is_listed = has_lists && earlier.was_tried() && !dependencies.contains(other);
            let must_wait_for = conflicts.union(dependencies).contains(other);
            !must_wait_for || earlier.has_ended() || is_listed
        })
    })
}

/// In a state without further steps, every batch has ended or may be held.
fn no_deadlock(protocol: &Protocol, state: &State) -> bool {
    let has_ended_or_may_be_held = |service: &Service| {
        let mut in_lanes = service.in_lanes().into_iter();
        in_lanes.all(|batch| protocol.may_be_held(service, batch))
    };
    let mut actions = Vec::new();
    protocol.actions(state, &mut actions);
    !actions.is_empty() || state.services.iter().all(has_ended_or_may_be_held)
}
