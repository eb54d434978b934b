//! The configuration of a check: the sizes, the environment, and the rules of the protocol.

use std::time::Duration;

use grid_batch_core::ledger::LedgerFacts;
use grid_batch_core::queue::StrategyKind;
use stateright::{Model, Property};

use crate::{
    action::Action,
    claims, database, ledger, properties, results,
    state::{Batch, BatchSet, FaultBudget, Relations, Service, State},
    submissions,
};

/// One configuration of the protocol.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// The number of instances. A crashed one does not return: a restarted instance has a new name.
    pub instances: usize,
    /// The number of instances that are configured with another ledger.
    pub strays: usize,
    /// The number of batches of each service.
    pub services: Vec<usize>,
    /// How many batches of a service may be under way.
    pub lanes: usize,
    /// How many batches may be sent in one request.
    pub list: usize,
    /// The pairs of batches of each service that conflict; `None`: all.
    pub conflicts: Option<&'static [Pair]>,
    /// The pairs of which the later batch depends on the earlier one.
    pub dependencies: &'static [Pair],
    pub strategy: StrategyKind,
    pub faults: FaultBudget,
    /// What the adapter declares of its ledger. The rules follow from it.
    pub declared: LedgerFacts,
    pub environment: Environment,
    pub rules: Rules,
}

/// The setting for a ledger to which another attempt is harmless.
pub const ACCEPT_ABSENCE_AFTER: Duration = Duration::from_secs(30);

/// An earlier and a later batch of a service.
pub type Pair = (usize, usize);

/// The conditions that the protocol cannot choose.
#[derive(Debug, Clone, Copy)]
pub struct Environment {
    /// How the ledger behaves.
    pub ledger: LedgerFacts,
    /// A restart of the ledger does not lose what it has accepted and not executed.
    pub keeps_accepted: bool,
    /// Instances may pause at any point for any time, so none of their time limits holds.
    pub instances_pause: bool,
    /// The ledger finds a batch that was invalid once invalid whenever it receives it again.
    pub invalid_is_final: bool,
    /// The ledger has a node that applies batches later than the others, and that finds a batch
    /// invalid if it has not applied the one before.
    pub has_follower: bool,
    /// One node publishes all blocks, so batches that arrive in one request are applied in their order.
    pub has_one_publisher: bool,
}

/// The rules of the protocol. Each can be changed to show why it is needed.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub takeover: TakeoverRule,
    /// Each claim of a service raises its epoch.
    pub claim_raises_epoch: bool,
    pub mark: MarkRule,
    pub fence: Fence,
    pub recovery: RecoveryRule,
    pub absence: AbsenceRule,
    /// How long absence must last to count.
    pub absence_counts_after: Duration,
    /// The same for a batch of a list that waits for another one of it.
    pub listed_absence_counts_after: Duration,
    /// The ledger is asked about a batch before each POST.
    pub asks_before_sending: bool,
    /// A batch that is past its time and was not applied ends.
    pub expired_batches_end: bool,
    pub wait: WaitRule,
    pub clock: ClockRule,
    pub node: NodeRule,
    /// How long a batch that is invalid stays open, because an earlier attempt may still arrive.
    pub invalid_is_final_after: Duration,
    /// A batch that one node finds invalid ends only when no other node says otherwise.
    pub invalid_asks_other_nodes: bool,
    /// An instance claims a service only if its ledger is the one that is recorded.
    pub claim_requires_identity: bool,
    pub restore: RestoreRule,
    /// A database that went back has no claims, and its epochs are later than those that were lost.
    pub restore_raises_epochs: bool,
    /// A batch waits for the end of the earlier ones that it conflicts with.
    pub waits_for_conflicts: bool,
    /// A batch waits for the end of those that it depends on.
    pub waits_for_dependencies: bool,
    /// A batch that depends on an invalid one ends without being sent.
    pub dependents_of_invalid_end: bool,
    pub resend: ResendRule,
    /// An open batch is held until a decision when a later batch that conflicts with it is committed.
    pub overtaken_are_held: bool,
}

/// When a service may be taken over from an instance that does not renew its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverRule {
    /// After the idle expiry if no batch is with a submitter, after the full expiry in any case.
    TwoPhases,
    /// After the only expiry, which is longer than every submission.
    OnePhase,
    /// After the idle expiry in any case.
    AfterIdleExpiry,
}

/// Who may mark a batch as submitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkRule {
    /// The owner, before the idle expiry.
    OwnerBeforeIdleExpiry,
    /// The owner, before the full expiry.
    OwnerBeforeFullExpiry,
    /// Any instance that has been the owner.
    FormerOwner,
}

/// What must be unchanged for a result to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The attempt and the epoch.
    AttemptId,
    /// The attempt.
    Attempt,
    /// Nothing: the result is applied to the batch in any state.
    None,
}

/// What a new owner does with a batch that an earlier owner was submitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryRule {
    /// The batch is in doubt, and needs evidence.
    MarkInDoubt,
    /// The batch is sent again.
    SendAgain,
}

