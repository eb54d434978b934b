//! Which batches of a service may be sent next, as functions of plain values.
//!
//! A batch that may be sent, or was sent, is in a *lane*. A strategy decides which waiting batches get a lane
//! ([`room`](Strategy::room), [`may_follow`](Strategy::may_follow)) and which batches in lanes are sent
//! ([`next`](Strategy::next)). The caller keeps the batches: `grid-batch-store` in tables, the queuer's
//! `schedule` in a list.

use std::fmt;

use crate::batches::BatchState;

/// The rule by which the next batches of a service are chosen.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Strategy: fmt::Debug + Send + Sync {
    /// Whether no batch is sent before an earlier one of its service. If so, an invalid batch that halts its service
    /// stops all batches that follow it; otherwise it stops only those that wait for it.
    fn keeps_order(&self) -> bool;

    /// How many more batches may get a lane.
    fn room(&self, lanes: LaneCounts) -> usize;

    /// Whether a waiting batch may get a lane while it waits for `blocker`. If the order is kept, all batches before it
    /// have lanes.
    fn may_follow(&self, blocker: Option<BlockedBy>) -> bool;

    /// The batches in lanes that may be sent now, as indices. `lanes` are in the order of the service.
    fn next(&self, lanes: &[InLane]) -> Vec<usize>;

    /// How many of the first batches in lanes may be sent now in one request that keeps their order. None, unless one of
    /// them waits for another of them.
    fn list(&self, _lanes: &[InLane]) -> usize {
        0
    }

    /// Whether other batches may be sent because a batch has entered this state.
    fn lets_others_go(&self, state: BatchState) -> bool {
        state.is_terminal()
    }

    /// Whether a batch at this position is stopped by the first invalid batch that halts its service. If the order is
    /// not kept, an invalid batch stops only those that wait for it.
    fn is_stopped(&self, position: i64, first_halt: Option<i64>) -> bool {
        self.keeps_order() && first_halt.is_some_and(|halt| position > halt)
    }

    /// Why a batch without a lane waits. `is_stopped`: an invalid batch stops it.
    fn waits_for(&self, blocker: Option<BlockedBy>, is_stopped: bool) -> WaitKind {
        match blocker {
            _ if is_stopped => WaitKind::Halt,
            Some(BlockedBy::Missing) => WaitKind::Missing,
            Some(BlockedBy::Dependency) => WaitKind::Dependency,
            _ if self.keeps_order() => WaitKind::Earlier,
            Some(BlockedBy::Conflict) => WaitKind::Conflict,
            None => WaitKind::Lane,
        }
    }
}

/// The lanes of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// How many have a batch.
    pub busy: usize,
    /// How many of these have a batch that is held.
    pub held: usize,
}

/// What must happen before a waiting batch is sent, whatever the strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedBy {
    /// A transaction that it depends on is in no batch that can be sent before it.
    Missing,
    /// A batch with a transaction that it depends on must end.
    Dependency,
    /// An earlier batch of its service that it conflicts with must end.
    Conflict,
}

/// A batch in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InLane {
    /// Its state, which is not terminal.
    pub state: BatchState,
    /// Whether it awaits the queuer and neither a hold nor a delay keeps it back.
    pub is_ready: bool,
    /// An operator must decide about it.
    pub is_held: bool,
    /// An earlier batch that it conflicts with has not ended.
    pub is_blocked: bool,
    /// Later batches may be sent before it.
    pub may_be_overtaken: bool,
    /// An earlier attempt of it may still arrive at the ledger.
    pub may_arrive_late: bool,
    /// It is sent before all others, because its nonce is lower than theirs.
    pub goes_first: bool,
}

impl InLane {
    /// A batch in a lane that was never tried and is not kept back.
    pub const NEW: Self = Self {
        state: BatchState::New,
        is_ready: true,
        is_held: false,
        is_blocked: false,
        may_be_overtaken: false,
        may_arrive_late: false,
        goes_first: false,
    };

    /// Whether it was sent together with an earlier batch that it conflicts with, and may be at the ledger.
    const fn is_sent_in_list(&self) -> bool {
        self.is_blocked && self.state.submitted()
    }

    /// Whether the ledger has accepted and not lost it, so that it will be applied before later ones.
    const fn is_at_ledger(&self) -> bool {
        matches!(self.state, BatchState::Pending | BatchState::Valid) && !self.is_held
    }
}

