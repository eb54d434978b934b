//! The state of the model: instances, the database and the ledger.

use grid_batch_core::batches::{BatchState, Event, Progress};
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::queue::StrategyKind;

use crate::action::{BatchAt, ClockJump, WorkerId};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub instances: Vec<Instance>,
    pub services: Vec<Service>,
    /// A copy of the database, without what is true of the ledger.
    pub copy: Option<Vec<ServiceCopy>>,
    /// The faults that may still occur.
    pub faults_left: FaultBudget,
    pub violations: Violations,
}

/// The number of faults that may occur, of any kind and at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FaultBudget {
    /// Faults of instances: an idle expiry, a crash, a stop.
    pub instances: u8,
    /// Faults of the ledger: a POST that fails or is not answered, an invalid batch, a restart.
    pub ledger: u8,
    /// Jumps of the time of day on the machine of an instance.
    pub clocks: u8,
    /// How often the database goes back to a copy.
    pub databases: u8,
}

/// A process and its lease in the database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instance {
    pub is_running: bool,
    /// It is configured with another ledger than the first instance of the database.
    pub is_stray: bool,
    pub lease: Lease,
    /// The last jump of its clock.
    pub clock_jump: Option<ClockJump>,
    /// One worker for each service.
    pub workers: Vec<WorkerMemory>,
}

/// The state of an instance's lease, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lease {
    /// Before the idle expiry.
    Valid,
    /// Between the idle expiry and the full expiry.
    IdleExpired,
    /// After the full expiry.
    FullyExpired,
    /// The lease is removed, because the instance was stopped.
    Removed,
}

/// What an instance knows about one service. It may be out of date.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct WorkerMemory {
    /// The epoch of the last claim that the instance made; 0 for none.
    pub epoch: u64,
    /// At most one for each batch, in their order, and as many as the service has lanes.
    pub tasks: Vec<Task>,
}

/// A batch that an instance is submitting, or a result that it has not recorded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Task {
    pub batch: usize,
    pub attempt_id: AttemptId,
    /// The batch was marked before the idle expiry, or was only queried.
    pub started_in_time: bool,
    /// All batches that are sent in the same request.
    pub list: BatchSet,
    /// The result; `None` while the batch is being submitted.
    pub result: Option<Event>,
}

/// A service's claim, and its batches in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Service {
    pub owner: Option<usize>,
    pub epoch: u64,
    pub batches: Vec<Batch>,
    pub strategy: StrategyKind,
    /// How many batches may be under way.
    pub lanes: usize,
    /// How many batches may be sent in one request, conflicting ones in order.
    pub list: usize,
    /// A node of the ledger has not applied the last batch that the others have applied.
    pub follower_lags: bool,
    /// The batches that the ledger has accepted, in their order, if it keeps the order and the strategy needs it.
    pub queue: Vec<usize>,
    /// The requests that timed out and may still arrive, sorted: the batches of each.
    pub delayed_posts: Vec<BatchSet>,
}

/// What a copy of the database has of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceCopy {
    pub owner: Option<usize>,
    pub epoch: u64,
    pub batches: Vec<BatchCopy>,
}

/// What a copy of the database has of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchCopy {
    pub progress: Progress,
    pub taken_in: u64,
    pub last_failed_attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch {
    pub relations: Relations,
    /// The progress in the store.
    pub progress: Progress,
    /// The epoch in which the batch was last passed to a submitter.
    pub taken_in: u64,
    /// The last attempt that certainly failed, by a recorded result. Only properties use it.
    pub last_failed_attempt: u32,
    /// The database has gone back since the batch was stored: it is in doubt when it becomes the
    /// head.
    pub is_restored: bool,
    /// An operator must decide about it, because a later batch of its list was committed.
    pub is_held: bool,
    pub ledger: LedgerBatch,
}

/// How a batch is related to the earlier batches of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Relations {
    /// Those that it conflicts with.
    pub conflicts: BatchSet,
    /// Those that it depends on.
    pub dependencies: BatchSet,
    /// Those whose end it waits for, by the rules.
    pub waits_for: BatchSet,
}

/// A set of batches of one service: a bit for each number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchSet(u8);

impl BatchSet {
    pub fn contains(self, batch: usize) -> bool {
        self.0 & 1 << batch != 0
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn one(batch: usize) -> Self {
        Self(1 << batch)
    }

    pub fn without(self, batch: usize) -> Self {
        Self(self.0 & !(1 << batch))
    }

    /// The first batch alone.
    pub fn first(self) -> Self {
        self.iter().take(1).collect()
    }

    /// The batches in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |&batch| self.contains(batch))
    }
}

impl FromIterator<usize> for BatchSet {
    fn from_iter<I: IntoIterator<Item = usize>>(batches: I) -> Self {
        Self(batches.into_iter().fold(0, |set, batch| set | 1 << batch))
    }
}

/// The state of a batch at the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LedgerBatch {
    /// How often the batch is accepted and not yet executed.
    pub accepted: u8,
    /// How often the batch was applied.
    pub applied: u8,
    pub is_invalid: bool,
    /// A second arrival was refused, which the ledger reports as invalid.
    pub is_refused: bool,
    /// The batch was accepted again, and the ledger still reports that it was invalid before.
    pub earlier_invalid: EarlierInvalid,
    /// The time or height has passed after which the batch is declared to be never applied.
    pub is_past_its_time: bool,
    /// The batch is only invalid at a node that had not applied the batch before.
    pub is_refused_by_follower: bool,
    /// The ledger reports a status of the batch.
    pub known: bool,
    /// All events of the ledger were observed since the present attempt started.
    pub observed: bool,
    /// How often the batch arrived at another ledger, that of a stray instance.
    pub elsewhere: u8,
}