/// What is evidence that the ledger does not have a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsenceRule {
    /// Nothing.
    Never,
    /// The ledger reports that it does not know the batch.
    Reported,
    /// The same, and all events since before the submission were observed.
    Observed,
    /// The same, and the observer is the owner that sent the batch.
    ObservedBySender,
}

/// The start of the time in which a timed-out POST may still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitRule {
    /// The mark of the batch. For an instance that pauses before it sends, this wait is worthless.
    FromMark,
    /// The end of the submission; for a new owner, its claim.
    FromEnd,
}

/// The clock by which an instance measures its waits and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockRule {
    /// A clock that only moves forward, at its own pace.
    Monotonic,
    /// The time of day, which can jump.
    TimeOfDay,
}

/// Which batches of a lost list are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResendRule {
    /// The first that has not ended, when no later one may be at the ledger.
    InOrder,
    /// The same, while a later one may be at the ledger.
    FirstAtOnce,
    /// Each that is lost.
    Each,
}

/// The node that a batch is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRule {
    /// A node that has applied the batch before.
    HasAppliedTheLast,
    /// The nodes in turn.
    InTurn,
}

/// Which open batches are in doubt after the database went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreRule {
    /// All; those that wait behind the head become in doubt when they are the head.
    AllBatches,
    /// The heads.
    Heads,
    /// None.
    Nothing,
}

impl From<grid_batch_core::ledger::AbsenceRule> for AbsenceRule {
    fn from(rule: grid_batch_core::ledger::AbsenceRule) -> Self {
        match rule {
            grid_batch_core::ledger::AbsenceRule::Never => Self::Never,
            grid_batch_core::ledger::AbsenceRule::Reported => Self::Reported,
            grid_batch_core::ledger::AbsenceRule::ObservedBySender => Self::ObservedBySender,
        }
    }
}

impl Protocol {
    /// The intended protocol for a ledger of which this is declared and which behaves so, with instances that do not
    /// pause. The strategy is serial.
    pub fn new(declared: LedgerFacts) -> Self {
        Self {
            instances: 2,
            strays: 0,
            services: vec![2],
            lanes: 1,
            list: 1,
            conflicts: None,
            dependencies: &[],
            faults: FaultBudget { instances: 2, ledger: 1, clocks: 0, databases: 0 },
            strategy: StrategyKind::Serial,
            declared,
            environment: Environment {
                ledger: declared,
                keeps_accepted: false,
                instances_pause: false,
                invalid_is_final: false,
                has_follower: false,
                has_one_publisher: true,
            },
            rules: Rules {
                takeover: TakeoverRule::TwoPhases,
                claim_raises_epoch: true,
                mark: MarkRule::OwnerBeforeIdleExpiry,
                fence: Fence::AttemptId,
                recovery: RecoveryRule::MarkInDoubt,
                absence: declared.absence_rule().into(),
                absence_counts_after: declared.absence_counts_after(ACCEPT_ABSENCE_AFTER),
                listed_absence_counts_after: declared
                    .listed_absence_counts_after(ACCEPT_ABSENCE_AFTER),
                asks_before_sending: declared.asks_before_sending(),
                expired_batches_end: declared.batches_expire,
                wait: WaitRule::FromEnd,
                clock: ClockRule::Monotonic,
                node: if declared.nodes_may_lag() {
                    NodeRule::HasAppliedTheLast
                } else {
                    NodeRule::InTurn
                },
                invalid_is_final_after: declared.invalid_is_final_after(),
                invalid_asks_other_nodes: declared.nodes_may_lag(),
                claim_requires_identity: true,
                restore: RestoreRule::AllBatches,
                restore_raises_epochs: true,
                waits_for_conflicts: true,
                waits_for_dependencies: true,
                dependents_of_invalid_end: true,
                resend: ResendRule::InOrder,
                overtaken_are_held: true,
            },
        }
    }

    /// The same with instances that pause.
    pub fn with_pauses(mut self) -> Self {
        self.environment.instances_pause = true;
        self
    }

    /// The same with batches that stay invalid.
    pub fn with_final_invalidity(mut self) -> Self {
        self.environment.invalid_is_final = true;
        self
    }

    /// The same with a ledger that behaves otherwise than declared.
    pub fn with_behavior(mut self, behavior: LedgerFacts) -> Self {
        self.environment.ledger = behavior;
        self
    }

    /// The same with a node that applies batches later than the others.
    pub fn with_follower(mut self) -> Self {
        self.environment.has_follower = true;
        self
    }

    /// The same with an instance that is configured with another ledger.
    pub fn with_stray(self) -> Self {
        Self { strays: 1, ..self }
    }

    /// The same with jumps of clocks.
    pub fn with_clock_jumps(mut self, clocks: u8) -> Self {
        self.faults.clocks = clocks;
        self
    }

    /// The same with a database that goes back once.
    pub fn with_database_that_goes_back(mut self) -> Self {
        self.faults.databases = 1;
        self
    }

    /// The same with these numbers of instances and batches.
    pub fn with_size(self, instances: usize, services: &[usize]) -> Self {
        Self { instances, services: services.to_vec(), ..self }
    }

