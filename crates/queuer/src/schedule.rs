//! The strategies over a list of the open batches of one service.

use std::fmt;

use grid_batch_core::batches::{BatchState, DeclaredAccess, StoredBatch};
use grid_batch_core::queue::{
    AnyStrategy, BlockedBy, InLane, LaneCounts, Scheduling, Strategy, WaitKind,
};
use grid_batch_core::{ItemId, Timestamp};

/// An open batch of a service as [`schedule`] sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenBatch<'a> {
    /// The batch.
    pub batch: &'a StoredBatch,
    /// Its position in the order of its service. `None`: it has no position until the transactions that it depends on
    /// are known.
    pub position: Option<Timestamp>,
    /// What it declares.
    pub access: &'a DeclaredAccess,
    /// Whether it has ended as invalid and the batches that follow it wait until an operator decides. Other ended
    /// batches are left out.
    pub halts: bool,
}

/// What is known about a transaction that a batch depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// It was applied.
    Applied,
    /// It is in this batch, which is open, or ended as invalid and halts its service.
    Open(ItemId),
    /// It is only in batches that ended as invalid, and the ledger has not answered whether it has it from
    /// another one.
    Unanswered,
    /// It is only in batches that ended as invalid, and the ledger does not have it, so the ledger will not apply the
    /// dependent.
    Invalid,
    /// It is in no known batch.
    Missing,
}

/// What happens next to an open batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<'a> {
    /// It may be submitted now.
    Submit,
    /// It must wait.
    Wait(WaitsFor<'a>),
    /// It ends as invalid without being sent, because it depends on this transaction, which was not
    /// applied.
    EndAsInvalid(ItemId),
}

