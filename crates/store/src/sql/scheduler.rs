use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use grid_batch_core::{AfterInvalid, AnyStrategy, Scheduling, SchedulingRules, ServiceId};
use grid_batch_support::lock;

use super::{event_sink::EventSink, hooks::BatchHooks};

/// The rules of a store, where its events go, what else happens with a batch, and whether it has left something
/// to the job that frees dependents.
#[derive(Debug)]
pub(crate) struct Scheduler {
    rules: Arc<SchedulingRules>,
    events: EventSink,
    hooks: Arc<dyn BatchHooks>,
    leaves_policies: bool,
    may_halt: bool,
    dependents_wait: AtomicBool,
    ended_unsent: AtomicU64,
    /// The services with many dependents that were freed only in part, and the last position of a batch that
    /// was free then. The next part follows when these are in lanes.
    turns: Mutex<HashMap<ServiceId, i64>>,
}

impl Scheduler {
    pub(crate) fn new(
        rules: Arc<SchedulingRules>,
        leaves_policies: bool,
        events: EventSink,
        hooks: Arc<dyn BatchHooks>,
    ) -> Self {
        Self {
            may_halt: rules.may_halt(),
            rules,
            events,
            hooks,
            leaves_policies,
            dependents_wait: AtomicBool::default(),
            ended_unsent: AtomicU64::default(),
            turns: Mutex::default(),
        }
    }

    /// Where the events of changes go.
    pub(crate) fn events(&self) -> &EventSink {
        &self.events
    }

    /// What other parts do with batches.
    pub(crate) fn hooks(&self) -> &dyn BatchHooks {
        &*self.hooks
    }

    /// How the batches of a service are scheduled.
    pub(crate) fn of(&self, service_id: &ServiceId) -> Scheduling {
        self.rules.of(service_id)
    }

    /// The rule by which the next batches of a service are chosen.
    pub(crate) fn strategy(&self, service_id: &ServiceId) -> AnyStrategy {
        self.of(service_id).rule()
    }

    /// Whether new batches are stored with positions and what they declare, so that batches of a service may have
    /// several lanes. Otherwise a service has one lane, its batches wait in the order of `created_at`, and what
    /// follows from a change of a batch that has a position is left to a server that keeps positions.
    pub(crate) fn keeps_positions(&self) -> bool {
        self.rules.uses_declared_access && !self.leaves_policies
    }

    /// Whether what follows from a change is left to a server: a command may not have its rules.
    pub(crate) fn leaves_policies(&self) -> bool {
        self.leaves_policies
    }

    /// Whether a batch may have to wait for an invalid one that is before it.
    pub(crate) fn may_stop(&self) -> bool {
        self.keeps_positions() || self.may_halt
    }

    /// The policy after an invalid batch of a service; `None`: a server knows it.
    pub(crate) fn policy(&self, service_id: &ServiceId) -> Option<AfterInvalid> {
        (!self.leaves_policies).then(|| self.of(service_id).after_invalid)
    }

    /// Dependents of a batch are still to be evaluated.
    pub(crate) fn leave_dependents(&self) {
        self.dependents_wait.store(true, Ordering::Release);
    }

    /// A part of the dependents of a service was freed. Batches were free then up to this position.
    pub(crate) fn begin_turn(&self, service_id: &ServiceId, until: i64) {
        lock(&self.turns).insert(service_id.clone(), until);
    }

    /// The batches that were free with the last part of the dependents of a service are in lanes.
    pub(crate) fn end_turn(&self, service_id: &ServiceId) {
        lock(&self.turns).remove(service_id);
    }

    /// Up to which position batches were free when a part of the dependents of a service was freed.
    pub(crate) fn turn_of(&self, service_id: &ServiceId) -> Option<i64> {
        lock(&self.turns).get(service_id).copied()
    }

    /// This many batches ended without being sent, because of another one.
    pub(crate) fn count_ended(&self, batches: usize) {
        self.ended_unsent.fetch_add(u64::try_from(batches).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// How many batches ended without being sent since this was asked last.
    pub(crate) fn take_ended(&self) -> u64 {
        self.ended_unsent.swap(0, Ordering::AcqRel)
    }

    /// Whether dependents were left since this was asked last.
    pub(crate) fn take_left_dependents(&self) -> bool {
        self.dependents_wait.swap(false, Ordering::AcqRel)
    }
}
