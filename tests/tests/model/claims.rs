//! Instances and their claims: renewal, expiry, claiming and release.

use crate::{
    action::{
        Action,
        ClaimStep::{
            self, Claim, ClockJump, Crash, FullExpiry, IdleExpiry, Release, Renew, Reregister,
        },
        ClockJump::{Back, Forward},
        WorkerId,
    },
    protocol::{ClockRule, Protocol, TakeoverRule},
    state::{Lease, State, WorkerMemory},
};

pub fn add_actions(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for instance in 0..state.instances.len() {
        let steps = possible(protocol, state, instance);
        actions.extend(steps.into_iter().map(|step| Action::Claims(step, instance)));
    }
}

fn possible(protocol: &Protocol, state: &State, instance: usize) -> Vec<ClaimStep> {
    let mut steps = match state.instances[instance].lease {
        Lease::Valid if idle_expiry_may_pass(protocol, state, instance) => vec![IdleExpiry],
        Lease::IdleExpired if full_expiry_may_pass(protocol, state, instance) => vec![FullExpiry],
        _ => vec![],
    };
    if state.instances[instance].is_running {
        steps.extend(own_steps(protocol, state, instance));
    }
    steps
}

fn own_steps(protocol: &Protocol, state: &State, instance: usize) -> Vec<ClaimStep> {
    let mut steps = match state.instances[instance].lease {
        Lease::Valid => claimable_services(protocol, state, instance).map(Claim).collect(),
        Lease::IdleExpired => vec![Renew],
        Lease::FullyExpired => vec![Renew, Reregister],
        Lease::Removed => vec![],
    };
    if state.faults_left.clocks > 0 && state.instances[instance].clock_jump.is_none() {
        steps.extend([Forward, Back].map(ClockJump));
    }
    let may_end = state.faults_left.instances > 0 && state.another_is_running(instance);
    if may_end && has_work(state, instance) {
        steps.push(Crash);
        if !has_task(state, instance) {
            steps.push(Release);
        }
    }
    steps
}

/// The expiry of an instance without open batches changes nothing, and is left out.
fn idle_expiry_may_pass(protocol: &Protocol, state: &State, instance: usize) -> bool {
    let may_happen = state.faults_left.instances > 0 || !state.instances[instance].is_running;
    may_happen
        && owns_open_batches(state, instance)
        && (protocol.rules.takeover != TakeoverRule::OnePhase
            || full_expiry_may_pass(protocol, state, instance))
}

/// Without pauses, a submission ends before the full expiry: it starts before the idle expiry, and
/// its timeout is shorter than the time between the two. A process that has ended sends nothing.
fn full_expiry_may_pass(protocol: &Protocol, state: &State, instance: usize) -> bool {
    let instance = &state.instances[instance];
    let has_late_limit =
        protocol.rules.clock == ClockRule::TimeOfDay && instance.clock_jump == Some(Back);
    protocol.environment.instances_pause
        || !instance.is_running
        || !instance.has_timely_submission()
        || has_late_limit
}

fn claimable_services(
    protocol: &Protocol,
    state: &State,
    instance: usize,
) -> impl Iterator<Item = usize> {
    let is_refused = protocol.rules.claim_requires_identity && state.instances[instance].is_stray;
    (0..state.services.len())
        .filter(move |&service| !is_refused && is_claimable(protocol, state, service))
}

/// Whether a service may be claimed.
fn is_claimable(protocol: &Protocol, state: &State, service: usize) -> bool {
    let service = &state.services[service];
    if service.has_ended() {
        return false;
    }
    let Some(owner) = service.owner else { return true };
    match state.instances[owner].lease {
        Lease::Valid => false,
        Lease::IdleExpired => {
            protocol.rules.takeover == TakeoverRule::AfterIdleExpiry || !service.is_submitting()
        }
        Lease::FullyExpired | Lease::Removed => true,
    }
}

fn owns_open_batches(state: &State, instance: usize) -> bool {
    let mut services = state.services.iter();
    services.any(|service| service.owner == Some(instance) && !service.has_ended())
}

/// The end of an instance without work changes nothing, and is left out.
fn has_work(state: &State, instance: usize) -> bool {
    owns_open_batches(state, instance) || has_task(state, instance)
}

fn has_task(state: &State, instance: usize) -> bool {
    state.instances[instance].workers.iter().any(|memory| !memory.tasks.is_empty())
}

pub fn apply_step(protocol: &Protocol, state: &mut State, step: ClaimStep, instance: usize) {
    match step {
        Renew => state.instances[instance].lease = Lease::Valid,
        IdleExpiry => {
            if state.instances[instance].is_running {
                state.faults_left.instances -= 1;
            }
            let one_phase = protocol.rules.takeover == TakeoverRule::OnePhase;
            state.instances[instance].lease =
                if one_phase { Lease::FullyExpired } else { Lease::IdleExpired };
        }
        FullExpiry => state.instances[instance].lease = Lease::FullyExpired,
        Reregister => {
            remove_lease(state, instance, Lease::Valid);
            state.instances[instance].workers.iter_mut().for_each(|memory| memory.epoch = 0);
        }
        ClockJump(jump) => {
            state.faults_left.clocks -= 1;
            state.instances[instance].clock_jump = Some(jump);
        }
        Claim(service) => claim(protocol, state, WorkerId { instance, service }),
        Release => {
            state.faults_left.instances -= 1;
            stop_instance(state, instance);
            remove_lease(state, instance, Lease::Removed);
        }
        Crash => {
            state.faults_left.instances -= 1;
            delay_posts_in_progress(state, instance);
            stop_instance(state, instance);
        }
    }
}

/// Removes the lease of an instance, and its claims with it.
fn remove_lease(state: &mut State, instance: usize, lease_after: Lease) {
    state.instances[instance].lease = lease_after;
    for service in &mut state.services {
        service.owner = service.owner.filter(|&owner| owner != instance);
    }
}

fn claim(protocol: &Protocol, state: &mut State, worker: WorkerId) {
    let service = &mut state.services[worker.service];
    service.owner = Some(worker.instance);
    if protocol.rules.claim_raises_epoch || service.epoch == 0 {
        service.epoch += 1;
    }
    state.memory_mut(worker).epoch = state.services[worker.service].epoch;
}

/// The POSTs that a process was sending when it ended may still arrive.
fn delay_posts_in_progress(state: &mut State, instance: usize) {
    for (service, memory) in state.services.iter_mut().zip(&state.instances[instance].workers) {
        let sending = memory.tasks.iter().filter(|task| task.is_first_of_post());
        sending.for_each(|task| service.delay_post(task.list));
    }
}

fn stop_instance(state: &mut State, instance: usize) {
    let instance = &mut state.instances[instance];
    instance.is_running = false;
    instance.workers.fill(WorkerMemory::default());
}
