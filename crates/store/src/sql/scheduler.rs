use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use diesel::prelude::*;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queue::{
    AfterInvalid, AnyStrategy, ByConflict, ListSize, Scheduling, SchedulingRules,
};
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_support::lock;

use super::{
    Connection, StoreError, event_sink::EventSink, hooks::BatchHooks, schema::database_state,
};

/// The scheduling rules of a store, its event sink and hooks, and whether it has left work to the job that frees
/// dependents.
#[derive(Debug)]
pub(crate) struct Scheduler {
    rules: Arc<SchedulingRules>,
    events: EventSink,
    hooks: Arc<dyn BatchHooks>,
    lists: ListSize,
    /// Whether the rules are those of the servers of the database.
    rules_are_known: bool,
    may_halt: bool,
    dependents_wait: AtomicBool,
    /// The batches that ended while they waited.
    ended: Mutex<Vec<(ItemId, BatchState)>>,
    /// The services with many dependents of which only a part was freed, and the last position of a batch that was free
    /// then. The next part is freed when these batches are in lanes.
    turns: Mutex<HashMap<ServiceId, i64>>,
}

/// Whose scheduling rules a store follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RulesOf {
    /// Those of its options.
    Options,
    /// Those that an instance has recorded in the database, if one has.
    Database,
}

/// The rules that the last registered instance recorded. `None`: no instance has recorded any.
pub(crate) fn recorded_rules(
    connection: &mut Connection,
) -> Result<Option<SchedulingRules>, StoreError> {
    let query = database_state::table.find(1).select(database_state::scheduling);
    let rows: Vec<Option<String>> = connection.load_query("recorded_rules", query)?;
    let recorded = rows.into_iter().flatten().next();
    recorded.map(|text| text.parse().map_err(StoreError::corrupt)).transpose()
}

impl Scheduler {
    pub(crate) fn new(
        rules: Arc<SchedulingRules>,
        events: EventSink,
        hooks: Arc<dyn BatchHooks>,
    ) -> Self {
        Self {
            may_halt: rules.may_halt(),
            rules,
            events,
            hooks,
            lists: ListSize::default(),
            rules_are_known: true,
            dependents_wait: AtomicBool::default(),
            ended: Mutex::default(),
            turns: Mutex::default(),
        }
    }

    /// Uses the rules that an instance has recorded. `None`: no instance has recorded any.
    pub(crate) fn set_recorded(&mut self, recorded: Option<SchedulingRules>) {
        self.rules_are_known = recorded.is_some();
        if let Some(rules) = recorded {
            self.may_halt = rules.may_halt();
            self.rules = Arc::new(rules);
        }
    }

    /// The rules, as an instance records them.
    pub(crate) fn rules(&self) -> &SchedulingRules {
        &self.rules
    }

    /// Whether the rules are those of the servers of the database.
    pub(crate) fn rules_are_known(&self) -> bool {
        self.rules_are_known
    }

    /// The sink of events.
    pub(crate) fn events(&self) -> &EventSink {
        &self.events
    }

    /// The hooks of other modules.
    pub(crate) fn hooks(&self) -> &dyn BatchHooks {
        &*self.hooks
    }

    /// How the batches of a service are scheduled.
    pub(crate) fn of(&self, service_id: &ServiceId) -> Scheduling {
        self.rules.of(service_id)
    }

    /// How many batches may be sent in one request.
    pub(crate) fn lists(&self) -> &ListSize {
        &self.lists
    }

    /// The rule by which the next batches of a service are chosen. An invalid batch cannot stop others of its list.
    pub(crate) fn strategy(&self, service_id: &ServiceId) -> AnyStrategy {
        let scheduling = self.of(service_id);
        match scheduling.rule() {
            AnyStrategy::ByConflict(rule) if scheduling.after_invalid == AfterInvalid::Continue => {
                AnyStrategy::ByConflict(ByConflict { list: self.lists.get(), ..rule })
            }
            rule => rule,
        }
    }

    /// Whether new batches are stored with positions and what they declare, so that batches of a service may have
    /// several lanes. Otherwise a service has one lane, and its batches wait in the order of `created_at`.
    pub(crate) fn keeps_positions(&self) -> bool {
        self.rules.uses_declared_access
    }

    /// Whether a batch may have to wait for an earlier invalid batch.
    pub(crate) fn may_stop(&self) -> bool {
        self.keeps_positions() || self.may_halt
    }

    /// Records that dependents of a batch are still to be evaluated.
    pub(crate) fn leave_dependents(&self) {
        self.dependents_wait.store(true, Ordering::Release);
    }

    /// Records that a part of the dependents of a service was freed. Batches up to this position were free then.
    pub(crate) fn begin_turn(&self, service_id: &ServiceId, until: i64) {
        lock(&self.turns).insert(service_id.clone(), until);
    }

    /// Records that the batches that were free after the last part of a service's dependents are in lanes.
    pub(crate) fn end_turn(&self, service_id: &ServiceId) {
        lock(&self.turns).remove(service_id);
    }

    /// The position up to which batches were free when a part of the dependents of a service was freed.
    pub(crate) fn turn_of(&self, service_id: &ServiceId) -> Option<i64> {
        lock(&self.turns).get(service_id).copied()
    }

    /// Leaves batches that ended while they waited to the job that frees dependents, which reports them.
    pub(crate) fn add_ended(&self, ended: impl IntoIterator<Item = (ItemId, BatchState)>) {
        lock(&self.ended).extend(ended);
        self.leave_dependents();
    }

    /// The batches that ended while they waited since the last call.
    pub(crate) fn take_ended(&self) -> Vec<(ItemId, BatchState)> {
        mem::take(&mut lock(&self.ended))
    }

    /// Whether dependents were left since the last call.
    pub(crate) fn take_left_dependents(&self) -> bool {
        self.dependents_wait.swap(false, Ordering::AcqRel)
    }
}