/// Why a batch without a lane waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// An operator's decision about a batch that ended as invalid.
    Halt,
    /// A transaction that it depends on is in no batch that can be sent before it.
    Missing,
    /// A batch with a transaction that it depends on.
    Dependency,
    /// Its turn: the order is kept.
    Earlier,
    /// An earlier batch that it conflicts with.
    Conflict,
    /// A lane: as many batches of its service are under way as are allowed.
    Lane,
}

/// In order: a batch is sent when the ledger has accepted all earlier ones, and fewer than `window` of them have
/// not ended. With a window of 1 it is sent when all earlier ones have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InOrder {
    /// Limit on the number of batches under way, at least 1.
    pub window: usize,
}

impl InOrder {
    /// One at a time.
    pub const SERIAL: Self = Self { window: 1 };
}

impl Strategy for InOrder {
    fn keeps_order(&self) -> bool {
        true
    }

    fn room(&self, lanes: LaneCounts) -> usize {
        self.window.saturating_sub(lanes.busy)
    }

    /// If several are sent, the ledger applies conflicting ones in the order in which they were sent.
    fn may_follow(&self, blocker: Option<BlockedBy>) -> bool {
        match blocker {
            None => true,
            Some(BlockedBy::Conflict) => self.window > 1,
            Some(BlockedBy::Missing | BlockedBy::Dependency) => false,
        }
    }

    /// Returns at most one. A lost batch is not sent again while the ledger may have a later one.
    fn next(&self, lanes: &[InLane]) -> Vec<usize> {
        let awaits = |lane: &InLane| lane.state.awaits_queuer() && !lane.may_be_overtaken;
        let first = lanes.iter().position(|lane| lane.goes_first);
        let next = first.or_else(|| lanes.iter().position(awaits));
        let can_be_sent = |next: &usize| {
            let is_sent = |lane: &&InLane| lane.state.submitted();
            let (before, rest) = lanes.split_at(*next);
            before.iter().filter(is_sent).count() < self.window
                && before.iter().filter(is_sent).all(InLane::is_at_ledger)
                && !rest.iter().skip(1).any(|lane| lane.state.submitted())
                && rest.first().is_some_and(|lane| lane.is_ready)
        };
        next.filter(can_be_sent).into_iter().collect()
    }

    fn lets_others_go(&self, state: BatchState) -> bool {
        state.is_terminal() || (state == BatchState::Pending && self.window > 1)
    }
}

/// By conflict: a batch is sent when the earlier ones that it conflicts with have ended, or together with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByConflict {
    /// Limit on the number of batches under way that are not held, at least 1.
    pub lanes: usize,
    /// Limit on the number of batches in a list, at least 1. It may change at any time.
    pub list: usize,
}

impl ByConflict {
    /// How many batches that are held may be under way, for each lane. There must be a limit, because
    /// each change reads all lanes of its service.
    const MOST_HELD: usize = 10;
}

impl Strategy for ByConflict {
    fn keeps_order(&self) -> bool {
        false
    }

    /// A held batch stops only batches that conflict with it, so its lane is not counted.
    fn room(&self, LaneCounts { busy, held }: LaneCounts) -> usize {
        let most = self.lanes.saturating_mul(1 + Self::MOST_HELD);
        let not_held = busy.saturating_sub(held);
        self.lanes.saturating_sub(not_held).min(most.saturating_sub(busy))
    }

    fn may_follow(&self, blocker: Option<BlockedBy>) -> bool {
        match blocker {
            None => true,
            Some(BlockedBy::Conflict) => self.list > 1,
            Some(BlockedBy::Missing | BlockedBy::Dependency) => false,
        }
    }

    /// A lost batch is not sent again while the ledger may have a later one of its list.
    fn next(&self, lanes: &[InLane]) -> Vec<usize> {
        let first = lanes.iter().rposition(InLane::is_sent_in_list).map_or(0, |last| last + 1);
        let can_be_sent = |lane: &InLane| lane.is_ready && !lane.is_blocked;
        (first..lanes.len()).filter(|at| can_be_sent(&lanes[*at])).collect()
    }

