//! The ledger: how it handles batches, and which statuses it reports.

use std::mem;

use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::ledger::SecondArrival;

use crate::{
    action::{
        Action, BatchAt,
        LedgerStep::{
            self, Apply, DelayedPostArrives, DelayedPostIsLost, Expire, FindInvalid,
            FollowerCatchesUp, Restart,
        },
        PostAt,
    },
    protocol::Protocol,
    state::{Batch, BatchSet, EarlierInvalid, Relations, State},
};

pub fn add_actions(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    let mut add = |step| actions.push(Action::Ledger(step));
    for (service, of) in state.services.iter().enumerate() {
        if of.follower_lags {
            add(FollowerCatchesUp(service));
        }
        for (nth, &batches) in of.delayed_posts.iter().enumerate() {
            if nth == 0 || of.delayed_posts[nth - 1] != batches {
                add(DelayedPostArrives(PostAt { service, batches }));
                add(DelayedPostIsLost(PostAt { service, batches }));
            }
        }
        for (number, batch) in of.batches.iter().enumerate() {
            let at = BatchAt { service, batch: number };
            if protocol.declared.batches_expire && may_expire(state, batch) {
                add(Expire(at));
            }
            if batch.ledger.accepted > 0 && of.queue.first().is_none_or(|first| *first == number) {
                add(Apply(at));
                if state.faults_left.ledger > 0 {
                    add(FindInvalid(at));
                }
            }
        }
    }
    if state.faults_left.ledger > 0 && forgets_anything(protocol, state) {
        add(Restart);
    }
}

/// A batch that was not tried, or that has ended, is left out.
fn may_expire(state: &State, batch: &Batch) -> bool {
    let is_tried = batch.was_tried() && !batch.has_ended();
    state.faults_left.ledger > 0 && is_tried && !batch.ledger.is_past_its_time
}

/// A restart that forgets nothing is left out.
fn forgets_anything(protocol: &Protocol, state: &State) -> bool {
    let mut batches = state.services.iter().flat_map(|service| &service.batches);
    batches.any(|batch| {
        let mut after = batch.clone();
        forget(protocol, &mut after);
        after != *batch
    })
}

pub fn apply_step(protocol: &Protocol, state: &mut State, step: LedgerStep) {
    match step {
        DelayedPostArrives(PostAt { service, batches }) => {
            state.services[service].end_delay(batches);
            for batch in batches.iter() {
                let at = BatchAt { service, batch };
                accept(protocol, state, at, EarlierInvalid::BeforeLateArrival);
            }
        }
        DelayedPostIsLost(PostAt { service, batches }) => {
            state.services[service].end_delay(batches);
        }
        Apply(at) => apply(protocol, state, at),
        FindInvalid(at) => {
            state.faults_left.ledger -= 1;
            let ledger = &mut state.batch_mut(at).ledger;
            ledger.accepted -= 1;
            ledger.is_invalid = true;
            ledger.is_refused_by_follower = false;
            ledger.earlier_invalid = EarlierInvalid::None;
            state.services[at.service].queue.retain(|number| *number != at.batch);
        }
        Expire(at) => {
            state.faults_left.ledger -= 1;
            expire(protocol, state, at);
        }
        Restart => {
            state.faults_left.ledger -= 1;
            for service in &mut state.services {
                if !protocol.environment.keeps_accepted {
                    service.queue.clear();
                }
                service.batches.iter_mut().for_each(|batch| forget(protocol, batch));
            }
        }
        FollowerCatchesUp(service) => state.services[service].follower_lags = false,
    }
}

/// The ledger receives a POST. `reported` is what a report of an earlier attempt as invalid counts as from then on.
pub fn accept(protocol: &Protocol, state: &mut State, at: BatchAt, reported: EarlierInvalid) {
    let facts = protocol.environment.ledger;
    let ledger = &mut state.batch_mut(at).ledger;
    if ledger.is_past_its_time && facts.batches_expire {
        return;
    }
    ledger.known = true;
    let is_ignored = match facts.second_arrival {
        SecondArrival::AppliedAgain => false,
        SecondArrival::AppliedOnce => ledger.accepted > 0 || ledger.applied > 0,
        SecondArrival::Refused => {
            ledger.is_refused = ledger.applied > 0;
            ledger.accepted > 0 || ledger.applied > 0
        }
    };
    let is_invalid_again = protocol.environment.invalid_is_final && ledger.is_invalid;
    if is_ignored || is_invalid_again {
        return;
    }
    if ledger.is_invalid && facts.reports_earlier_invalid {
        ledger.earlier_invalid = reported;
    }
    ledger.accepted += 1;
    ledger.is_invalid = false;
    ledger.is_refused_by_follower = false;
    if protocol.applies_in_order_of_arrival() {
        state.services[at.service].queue.push(at.batch);
    }
}