/// A report that a batch is invalid, which is about an earlier attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum EarlierInvalid {
    #[default]
    None,
    /// It was there when the present attempt was sent, so one who asked before knows it.
    BeforeAttempt,
    /// It was there when a delayed attempt arrived.
    BeforeLateArrival,
}

/// Violations of properties on the path to this state. The protocol does not use them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Violations {
    /// A batch was applied before an earlier one, or after a later one.
    pub out_of_order: bool,
    /// A batch was sent again without a proof that the previous attempt had failed.
    pub sent_blindly: bool,
    /// A batch was sent again while the previous attempt could still succeed.
    pub sent_too_early: bool,
    /// A batch was applied before one that it depends on.
    pub before_dependency: bool,
}

impl State {
    pub fn initial(
        instances: usize,
        strays: usize,
        services: Vec<Service>,
        faults_left: FaultBudget,
    ) -> Self {
        let workers = vec![WorkerMemory::default(); services.len()];
        let instance = |number| Instance {
            is_running: true,
            is_stray: number >= instances,
            lease: Lease::Valid,
            clock_jump: None,
            workers: workers.clone(),
        };
        Self {
            instances: (0..instances + strays).map(instance).collect(),
            services,
            copy: None,
            faults_left,
            violations: Violations::default(),
        }
    }

    pub fn memory(&self, worker: WorkerId) -> &WorkerMemory {
        &self.instances[worker.instance].workers[worker.service]
    }

    pub fn memory_mut(&mut self, worker: WorkerId) -> &mut WorkerMemory {
        &mut self.instances[worker.instance].workers[worker.service]
    }

    pub fn lease(&self, worker: WorkerId) -> Lease {
        self.instances[worker.instance].lease
    }

    pub fn batch_mut(&mut self, at: BatchAt) -> &mut Batch {
        &mut self.services[at.service].batches[at.batch]
    }

    /// Whether the database has the worker's claim with this epoch.
    pub fn owns(&self, worker: WorkerId) -> bool {
        let service = &self.services[worker.service];
        service.owner == Some(worker.instance) && service.epoch == self.memory(worker).epoch
    }

    /// The workers of all running instances.
    pub fn running_workers(&self) -> impl Iterator<Item = WorkerId> {
        let running =
            (0..self.instances.len()).filter(|&instance| self.instances[instance].is_running);
        running.flat_map(|instance| {
            (0..self.services.len()).map(move |service| WorkerId { instance, service })
        })
    }

    /// Whether another instance is running. The last one does not stop.
    pub fn another_is_running(&self, instance: usize) -> bool {
        let mut others = self.instances.iter().enumerate().filter(|(other, _)| *other != instance);
        others.any(|(_, other)| other.is_running && !other.is_stray)
    }
}

impl Instance {
    /// Whether it has a submission that ends before the full expiry.
    pub fn has_timely_submission(&self) -> bool {
        self.workers
            .iter()
            .any(|memory| memory.tasks.iter().any(|task| task.is_sending() && task.started_in_time))
    }
}

impl WorkerMemory {
    pub fn task(&self, batch: usize) -> Option<&Task> {
        self.tasks.iter().find(|task| task.batch == batch)
    }

    pub fn is_sending(&self, batch: usize) -> bool {
        self.task(batch).is_some_and(Task::is_sending)
    }

    /// Whether the instance can begin to work on these batches.
    pub fn is_free_for(&self, batches: BatchSet, lanes: usize) -> bool {
        let mut tasks = self.tasks.iter();
        self.tasks.len() + batches.iter().count() <= lanes
            && tasks.all(|task| !batches.contains(task.batch))
    }

    pub fn begin(&mut self, task: Task) {
        let at = self.tasks.partition_point(|other| other.batch < task.batch);
        self.tasks.insert(at, task);
    }

    pub fn end(&mut self, batch: usize) -> Option<Task> {
        let at = self.tasks.iter().position(|task| task.batch == batch)?;
        Some(self.tasks.remove(at))
    }
}

impl Task {
    pub fn is_sending(&self) -> bool {
        self.result.is_none()
    }

    /// Whether its batch is being sent, as the first of its request.
    pub fn is_first_of_post(&self) -> bool {
        self.is_sending() && self.list.first() == BatchSet::one(self.batch)
    }
}

impl Batch {
    pub fn new(relations: Relations) -> Self {
        Self {
            relations,
            progress: Progress::NEW,
            taken_in: 0,
            last_failed_attempt: 0,
            is_restored: false,
            is_held: false,
            ledger: LedgerBatch::default(),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.progress.state.is_terminal()
    }

    pub fn was_tried(&self) -> bool {
        self.progress.state != BatchState::New
    }
}

impl Service {
    /// Whether a request with this batch timed out and may still arrive.
    pub fn may_arrive(&self, batch: usize) -> bool {
        self.delayed_posts.iter().any(|list| list.contains(batch))
    }

    /// A request with these batches timed out.
    pub fn delay_post(&mut self, batches: BatchSet) {
        let at = self.delayed_posts.partition_point(|other| *other < batches);
        self.delayed_posts.insert(at, batches);
    }

    /// Removes a request that timed out.
    pub fn end_delay(&mut self, batches: BatchSet) {
        let at = self.delayed_posts.iter().position(|other| *other == batches);
        at.map(|at| self.delayed_posts.remove(at));
    }

    pub fn has_ended(&self) -> bool {
        self.batches.iter().all(Batch::has_ended)
    }

    /// Whether a batch is with a submitter.
    pub fn is_submitting(&self) -> bool {
        self.batches.iter().any(|batch| batch.progress.state == BatchState::Submitting)
    }
}