/// What an open batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor<'a> {
    /// Its own result: it is, or may be, with a submitter or at the ledger.
    Result,
    /// An earlier batch that it conflicts with.
    Conflict(&'a StoredBatch),
    /// An earlier batch, because the strategy keeps the order.
    Earlier(&'a StoredBatch),
    /// A later batch that is with a submitter or at the ledger. This batch was lost, or a transaction that it depends
    /// on arrived late. It is sent when the later one cannot be applied after it any more.
    Later(&'a StoredBatch),
    /// A batch with a transaction that it depends on.
    DependsOn(ItemId),
    /// This transaction, which is in no known batch.
    Missing(ItemId),
    /// The ledger's answer about whether it has this transaction, which is only in invalid batches.
    Ledger(ItemId),
    /// An operator's decision about a batch that ended as invalid.
    Halt(&'a StoredBatch),
    /// A lane: as many batches of its service are under way as are allowed.
    Lane,
    /// An operator, who holds it.
    Hold,
    /// Its next try.
    Delay(Timestamp),
}

/// What happens next to each of the open batches of one service, in the order of `batches`.
///
/// Batches that were tried before keep their lanes, and the strategy ([`Scheduling::rule`]) gives lanes to others, the
/// earliest first. If a batch waits for several others, the latest is named.
///
/// ```
/// use grid_batch_core::{batches::{AddressPrefix, DeclaredAccess}, queue::{Scheduling, StrategyKind}};
/// # use grid_batch_core::{ItemId, Timestamp, batches::StoredBatch};
/// use grid_batch_queuer::{Dependency, Next, OpenBatch, WaitsFor, schedule};
///
/// # let stored = |number: u8| {
/// #     let created_at = Timestamp::from_micros(number.into());
/// #     StoredBatch::new("global".parse().unwrap(), ItemId::from_bytes([number; 64]), created_at)
/// # };
/// let stored = [1, 2, 3].map(stored);
/// let access = ["aa", "aa01", "bb"]
///     .map(|written| DeclaredAccess::new([], [AddressPrefix::new(written)], []));
/// let batches = [0, 1, 2].map(|number| OpenBatch {
///     batch: &stored[number],
///     position: Some(stored[number].created_at),
///     access: &access[number],
///     halts: false,
/// });
/// let next = |strategy| {
///     let scheduling = Scheduling { strategy, lanes: 10, ..Scheduling::SERIAL };
///     schedule(scheduling, &batches, &|_| Dependency::Applied, Timestamp::from_micros(9))
/// };
///
/// let conflict = Next::Wait(WaitsFor::Conflict(&stored[0]));
/// assert_eq!(next(StrategyKind::Parallel), [Next::Submit, conflict, Next::Submit]);
/// let [first, second] = [0, 1].map(|number| Next::Wait(WaitsFor::Earlier(&stored[number])));
/// assert_eq!(next(StrategyKind::Serial), [Next::Submit, first, second]);
/// ```
pub fn schedule<'a>(
    scheduling: Scheduling,
    batches: &[OpenBatch<'a>],
    dependency: &dyn Fn(ItemId) -> Dependency,
    now: Timestamp,
) -> Vec<Next<'a>> {
    let mut order: Vec<usize> = (0..batches.len()).collect();
    order.sort_by_key(|&at| (batches[at].position, batches[at].batch.batch_id));
    let queue = Queue {
        strategy: scheduling.rule(),
        batches: order.iter().map(|&at| batches[at]).collect(),
        dependency,
        now,
    };
    let mut next: Vec<_> = order.into_iter().zip(queue.next()).collect();
    next.sort_by_key(|(at, _)| *at);
    next.into_iter().map(|(_, next)| next).collect()
}

/// The open batches of a service, in their order.
struct Queue<'s, 'a> {
    strategy: AnyStrategy,
    batches: Vec<OpenBatch<'a>>,
    dependency: &'s dyn Fn(ItemId) -> Dependency,
    now: Timestamp,
}

/// What must happen before a batch is sent, whatever the strategy.
#[derive(Clone, Copy)]
enum Before<'a> {
    Nothing,
    Waits(BlockedBy, WaitsFor<'a>),
    EndsAsInvalid(ItemId),
}

impl<'a> Queue<'_, 'a> {
    fn next(&self) -> Vec<Next<'a>> {
        let before: Vec<Before<'a>> = (0..self.batches.len()).map(|at| self.before(at)).collect();
        let lanes = self.lanes(&before);
        let in_lanes: Vec<InLane> = lanes.iter().map(|&at| self.in_lane(at, &before[at])).collect();
        let next = self.strategy.next(&in_lanes).into_iter().map(|lane| lanes[lane]);
        let next: Vec<usize> = next.filter(|&at| self.stopped_by(at).is_none()).collect();
        let next_of = |at: usize| {
            let open = &self.batches[at];
            match before[at] {
                _ if open.halts => Next::Wait(WaitsFor::Halt(open.batch)),
                _ if next.contains(&at) => Next::Submit,
                _ if open.is_in_flight() => Next::Wait(WaitsFor::Result),
                Before::EndsAsInvalid(id) => Next::EndAsInvalid(id),
                before if lanes.contains(&at) => Next::Wait(self.why_in_lane(at, before)),
                before => Next::Wait(self.why_waiting(at, before)),
            }
        };
        (0..self.batches.len()).map(next_of).collect()
    }

    /// The batches with lanes, in order.
    fn lanes(&self, before: &[Before<'a>]) -> Vec<usize> {
        let tried = self.batches.iter().filter(|open| open.was_tried());
        let mut counts = LaneCounts {
            busy: tried.clone().count(),
            held: tried.filter(|open| open.batch.held.is_some()).count(),
        };
        let mut all_follow = true;
        let mut gets_lane = |at: &usize| {
            let open = &self.batches[*at];
            if open.was_tried() || open.halts {
                return open.was_tried();
            }
            let may_follow = match before[*at] {
                Before::Nothing => self.strategy.may_follow(None),
                Before::Waits(blocker, _) => self.strategy.may_follow(Some(blocker)),
                Before::EndsAsInvalid(_) => false,
            };
            let gets_lane = all_follow
                && may_follow
                && self.stopped_by(*at).is_none()
                && self.strategy.room(counts) > 0;
            if gets_lane {
                counts.busy += 1;
                counts.held += usize::from(open.batch.held.is_some());
            } else if self.strategy.keeps_order() && open.position.is_some() {
                all_follow = false;
            }
            gets_lane
        };
        (0..self.batches.len()).filter(&mut gets_lane).collect()
    }

    fn in_lane(&self, at: usize, before: &Before<'a>) -> InLane {
        let StoredBatch { progress, held, .. } = self.batches[at].batch;
        InLane {
            state: progress.state,
            is_ready: progress.state.awaits_queuer()
                && held.is_none()
                && self.batches[at].delay(self.now).is_none(),
            is_held: held.is_some(),
            is_blocked: matches!(before, Before::Waits(..)),
            ..InLane::NEW
        }
    }

    /// Dependencies are checked first, unless the batch was sent before.
    fn before(&self, at: usize) -> Before<'a> {
        let open = &self.batches[at];
        let on_dependencies =
            if open.was_tried() { Before::Nothing } else { self.before_dependent(open) };
        match on_dependencies {
            Before::Nothing if !self.strategy.keeps_order() => self.before_conflicting(at),
            before => before,
        }
    }

    /// What a batch must wait for because of the transactions that it depends on.
    fn before_dependent(&self, open: &OpenBatch<'a>) -> Before<'a> {
        let ids = open.access.dependencies().iter();
        let found: Vec<_> = ids.map(|&id| (id, (self.dependency)(id))).collect();
        let first = |wanted: fn(&Dependency) -> bool| found.iter().find(|(_, found)| wanted(found));
        if let Some((id, _)) = first(|it| *it == Dependency::Invalid) {
            return Before::EndsAsInvalid(*id);
        }
        if let Some((id, _)) = first(|it| *it == Dependency::Missing) {
            return Before::Waits(BlockedBy::Missing, WaitsFor::Missing(*id));
        }
        if let Some((id, _)) = first(|it| *it == Dependency::Unanswered) {
            return Before::Waits(BlockedBy::Missing, WaitsFor::Ledger(*id));
        }
        match first(|it| matches!(it, Dependency::Open(_))) {
            Some((_, Dependency::Open(batch_id))) => {
                Before::Waits(BlockedBy::Dependency, WaitsFor::DependsOn(*batch_id))
            }
            _ => Before::Nothing,
        }
    }

    /// The latest earlier batch that it conflicts with. A batch whose dependencies arrived late also waits for later
    /// ones that were sent before it.
    fn before_conflicting(&self, at: usize) -> Before<'a> {
        let own = &self.batches[at];
        let conflicts = |other: &&OpenBatch<'a>| other.access.conflicts_with(own.access);
        if let Some(other) = self.earlier(at).rev().find(conflicts) {
            let waits_for = if other.halts {
                WaitsFor::Halt(other.batch)
            } else {
                WaitsFor::Conflict(other.batch)
            };
            return Before::Waits(BlockedBy::Conflict, waits_for);
        }
        match self.later_in_flight(at).find(conflicts).filter(|_| !own.was_tried()) {
            Some(other) => Before::Waits(BlockedBy::Conflict, WaitsFor::Later(other.batch)),
            None => Before::Nothing,
        }
    }

    /// Why a batch is not submitted although it is its turn.
    fn why_in_lane(&self, at: usize, before: Before<'a>) -> WaitsFor<'a> {
        let open = &self.batches[at];
        if let Some(halt) = self.stopped_by(at) {
            return WaitsFor::Halt(halt);
        }
        if let Before::Waits(_, waits_for) = before {
            return waits_for;
        }
        if self.strategy.keeps_order()
            && let Some(turn) = self.before_turn(at)
        {
            return turn;
        }
        match (&open.batch.held, open.delay(self.now)) {
            (Some(_), _) => WaitsFor::Hold,
            (None, Some(at)) => WaitsFor::Delay(at),
            (None, None) => match self.of_list_behind(at) {
                Some(other) if !self.strategy.keeps_order() => WaitsFor::Later(other),
                _ => self.end_of_earlier(at),
            },
        }
    }

    /// The last later batch that may be at the ledger although it conflicts with an earlier one.
    fn of_list_behind(&self, at: usize) -> Option<&'a StoredBatch> {
        let of_list = |other: &usize| {
            self.batches[*other].is_in_flight() && matches!(self.before(*other), Before::Waits(..))
        };
        (at + 1..self.batches.len()).rfind(of_list).map(|other| self.batches[other].batch)
    }

    /// Why a batch without a lane waits.
    fn why_waiting(&self, at: usize, before: Before<'a>) -> WaitsFor<'a> {
        let (blocker, named) = match before {
            Before::Waits(blocker, named) => (Some(blocker), Some(named)),
            Before::Nothing | Before::EndsAsInvalid(_) => (None, None),
        };
        let stopped_by = self.stopped_by(at);
        match (self.strategy.waits_for(blocker, stopped_by.is_some()), stopped_by, named) {
            (WaitKind::Halt, Some(halt), _) => WaitsFor::Halt(halt),
            (WaitKind::Earlier, ..) => {
                self.before_turn(at).unwrap_or_else(|| self.end_of_earlier(at))
            }
            (_, _, Some(named)) => named,
            _ => WaitsFor::Lane,
        }
    }

    /// The latest earlier batch that the ledger has not accepted, or a later one that it may have.
    fn before_turn(&self, at: usize) -> Option<WaitsFor<'a>> {
        let earlier = self.earlier(at).rev().find(|other| !other.is_at_ledger());
        let later = || self.later_in_flight(at).next();
        let earlier = earlier.map(|other| WaitsFor::Earlier(other.batch));
        earlier.or_else(|| later().map(|other| WaitsFor::Later(other.batch)))
    }

    /// Waits for the end of an earlier batch, because the ledger has accepted as many as the window allows.
    fn end_of_earlier(&self, at: usize) -> WaitsFor<'a> {
        let latest = self.earlier(at).next_back();
        latest.map_or(WaitsFor::Lane, |other| WaitsFor::Earlier(other.batch))
    }

    /// The first invalid batch that halts the service, if it stops this one.
    fn stopped_by(&self, at: usize) -> Option<&'a StoredBatch> {
        let first = self.batches.iter().find(|open| open.halts)?;
        let own = self.batches[at].position?.as_micros();
        let halt = first.position.map(Timestamp::as_micros);
        self.strategy.is_stopped(own, halt).then_some(first.batch)
    }

    /// The batches before one in the order of the service.
    fn earlier(&self, at: usize) -> impl DoubleEndedIterator<Item = &OpenBatch<'a>> {
        let has_position = self.batches[at].position.is_some();
        self.batches[..at].iter().filter(move |it| has_position && it.position.is_some())
    }

    fn later_in_flight(&self, at: usize) -> impl Iterator<Item = &OpenBatch<'a>> {
        self.batches[at + 1..].iter().filter(|other| other.is_in_flight())
    }
}

