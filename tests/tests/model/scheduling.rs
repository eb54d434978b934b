//! Which batches of a service are in lanes, and which are sent next, by core's strategies.

use grid_batch_core::batches::BatchState;
use grid_batch_core::queue::{
    AnyStrategy, BlockedBy, ByConflict, InLane, InOrder, LaneCounts, Strategy, StrategyKind,
};

use crate::{protocol::ResendRule, state::Service};

impl Service {
    /// The rule with the longest lists. Shorter ones are always possible, because their size may change at any time.
    fn rule(&self) -> AnyStrategy {
        let Self { strategy, lanes, list, .. } = *self;
        match strategy {
            StrategyKind::Serial => AnyStrategy::InOrder(InOrder::SERIAL),
            StrategyKind::Pipeline => AnyStrategy::InOrder(InOrder { window: lanes }),
            StrategyKind::Parallel => AnyStrategy::ByConflict(ByConflict { lanes, list }),
        }
    }

    /// What must end before this batch is sent.
    fn blocked_by(&self, batch: usize) -> Option<BlockedBy> {
        let relations = self.batches[batch].relations;
        let mut open = (0..batch).filter(|&other| {
            relations.waits_for.contains(other) && !self.batches[other].has_ended()
        });
        let blocker = open.next()?;
        let is_dependency = |other| relations.dependencies.contains(other);
        Some(if is_dependency(blocker) || open.any(is_dependency) {
            BlockedBy::Dependency
        } else {
            BlockedBy::Conflict
        })
    }

    /// Whether it may have been sent in a list with one behind it that may be at the ledger, or behind one of the list.
    pub fn is_listed(&self, batch: usize) -> bool {
        let is_sent_in_list = |other: usize| {
            self.batches[other].progress.state.submitted() && self.blocked_by(other).is_some()
        };
        self.batches[batch].progress.state == BatchState::InDoubt
            && (batch..self.batches.len()).any(is_sent_in_list)
    }

    /// The batches in lanes, in order: those that were tried, the first ones that wait for no other, and those that may
    /// follow them in a list.
    pub fn in_lanes(&self) -> Vec<usize> {
        let rule = self.rule();
        let is_open = |batch: &usize| !self.batches[*batch].has_ended();
        let open = (0..self.batches.len()).filter(is_open);
        let (mut lanes, new): (Vec<usize>, Vec<usize>) =
            open.partition(|&batch| self.batches[batch].was_tried());
        let held = lanes.iter().filter(|&&batch| self.batches[batch].is_held).count();
        let room = rule.room(LaneCounts { busy: lanes.len(), held });
        let (free, blocked): (Vec<usize>, Vec<usize>) =
            new.into_iter().partition(|&batch| self.blocked_by(batch).is_none());
        let may_follow = |batch: &usize| rule.may_follow(self.blocked_by(*batch));
        lanes.extend(free.into_iter().chain(blocked.into_iter().take_while(may_follow)).take(room));
        lanes.sort_unstable();
        lanes
    }

    /// The batches of which each may be sent by itself, and those that may be sent in one request.
    pub fn next(&self, resend: ResendRule) -> (Vec<usize>, Vec<usize>) {
        let (rule, batches) = (self.rule(), self.in_lanes());
        let lanes: Vec<InLane> = batches.iter().map(|&batch| self.lane(batch, resend)).collect();
        let next = rule.next(&lanes).into_iter().map(|at| batches[at]).collect();
        (next, batches[..rule.list(&lanes)].to_vec())
    }

    fn lane(&self, number: usize, resend: ResendRule) -> InLane {
        let batch = &self.batches[number];
        let state = batch.progress.state;
        let is_hidden = match resend {
            ResendRule::InOrder => false,
            ResendRule::FirstAtOnce => state.submitted(),
            ResendRule::Each => state == BatchState::Absent,
        };
        InLane {
            state,
            is_ready: state.awaits_queuer() && !batch.is_held,
            is_held: batch.is_held,
            is_blocked: self.blocked_by(number).is_some() && !is_hidden,
            may_arrive_late: batch.progress.earlier_may_arrive,
            ..InLane::NEW
        }
    }
}