    /// All batches before one of the list are in it, so none that it conflicts with is anywhere else. A batch that may
    /// arrive late is sent alone.
    fn list(&self, lanes: &[InLane]) -> usize {
        if lanes.iter().any(InLane::is_sent_in_list) {
            return 0;
        }
        let can_be_listed = |lane: &&InLane| lane.is_ready && !lane.may_arrive_late;
        let first = lanes.iter().take(self.list).take_while(can_be_listed).count();
        if lanes[..first].iter().any(|lane| lane.is_blocked) { first } else { 0 }
    }
}

/// One of the strategies that the settings name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyStrategy {
    /// In order.
    InOrder(InOrder),
    /// By conflict.
    ByConflict(ByConflict),
}

impl AnyStrategy {
    fn get(&self) -> &dyn Strategy {
        match self {
            Self::InOrder(strategy) => strategy,
            Self::ByConflict(strategy) => strategy,
        }
    }
}

impl Strategy for AnyStrategy {
    fn keeps_order(&self) -> bool {
        self.get().keeps_order()
    }

    fn room(&self, lanes: LaneCounts) -> usize {
        self.get().room(lanes)
    }

    fn may_follow(&self, blocker: Option<BlockedBy>) -> bool {
        self.get().may_follow(blocker)
    }

    fn next(&self, lanes: &[InLane]) -> Vec<usize> {
        self.get().next(lanes)
    }

    fn list(&self, lanes: &[InLane]) -> usize {
        self.get().list(lanes)
    }

    fn lets_others_go(&self, state: BatchState) -> bool {
        self.get().lets_others_go(state)
    }

    fn is_stopped(&self, position: i64, first_halt: Option<i64>) -> bool {
        self.get().is_stopped(position, first_halt)
    }