impl OpenBatch<'_> {
    /// Whether it is, or may be, with a submitter or at the ledger.
    pub fn is_in_flight(&self) -> bool {
        let state = self.batch.progress.state;
        !state.is_terminal() && state.submitted()
    }

    /// Whether it was with a submitter, so that it has a lane.
    fn was_tried(&self) -> bool {
        self.batch.progress.state != BatchState::New && !self.halts
    }

    /// Whether the ledger has accepted and not lost it.
    fn is_at_ledger(&self) -> bool {
        matches!(self.batch.progress.state, BatchState::Pending | BatchState::Valid)
    }

    /// When it is tried next, if that is later.
    fn delay(&self, now: Timestamp) -> Option<Timestamp> {
        self.batch.next_try_at.filter(|at| *at > now)
    }
}

impl fmt::Display for WaitsFor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result => f.write_str("its result"),
            Self::Conflict(other) => {
                write!(f, "the batch {}, which it conflicts with", other.batch_id)
            }
            Self::Earlier(other) => write!(f, "the batch {} before it", other.batch_id),
            Self::Later(other) => {
                write!(f, "the batch {} behind it, which the ledger may have", other.batch_id)
            }
            Self::DependsOn(batch_id) => write!(f, "the batch {batch_id}, which it depends on"),
            Self::Missing(id) => write!(f, "the transaction {id}, which is not known"),
            Self::Ledger(id) => write!(f, "the ledger's answer about the transaction {id}"),
            Self::Halt(other) => {
                write!(f, "a decision about the batch {}, which is invalid", other.batch_id)
            }
            Self::Lane => f.write_str("the end of another batch of its service"),
            Self::Hold => f.write_str("an operator, who holds it"),
            Self::Delay(_) => f.write_str("its next try"),
        }
    }
}
