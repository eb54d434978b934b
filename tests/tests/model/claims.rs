//! Instances and their claims: renewing, expiring, taking, releasing.

use crate::{
    action::{
        Action,
        ClaimStep::{self, BeginAnew, Crash, FirstExpiry, Release, Renew, SecondExpiry, Take},
        Desk,
    },
    protocol::{Expiry, Protocol},
    state::{Row, State, Work},
};

pub fn offer(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for instance in 0..state.instances.len() {
        let steps = possible(protocol, state, instance);
        actions.extend(steps.into_iter().map(|step| Action::Claims(step, instance)));
    }
}

fn possible(protocol: &Protocol, state: &State, instance: usize) -> Vec<ClaimStep> {
    let mut steps = match state.instances[instance].row {
        Row::Live if first_expiry_passes(protocol, state, instance) => vec![FirstExpiry],
        Row::Late if keeps_its_time(protocol, state, instance) => vec![SecondExpiry],
        _ => vec![],
    };
    if state.instances[instance].runs {
        steps.extend(own_steps(protocol, state, instance));
    }
    steps
}

fn own_steps(protocol: &Protocol, state: &State, instance: usize) -> Vec<ClaimStep> {
    let mut steps = match state.instances[instance].row {
        Row::Live => free_services(protocol, state).map(Take).collect(),
        Row::Late => vec![Renew],
        Row::Over => vec![Renew, BeginAnew],
        Row::Gone => vec![],
    };
    let may_end = state.troubles.instances > 0 && state.another_runs(instance);
    if may_end && is_at_work(state, instance) {
        steps.push(Crash);
        if !has_anything_in_hand(state, instance) {
            steps.push(Release);
        }
    }
    steps
}

/// That an instance expires which claims nothing changes nothing.
fn first_expiry_passes(protocol: &Protocol, state: &State, instance: usize) -> bool {
    let may_happen = state.troubles.instances > 0 || !state.instances[instance].runs;
    may_happen
        && claims_work(state, instance)
        && (protocol.rules.expiry != Expiry::OnePhase || keeps_its_time(protocol, state, instance))
}

/// A submission begins before the first expiry and is over before the last: its whole time limit
/// is shorter than what lies between. A process that is gone sends nothing, and one that pauses
/// keeps no time.
fn keeps_its_time(protocol: &Protocol, state: &State, instance: usize) -> bool {
    let instance = &state.instances[instance];
    protocol.world.pauses || !instance.runs || !instance.is_sending_in_time()
}

fn free_services(protocol: &Protocol, state: &State) -> impl Iterator<Item = usize> {
    (0..state.services.len()).filter(|&service| is_free(protocol, state, service))
}

/// Whether a service may be taken.
fn is_free(protocol: &Protocol, state: &State, service: usize) -> bool {
    let service = &state.services[service];
    if service.has_ended() {
        return false;
    }
    let Some(claimant) = service.claimant else { return true };
    match state.instances[claimant].row {
        Row::Live => false,
        Row::Late => protocol.rules.expiry == Expiry::Hasty || !service.is_submitting(),
        Row::Over | Row::Gone => true,
    }
}

fn claims_work(state: &State, instance: usize) -> bool {
    let mut services = state.services.iter();
    services.any(|service| service.claimant == Some(instance) && !service.has_ended())
}

/// The end of an instance with nothing to do changes nothing.
fn is_at_work(state: &State, instance: usize) -> bool {
    claims_work(state, instance) || has_anything_in_hand(state, instance)
}

fn has_anything_in_hand(state: &State, instance: usize) -> bool {
    state.instances[instance].desks.iter().any(|work| work.hand.is_some())
}

pub fn go(protocol: &Protocol, state: &mut State, step: ClaimStep, instance: usize) {
    match step {
        Renew => state.instances[instance].row = Row::Live,
        FirstExpiry => {
            if state.instances[instance].runs {
                state.troubles.instances -= 1;
            }
            let one_phase = protocol.rules.expiry == Expiry::OnePhase;
            state.instances[instance].row = if one_phase { Row::Over } else { Row::Late };
        }
        SecondExpiry => state.instances[instance].row = Row::Over,
        BeginAnew => {
            bury(state, instance, Row::Live);
            state.instances[instance].desks.iter_mut().for_each(|work| work.epoch = 0);
        }
        Take(service) => take(protocol, state, Desk { instance, service }),
        Release => {
            state.troubles.instances -= 1;
            end(state, instance);
            bury(state, instance, Row::Gone);
        }
        Crash => {
            state.troubles.instances -= 1;
            leave_on_its_way(state, instance);
            end(state, instance);
        }
    }
}

/// A claim lives as long as its claimant's row does.
fn bury(state: &mut State, instance: usize, row_after: Row) {
    state.instances[instance].row = row_after;
    for service in &mut state.services {
        service.claimant = service.claimant.filter(|&claimant| claimant != instance);
    }
}

fn take(protocol: &Protocol, state: &mut State, desk: Desk) {
    let service = &mut state.services[desk.service];
    service.claimant = Some(desk.instance);
    if protocol.rules.taking_raises_epoch || service.epoch == 0 {
        service.epoch += 1;
    }
    state.work_mut(desk).epoch = state.services[desk.service].epoch;
}

/// What a process was sending when it ended may have left it: the network has it, and may lose it.
fn leave_on_its_way(state: &mut State, instance: usize) {
    for (service, work) in state.services.iter_mut().zip(&state.instances[instance].desks) {
        if let Some(hand) = work.hand.filter(|_| work.is_sending()) {
            service.batches[hand.batch].strays += 1;
        }
    }
}

fn end(state: &mut State, instance: usize) {
    let instance = &mut state.instances[instance];
    instance.runs = false;
    instance.desks.fill(Work::default());
}
