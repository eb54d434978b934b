//! The strategies beyond serial, as functions of the open batches of a service.

use grid_batch_core::batches::{
    AddressPrefix, BatchState, DeclaredAccess, Hold, Progress, StoredBatch,
};
use grid_batch_core::queue::{Scheduling, StrategyKind};
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_queuer::{Dependency, Next, OpenBatch, WaitsFor, schedule};
use proptest::{collection::vec, prelude::*, sample::select};

use BatchState::{Absent, Delayed, InDoubt, Invalid, New, Pending, Submitting, Valid};
use Next::{EndAsInvalid, Submit, Wait};

const NOW: Timestamp = Timestamp::from_micros(1_000);

fn id(number: usize) -> ItemId {
    ItemId::from_bytes([number as u8; 64])
}

/// A batch that writes below a prefix.
#[derive(Debug, Clone)]
struct Owned {
    stored: StoredBatch,
    access: DeclaredAccess,
    has_position: bool,
    halts: bool,
}

fn stored(number: usize, state: BatchState) -> StoredBatch {
    StoredBatch {
        progress: Progress { state, attempts: u32::from(state != New), ..Progress::NEW },
        ..StoredBatch::new(
            "global".parse().unwrap(),
            id(number),
            Timestamp::from_micros(number as i64),
        )
    }
}

fn writes(number: usize, prefix: &str, state: BatchState) -> Owned {
    let access = DeclaredAccess::new([], [AddressPrefix::new(prefix)], []);
    Owned { stored: stored(number, state), access, has_position: true, halts: state == Invalid }
}

fn depends_on(dependency: ItemId, mut owned: Owned) -> Owned {
    owned.access = DeclaredAccess::new([], owned.access.writes().to_vec(), [dependency]);
    owned
}

fn open(owned: &Owned) -> OpenBatch<'_> {
    let Owned { stored, access, has_position, halts } = owned;
    let position = has_position.then_some(stored.created_at);
    OpenBatch { batch: stored, position, access, halts: *halts }
}

/// What is next with these lanes, if every dependency was applied.
fn next(strategy: StrategyKind, lanes: u32, batches: &[Owned]) -> Vec<Next<'_>> {
    next_after(strategy, lanes, batches, &|_| Dependency::Applied)
}

fn next_after<'a>(
    strategy: StrategyKind,
    lanes: u32,
    batches: &'a [Owned],
    dependency: &dyn Fn(ItemId) -> Dependency,
) -> Vec<Next<'a>> {
    let open: Vec<_> = batches.iter().map(open).collect();
    schedule(Scheduling { strategy, lanes, ..Scheduling::SERIAL }, &open, dependency, NOW)
}

fn parallel(batches: &[Owned]) -> Vec<Next<'_>> {
    next(StrategyKind::Parallel, 9, batches)
}

fn pipeline(batches: &[Owned]) -> Vec<Next<'_>> {
    next(StrategyKind::Pipeline, 9, batches)
}

#[test]
fn parallel_submits_what_does_not_conflict() {
    let batches = [writes(1, "aa", New), writes(2, "bb", New), writes(3, "aa00", New)];
    let conflict = Wait(WaitsFor::Conflict(&batches[0].stored));
    assert_eq!(parallel(&batches), [Submit, Submit, conflict]);
}

#[test]
fn parallel_waits_for_conflicting_batches_in_any_open_state() {
    for state in [New, Submitting, InDoubt, Pending, Valid, Delayed, Absent] {
        let batches = [writes(1, "aa", state), writes(2, "aa", New)];
        let conflict = Wait(WaitsFor::Conflict(&batches[0].stored));
        assert_eq!(parallel(&batches)[1], conflict, "{state}");
    }
}

#[test]
fn parallel_names_the_latest_conflicting_batch() {
    let batches = [writes(1, "aa", Pending), writes(2, "", New), writes(3, "aa", New)];
    assert_eq!(parallel(&batches)[2], Wait(WaitsFor::Conflict(&batches[1].stored)));
}