    fn waits_for(&self, blocker: Option<BlockedBy>, is_stopped: bool) -> WaitKind {
        self.get().waits_for(blocker, is_stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BatchState::{Absent, Delayed, InDoubt, New, Pending, Submitting, Valid};

    const PIPELINE: InOrder = InOrder { window: 9 };

    fn lane(state: BatchState) -> InLane {
        InLane { state, is_ready: state.awaits_queuer(), ..InLane::NEW }
    }

    fn next<const N: usize>(strategy: impl Strategy, states: [BatchState; N]) -> Vec<usize> {
        strategy.next(&states.map(lane))
    }

    #[test]
    fn serial_sends_nothing_beside_a_batch_under_way() {
        assert_eq!(next(InOrder::SERIAL, [New, New]), [0]);
        for state in [Submitting, InDoubt, Pending, Valid] {
            assert_eq!(next(InOrder::SERIAL, [state, New]), [0; 0], "{state}");
            assert_eq!(next(InOrder::SERIAL, [New, state]), [0; 0], "{state}");
        }
    }

    #[test]
    fn pipeline_sends_one_behind_those_at_the_ledger() {
        assert_eq!(next(PIPELINE, [Pending, Valid, New, New]), [2]);
        for state in [Submitting, InDoubt] {
            assert_eq!(next(PIPELINE, [state, New]), [0; 0], "{state}");
        }
    }

    #[test]
    fn window_counts_what_has_not_ended() {
        let strategy = InOrder { window: 2 };
        assert_eq!(next(strategy, [Pending, New]), [1]);
        assert_eq!(next(strategy, [Pending, Pending, New]), [0; 0]);
        assert_eq!(strategy.room(LaneCounts { busy: 1, held: 1 }), 1);
        assert_eq!(strategy.room(LaneCounts { busy: 3, held: 0 }), 0);
    }

    #[test]
    fn lost_batch_waits_for_later_ones_at_the_ledger() {
        assert_eq!(next(PIPELINE, [Absent, Pending]), [0; 0]);
        assert_eq!(next(PIPELINE, [Pending, Absent, Absent]), [1]);
    }

    #[test]
    fn held_batch_stops_what_follows_it_in_order() {
        let held = InLane { is_held: true, ..lane(Pending) };
        assert_eq!(PIPELINE.next(&[held, lane(New)]), [0; 0]);
        let held = InLane { is_held: true, is_ready: false, ..lane(New) };
        assert_eq!(PIPELINE.next(&[held, lane(New)]), [0; 0]);
    }

    #[test]
    fn batch_that_may_be_overtaken_is_overtaken() {
        let parked = InLane { is_ready: false, may_be_overtaken: true, ..lane(Delayed) };
        assert_eq!(InOrder::SERIAL.next(&[parked, lane(New)]), [1]);
        let first = InLane { goes_first: true, ..lane(New) };
        assert_eq!(InOrder::SERIAL.next(&[parked, lane(New), first]), [2]);
        let first = InLane { is_ready: false, goes_first: true, ..lane(Delayed) };
        assert_eq!(InOrder::SERIAL.next(&[lane(New), first]), [0; 0]);
    }

    #[test]
    fn by_conflict_sends_all_that_are_free() {
        let blocked = InLane { is_blocked: true, ..lane(New) };
        let lanes = [lane(Pending), lane(New), blocked, lane(Absent)];
        assert_eq!(ByConflict { lanes: 9, list: 1 }.next(&lanes), [1, 3]);
    }

    const LISTS: ByConflict = ByConflict { lanes: 9, list: 3 };

    #[test]
    fn list_begins_with_the_first_batch_and_needs_a_conflict() {
        let blocked = |state| InLane { is_blocked: true, ..lane(state) };
        let new = lane(New);
        assert_eq!(LISTS.list(&[new, new]), 0, "each is sent by itself");
        assert_eq!(LISTS.list(&[new, blocked(New), new, blocked(New)]), 3);
        assert_eq!(LISTS.list(&[lane(Pending), blocked(New)]), 0);
        assert_eq!(LISTS.list(&[new, blocked(New), lane(InDoubt), blocked(New)]), 2);
        let late = InLane { may_arrive_late: true, ..lane(Absent) };
        assert_eq!(LISTS.list(&[late, blocked(New)]), 0);
        assert_eq!(ByConflict { lanes: 9, list: 1 }.list(&[new, blocked(New)]), 0);
    }

    #[test]
    fn lost_batch_waits_for_the_rest_of_its_list() {
        let blocked = |state| InLane { is_blocked: true, ..lane(state) };
        assert_eq!(LISTS.next(&[lane(Absent), blocked(Pending), lane(New)]), [2]);
        assert_eq!(LISTS.next(&[lane(Absent), blocked(Absent), lane(New)]), [0, 2]);
        assert_eq!(LISTS.list(&[lane(Absent), blocked(Absent), blocked(Pending)]), 0);
    }

    #[test]
    fn held_batches_take_no_lanes_up_to_a_limit() {
        let strategy = ByConflict { lanes: 2, list: 1 };
        assert_eq!(strategy.room(LaneCounts { busy: 5, held: 4 }), 1);
        assert_eq!(strategy.room(LaneCounts { busy: 21, held: 21 }), 1);
        assert_eq!(strategy.room(LaneCounts { busy: 22, held: 22 }), 0);
    }

    #[test]
    fn only_what_conflicts_may_follow_in_a_window() {
        let all = [
            None,
            Some(BlockedBy::Conflict),
            Some(BlockedBy::Dependency),
            Some(BlockedBy::Missing),
        ];
        let may_follow = |strategy: &dyn Strategy| all.map(|it| strategy.may_follow(it));
        assert_eq!(may_follow(&InOrder::SERIAL), [true, false, false, false]);
        assert_eq!(may_follow(&PIPELINE), [true, true, false, false]);
        assert_eq!(may_follow(&ByConflict { lanes: 9, list: 1 }), [true, false, false, false]);
        assert_eq!(may_follow(&LISTS), [true, true, false, false]);
    }

    #[test]
    fn reason_is_the_first_thing_that_must_happen() {
        let conflict = Some(BlockedBy::Conflict);
        let (in_order, by_conflict) = (PIPELINE, ByConflict { lanes: 9, list: 1 });
        assert_eq!(in_order.waits_for(conflict, false), WaitKind::Earlier);
        assert_eq!(in_order.waits_for(Some(BlockedBy::Missing), false), WaitKind::Missing);
        assert_eq!(in_order.waits_for(Some(BlockedBy::Dependency), true), WaitKind::Halt);
        assert_eq!(by_conflict.waits_for(conflict, false), WaitKind::Conflict);
        assert_eq!(by_conflict.waits_for(None, false), WaitKind::Lane);
        assert!(in_order.is_stopped(2, Some(1)) && !in_order.is_stopped(1, Some(2)));
        assert!(!by_conflict.is_stopped(2, Some(1)));
    }
}