/// The time or height passes after which the batch is declared to be never applied.
fn expire(protocol: &Protocol, state: &mut State, at: BatchAt) {
    let batch = state.batch_mut(at);
    batch.ledger.is_past_its_time = true;
    if protocol.environment.ledger.batches_expire {
        batch.ledger.accepted = 0;
        batch.ledger.known &= batch.ledger.applied > 0 || batch.ledger.is_invalid;
        let service = &mut state.services[at.service];
        service.queue.retain(|number| *number != at.batch);
        let mut posts = mem::take(&mut service.delayed_posts);
        posts.iter_mut().for_each(|batches| *batches = batches.without(at.batch));
        posts.retain(|batches| *batches != BatchSet::default());
        posts.into_iter().for_each(|batches| service.delay_post(batches));
    }
}

/// The follower receives a POST. If it lags, it finds the batch invalid.
pub fn accept_at_follower(protocol: &Protocol, state: &mut State, at: BatchAt) {
    if state.services[at.service].follower_lags {
        let ledger = &mut state.batch_mut(at).ledger;
        (ledger.known, ledger.is_invalid, ledger.is_refused_by_follower) = (true, true, true);
    } else {
        accept(protocol, state, at, EarlierInvalid::BeforeAttempt);
    }
}

fn apply(protocol: &Protocol, state: &mut State, at: BatchAt) {
    let batches = &state.services[at.service].batches;
    // The database may have lost that the ledger found a batch invalid.
    let is_invalid =
        |batch: &Batch| batch.ledger.is_invalid || batch.progress.state == BatchState::Invalid;
    let expires = protocol.environment.ledger.batches_expire;
    let has_expired = |batch: &Batch| expires && batch.ledger.is_past_its_time;
    let is_missing =
        |batch: &Batch| batch.ledger.applied == 0 && !is_invalid(batch) && !has_expired(batch);
    let Relations { conflicts, dependencies, .. } = batches[at.batch].relations;
    let mut earlier = (0..at.batch).filter(|&other| conflicts.contains(other));
    let not_before = earlier.any(|other| is_missing(&batches[other]));
    let mut later = batches.iter().filter(|other| other.relations.conflicts.contains(at.batch));
    let not_after = later.any(|other| other.ledger.applied > 0);
    let mut needed = (0..at.batch).filter(|&other| dependencies.contains(other));
    let before_dependency = needed.any(|other| batches[other].ledger.applied == 0);
    state.violations.out_of_order |= not_before || not_after;
    state.violations.before_dependency |= before_dependency;
    let ledger = &mut state.batch_mut(at).ledger;
    ledger.accepted -= 1;
    ledger.applied += 1;
    ledger.earlier_invalid = EarlierInvalid::None;
    state.services[at.service].queue.retain(|number| *number != at.batch);
    state.services[at.service].follower_lags = protocol.environment.has_follower;
}

fn forget(protocol: &Protocol, batch: &mut Batch) {
    let (behaves, declared) = (protocol.environment.ledger, protocol.declared);
    let ledger = &mut batch.ledger;
    if !protocol.environment.keeps_accepted {
        ledger.accepted = 0;
    }
    ledger.is_invalid &= protocol.environment.invalid_is_final;
    ledger.is_refused_by_follower &= ledger.is_invalid;
    ledger.is_refused = false;
    ledger.earlier_invalid = EarlierInvalid::None;
    ledger.known &= ledger.accepted > 0 || behaves.statuses_survive_restart && ledger.applied > 0;
    // One who observes does not care about a restart that is declared to be harmless.
    let is_noticed = !declared.statuses_survive_restart && behaves.has_events;
    ledger.observed &= !is_noticed;
}

/// The status that the ledger reports.
pub fn status(protocol: &Protocol, batch: &Batch) -> LedgerStatus {
    let ledger = batch.ledger;
    let was_invalid = ledger.earlier_invalid != EarlierInvalid::None;
    match ledger {
        _ if !ledger.known => LedgerStatus::NotReported,
        _ if ledger.is_refused => LedgerStatus::Invalid,
        _ if ledger.applied > 0 => LedgerStatus::Committed,
        _ if ledger.is_invalid || was_invalid => LedgerStatus::Invalid,
        _ if !protocol.environment.ledger.proves_absence => LedgerStatus::NotReported,
        _ => LedgerStatus::Pending,
    }
}