#[test]
fn batch_whose_dependency_came_late_waits_for_later_ones() {
    for state in [Submitting, InDoubt, Pending, Valid] {
        let batches = [depends_on(id(7), writes(1, "aa", New)), writes(2, "aa", state)];
        let later = Wait(WaitsFor::Later(&batches[1].stored));
        assert_eq!(parallel(&batches), [later, Wait(WaitsFor::Result)], "{state}");
    }
}

#[test]
fn held_or_delayed_batch_stops_only_what_conflicts() {
    let hold = Hold { since: NOW, reason: "look first".to_owned(), until_decision: true };
    let mut batches = [writes(1, "aa", New), writes(2, "bb", Delayed)].to_vec();
    batches[0].stored.held = Some(hold);
    let later = Timestamp::from_micros(2_000);
    batches[1].stored.next_try_at = Some(later);
    batches.extend([writes(3, "aa", New), writes(4, "cc", New)]);
    let conflict = Wait(WaitsFor::Conflict(&batches[0].stored));
    let own = [Wait(WaitsFor::Hold), Wait(WaitsFor::Delay(later))];
    assert_eq!(parallel(&batches), [own[0], own[1], conflict, Submit]);
}

#[test]
fn lanes_limit_how_many_are_under_way() {
    let batches = [
        writes(4, "dd", New),
        writes(3, "cc", New),
        writes(2, "bb", New),
        writes(1, "aa", Pending),
    ];
    let wait = Wait(WaitsFor::Lane);
    let result = Wait(WaitsFor::Result);
    assert_eq!(next(StrategyKind::Parallel, 2, &batches), [wait, wait, Submit, result]);
    assert_eq!(next(StrategyKind::Parallel, 1, &batches), [wait, wait, wait, result]);
}

#[test]
fn batch_that_was_tried_keeps_its_lane() {
    let batches = [writes(1, "aa", New), writes(2, "bb", Absent)];
    assert_eq!(next(StrategyKind::Parallel, 1, &batches), [Wait(WaitsFor::Lane), Submit]);
}

#[test]
fn serial_waits_for_every_earlier_batch() {
    let batches = [writes(1, "aa", Pending), writes(2, "bb", New), writes(3, "cc", New)];
    let earlier = |at: usize| Wait(WaitsFor::Earlier(&batches[at].stored));
    let result = Wait(WaitsFor::Result);
    assert_eq!(next(StrategyKind::Serial, 1, &batches), [result, earlier(0), earlier(1)]);
}

#[test]
fn pipeline_submits_one_behind_those_at_the_ledger() {
    for state in [Pending, Valid] {
        let batches = [writes(1, "aa", state), writes(2, "aa", New), writes(3, "bb", New)];
        let earlier = Wait(WaitsFor::Earlier(&batches[1].stored));
        assert_eq!(pipeline(&batches), [Wait(WaitsFor::Result), Submit, earlier]);
    }
    for state in [Submitting, InDoubt, Delayed, Absent] {
        let batches = [writes(1, "aa", state), writes(2, "bb", New)];
        assert_eq!(pipeline(&batches)[1], Wait(WaitsFor::Earlier(&batches[0].stored)), "{state}");
    }
}

#[test]
fn pipeline_sends_lost_batches_again_in_order() {
    let mut batches = vec![writes(1, "aa", Absent), writes(2, "bb", Pending), writes(3, "cc", New)];
    let earlier = Wait(WaitsFor::Earlier(&batches[0].stored));
    let later = Wait(WaitsFor::Later(&batches[1].stored));
    assert_eq!(pipeline(&batches), [later, Wait(WaitsFor::Result), earlier]);

    batches[1] = writes(2, "bb", Absent);
    let [first, second] = [0, 1].map(|at| Wait(WaitsFor::Earlier(&batches[at].stored)));
    assert_eq!(pipeline(&batches), [Submit, first, second]);
}

#[test]
fn dependent_waits_for_its_dependency_in_each_strategy() {
    for strategy in StrategyKind::ALL {
        let batches = [depends_on(id(7), writes(5, "bb", New))];
        let next = |found| next_after(strategy, 1, &batches, &move |_| found)[0];
        assert_eq!(next(Dependency::Applied), Submit, "{strategy:?}");
        assert_eq!(next(Dependency::Open(id(3))), Wait(WaitsFor::DependsOn(id(3))));
        assert_eq!(next(Dependency::Missing), Wait(WaitsFor::Missing(id(7))));
        assert_eq!(next(Dependency::Unanswered), Wait(WaitsFor::Ledger(id(7))));
        assert_eq!(next(Dependency::Invalid), EndAsInvalid(id(7)));
    }
}

