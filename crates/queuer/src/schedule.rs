//! The strategies, as functions of the open batches of one service. They are the specification of what a
//! store does with an index.

use grid_batch_core::{BatchState, ItemId, Scheduling, StoredBatch, Strategy, Timestamp};

use crate::{Dependency, Next, OpenBatch, WaitsFor};

/// What happens next to each of the open batches of one service, in the order of `batches`.
///
/// - [`Serial`](Strategy::Serial): a batch waits for all earlier ones. If later ones are under way, because the
///   strategy was another one before, it waits for these too.
/// - [`Parallel`](Strategy::Parallel): a batch waits for the earlier ones that it conflicts with.
/// - [`Pipeline`](Strategy::Pipeline): a batch waits until the ledger has accepted all earlier ones. One that
///   was lost also waits for the later ones that the ledger may have.
///
/// In each strategy, a batch first waits for the batches that it depends on. Of several that it waits
/// for, the latest is named. `lanes` limits how many were tried or are next; those that were tried before
/// keep their lanes, and the earliest of the others get the rest.
///
/// ```
/// use grid_batch_core::{AddressPrefix, DeclaredAccess, Scheduling, Strategy};
/// # use grid_batch_core::{ItemId, Progress, StoredBatch, Timestamp};
/// use grid_batch_queuer::{Dependency, Next, OpenBatch, WaitsFor, schedule};
///
/// # let stored = |number: u8| StoredBatch {
/// #     service_id: "global".parse().unwrap(),
/// #     batch_id: ItemId::from_bytes([number; 64]),
/// #     created_at: Timestamp::from_micros(number.into()),
/// #     progress: Progress::NEW,
/// #     submitted_at: None,
/// #     since: None,
/// #     checked_at: None,
/// #     next_try_at: None,
/// #     parked: false,
/// #     last_error: None,
/// #     held: None,
/// #     ended_at: None,
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
/// assert_eq!(next(Strategy::Parallel), [Next::Submit, conflict, Next::Submit]);
/// let [first, second] = [0, 1].map(|number| Next::Wait(WaitsFor::Earlier(&stored[number])));
/// assert_eq!(next(Strategy::Serial), [Next::Submit, first, second]);
/// ```
pub fn schedule<'a>(
    scheduling: Scheduling,
    batches: &[OpenBatch<'a>],
    dependency: &dyn Fn(ItemId) -> Dependency,
    now: Timestamp,
) -> Vec<Next<'a>> {
    let tried = batches.iter().filter(|batch| was_tried(batch)).count();
    let mut lanes = (scheduling.lanes as usize).saturating_sub(tried);
    let mut next_of = |open: &OpenBatch<'a>| {
        let blocked = under_way(open)
            .or_else(|| after_dependencies(open, dependency))
            .or_else(|| after_others(scheduling.strategy, open, batches).map(Next::Wait));
        if let Some(blocked) = blocked {
            return blocked;
        }
        if !was_tried(open) {
            match lanes.checked_sub(1) {
                Some(left) => lanes = left,
                None => return Next::Wait(WaitsFor::Lane),
            }
        }
        by_itself(open, now)
    };
    let mut order: Vec<usize> = (0..batches.len()).collect();
    order.sort_by_key(|&at| batches[at].position);
    let mut next: Vec<_> = order.into_iter().map(|at| (at, next_of(&batches[at]))).collect();
    next.sort_by_key(|(at, _)| *at);
    next.into_iter().map(|(_, next)| next).collect()
}

/// Whether it was with a submitter, so that it has a lane.
fn was_tried(open: &OpenBatch<'_>) -> bool {
    open.batch.progress.state != BatchState::New && !open.halts
}

fn under_way<'a>(open: &OpenBatch<'a>) -> Option<Next<'a>> {
    match open.halts {
        true => Some(Next::Wait(WaitsFor::Halt(open.batch))),
        false => open.is_in_flight().then_some(Next::Wait(WaitsFor::Result)),
    }
}

/// What the transactions that it depends on mean for a batch that was not tried yet.
fn after_dependencies<'a>(
    open: &OpenBatch<'a>,
    dependency: &dyn Fn(ItemId) -> Dependency,
) -> Option<Next<'a>> {
    if was_tried(open) {
        return None;
    }
    let found: Vec<_> = open.access.dependencies().iter().map(|&id| (id, dependency(id))).collect();
    let first = |wanted: fn(ItemId, Dependency) -> Option<Next<'a>>| {
        found.iter().find_map(|&(id, found)| wanted(id, found))
    };
    first(|id, found| (found == Dependency::Invalid).then_some(Next::EndAsInvalid(id)))
        .or_else(|| {
            first(|id, found| {
                (found == Dependency::Missing).then_some(Next::Wait(WaitsFor::Missing(id)))
            })
        })
        .or_else(|| {
            first(|id, found| {
                (found == Dependency::Unanswered).then_some(Next::Wait(WaitsFor::Ledger(id)))
            })
        })
        .or_else(|| {
            first(|_, found| match found {
                Dependency::Open(batch_id) => Some(Next::Wait(WaitsFor::DependsOn(batch_id))),
                _ => None,
            })
        })
}

/// Which other batch of its service it waits for.
fn after_others<'a>(
    strategy: Strategy,
    open: &OpenBatch<'a>,
    batches: &[OpenBatch<'a>],
) -> Option<WaitsFor<'a>> {
    let latest = |wanted: &dyn Fn(&OpenBatch<'a>) -> bool| {
        let earlier = batches.iter().filter(|other| is_before(other, open) && wanted(other));
        earlier.max_by_key(|other| other.position)
    };
    let after = |other: &OpenBatch<'a>, otherwise: fn(&'a StoredBatch) -> WaitsFor<'a>| {
        if other.halts { WaitsFor::Halt(other.batch) } else { otherwise(other.batch) }
    };
    let later_in_flight = || {
        let mut later = batches.iter().filter(|other| is_before(open, other));
        later.find(|other| other.is_in_flight()).map(|other| WaitsFor::Later(other.batch))
    };
    match strategy {
        Strategy::Serial => {
            latest(&|_| true).map(|other| after(other, WaitsFor::Earlier)).or_else(later_in_flight)
        }
        Strategy::Parallel => latest(&|other| other.access.conflicts_with(open.access))
            .map(|other| after(other, WaitsFor::Conflict)),
        Strategy::Pipeline => latest(&|other| !is_at_ledger(other))
            .map(|other| after(other, WaitsFor::Earlier))
            .or_else(later_in_flight),
    }
}

fn is_before(one: &OpenBatch<'_>, other: &OpenBatch<'_>) -> bool {
    one.position.is_some_and(|position| Some(position) < other.position)
}

/// Whether the ledger has accepted it and not lost it.
fn is_at_ledger(open: &OpenBatch<'_>) -> bool {
    matches!(open.batch.progress.state, BatchState::Pending | BatchState::Valid)
}

/// What keeps back a batch that waits for no other one.
fn by_itself<'a>(open: &OpenBatch<'a>, now: Timestamp) -> Next<'a> {
    match open.batch.next_try_at {
        _ if open.batch.held.is_some() => Next::Wait(WaitsFor::Hold),
        Some(at) if at > now => Next::Wait(WaitsFor::Delay(at)),
        _ => Next::Submit,
    }
}