    /// The same with services of which two batches may be under way. Only these pairs conflict.
    pub fn with_two_lanes(self, conflicts: &'static [Pair]) -> Self {
        Self { lanes: 2, conflicts: Some(conflicts), strategy: StrategyKind::Parallel, ..self }
    }

    /// The same with a pipeline: a batch is sent when the ledger has accepted the one before. The ledger loses none
    /// that it has accepted and forgets none that is invalid, which are the limits of a pipeline.
    pub fn with_pipeline(mut self) -> Self {
        self.environment.keeps_accepted = true;
        self.environment.invalid_is_final = true;
        self.rules.waits_for_conflicts = false;
        Self { lanes: 2, strategy: StrategyKind::Pipeline, ..self }
    }

    /// The same with lists of two batches. All batches conflict.
    pub fn with_lists(self) -> Self {
        Self { lanes: 2, list: 2, strategy: StrategyKind::Parallel, ..self }
    }

    /// The same with a second node that publishes blocks.
    pub fn with_two_publishers(mut self) -> Self {
        self.environment.has_one_publisher = false;
        self
    }

    /// The same with these pairs of which the later batch depends on the earlier one.
    pub fn with_dependencies(self, dependencies: &'static [Pair]) -> Self {
        Self { dependencies, ..self }
    }

    /// The same with these numbers of faults.
    pub fn with_faults(self, instances: u8, ledger: u8) -> Self {
        Self { faults: FaultBudget { instances, ledger, ..self.faults }, ..self }
    }

    /// The same with changed rules.
    pub fn with_rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    /// How a batch of a service is related to the earlier ones.
    fn relations(&self, batch: usize) -> Relations {
        let earlier = |pairs: &[Pair]| -> BatchSet {
            (0..batch).filter(|&earlier| pairs.contains(&(earlier, batch))).collect()
        };
        let declared = self.conflicts.map_or_else(|| (0..batch).collect(), earlier);
        let conflicts = if self.environment.ledger.enforces_declared_access {
            declared
        } else {
            // A batch may use what it does not declare.
            (0..batch).collect()
        };
        let dependencies = earlier(self.dependencies);
        let used = |set: BatchSet, is_used: bool| if is_used { set } else { BatchSet::default() };
        let waits_for = used(declared, self.rules.waits_for_conflicts)
            .union(used(dependencies, self.rules.waits_for_dependencies));
        Relations { conflicts, dependencies, waits_for }
    }

    /// A service with this number of batches.
    fn service(&self, batches: usize) -> Service {
        let batches = (0..batches).map(|number| Batch::new(self.relations(number))).collect();
        Service {
            owner: None,
            epoch: 0,
            batches,
            strategy: self.strategy,
            lanes: self.lanes,
            list: self.list,
            follower_lags: false,
            queue: Vec::new(),
            delayed_posts: Vec::new(),
        }
    }

    /// Whether the ledger applies batches in the order in which it has accepted them, and the strategy needs that.
    pub fn applies_in_order_of_arrival(&self) -> bool {
        let Environment { ledger, has_one_publisher, .. } = self.environment;
        match self.strategy {
            StrategyKind::Serial => false,
            StrategyKind::Parallel => has_one_publisher && self.list > 1,
            StrategyKind::Pipeline => ledger.keeps_order,
        }
    }

    /// Whether the batch may end up held, because nothing can be proved about it, or waits for one that is in a
    /// pipeline or list.
    pub fn may_be_held(&self, service: &Service, batch: usize) -> bool {
        let is_unproved = |batch: &Batch| {
            self.rules.absence != AbsenceRule::Reported && batch.progress.state.awaits_poller()
                || batch.is_held && (batch.ledger.applied == 0 || self.environment.instances_pause)
        };
        let awaited = match self.strategy {
            StrategyKind::Pipeline => &service.batches[..batch],
            // A lost batch also waits for those behind it in its list.
            _ if self.list > 1 => &service.batches,
            _ => &[],
        };
        let may_wait = service.batches[batch].progress.state.awaits_queuer();
        is_unproved(&service.batches[batch]) || may_wait && awaited.iter().any(is_unproved)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let services = self.services.iter().map(|&batches| self.service(batches)).collect();
        vec![State::initial(self.instances, self.strays, services, self.faults)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(only) = results::stale_result(self, state) {
            actions.push(only);
            return;
        }
        claims::add_actions(self, state, actions);
        submissions::add_actions(self, state, actions);
        results::add_actions(self, state, actions);
        ledger::add_actions(self, state, actions);
        database::add_actions(state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Claims(step, instance) => claims::apply_step(self, &mut state, step, instance),
            Action::Submission(step, worker, batch) => {
                submissions::apply_step(self, &mut state, step, worker, batch)
            }
            Action::Result(step, worker, batch) => {
                results::apply_step(self, &mut state, step, worker, batch)
            }
            Action::Ledger(step) => ledger::apply_step(self, &mut state, step),
            Action::Database(step) => database::apply_step(self, &mut state, step),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}