#[test]
fn batch_without_a_position_stops_no_other() {
    for strategy in StrategyKind::ALL {
        let mut first = depends_on(id(7), writes(1, "aa", New));
        first.has_position = false;
        let batches = [first, writes(2, "aa", New)];
        let next = next_after(strategy, 9, &batches, &|_| Dependency::Missing);
        assert_eq!(next, [Wait(WaitsFor::Missing(id(7))), Submit], "{strategy:?}");
    }
}

#[test]
fn halt_stops_what_follows_or_conflicts() {
    let batches = [writes(1, "aa", Invalid), writes(2, "bb", New), writes(3, "aa", New)];
    let halt = Wait(WaitsFor::Halt(&batches[0].stored));
    assert_eq!(next(StrategyKind::Parallel, 1, &batches), [halt, Submit, halt]);
    assert_eq!(next(StrategyKind::Serial, 1, &batches), [halt; 3]);
    assert_eq!(pipeline(&batches), [halt; 3]);
}

#[test]
fn text_names_what_a_batch_waits_for() {
    let batches = [writes(0xab, "aa", Pending), writes(0xac, "aa", New)];
    let Wait(waits_for) = parallel(&batches)[1] else { panic!("it may be submitted") };
    assert_eq!(
        waits_for.to_string(),
        format!("the batch {}, which it conflicts with", "ab".repeat(64))
    );
}

fn any_batches() -> impl proptest::strategy::Strategy<Value = Vec<Owned>> {
    let state = select(vec![New, New, New, Submitting, InDoubt, Pending, Valid, Delayed, Absent]);
    vec((state, "([0-1]{2}){0,2}"), 0..9).prop_map(|batches| {
        let batches = batches.into_iter().enumerate();
        let owned = batches.map(|(number, (state, prefix))| writes(number, &prefix, state));
        owned.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn parallel_is_as_parallel_as_it_may_be(batches in any_batches(), lanes in 1..9u32) {
        let conflicts = |one: usize, other: usize| {
            batches[one].access.conflicts_with(&batches[other].access)
        };
        let tried = batches.iter().filter(|batch| batch.stored.progress.state != New).count();
        let next = next(StrategyKind::Parallel, lanes, &batches);
        let submitted = |at: &usize| next[*at] == Submit;
        let new = (0..batches.len())
            .filter(|at| submitted(at) && batches[*at].stored.progress.state == New)
            .count();
        prop_assert!(new <= (lanes as usize).saturating_sub(tried));
        // They have lanes and wait for batches of a list that they do not conflict with.
        let stopped = (0..batches.len())
            .filter(|&at| {
                let state = |at: usize| batches[at].stored.progress.state;
                let in_flight = |&other: &usize| conflicts(at, other) && state(other).submitted();
                state(at) == New
                    && matches!(next[at], Wait(WaitsFor::Later(_)))
                    && !(at + 1..batches.len()).any(|other| in_flight(&other))
            })
            .count();
        for (at, &next_of) in next.iter().enumerate() {
            let earlier = (0..at).filter(|&other| conflicts(at, other)).max();
            match next_of {
                Submit => prop_assert_eq!(earlier, None),
                Wait(WaitsFor::Conflict(other)) => {
                    prop_assert_eq!(earlier, Some(other.created_at.as_micros() as usize));
                }
                Wait(WaitsFor::Lane) => {
                    prop_assert_eq!(new + stopped, (lanes as usize).saturating_sub(tried));
                }
                Wait(WaitsFor::Later(other)) => {
                    let later = other.created_at.as_micros() as usize;
                    prop_assert!(earlier.is_none() && later > at);
                    // It may be of a list: lost batches wait for all behind them.
                    prop_assert!((0..later).any(|it| conflicts(it, later)));
                    prop_assert!(other.progress.state.submitted());
                }
                other => prop_assert_eq!(other, Wait(WaitsFor::Result)),
            }
        }
    }
}
