//! The one-round serial strategy, compared with the steps in its specification.

use std::sync::LazyLock;

use grid_batch_core::batches::{BatchState, DeclaredAccess, Hold, Progress, StoredBatch};
use grid_batch_core::queue::Scheduling;
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_queuer::{Dependency, Next, OpenBatch, WaitsFor, schedule};
use proptest::{collection::vec, prelude::*, sample::select};

use BatchState::{Absent, Committed, Delayed, InDoubt, Invalid, New, Pending, Submitting, Valid};

const NOW: Timestamp = Timestamp::from_micros(1_000);

fn batch(number: u8, state: BatchState, created_at: i64) -> StoredBatch {
    StoredBatch {
        progress: Progress { state, attempts: u32::from(state != New), ..Progress::NEW },
        ..StoredBatch::new(
            "a::b".parse().unwrap(),
            ItemId::from_bytes([number; 64]),
            Timestamp::from_micros(created_at),
        )
    }
}

fn delayed(number: u8, until: i64) -> StoredBatch {
    let next_try_at = Some(Timestamp::from_micros(until));
    StoredBatch { next_try_at, ..batch(number, Delayed, i64::from(number)) }
}

/// What is next for each batch. Those that have ended are left out.
fn next(batches: &[StoredBatch]) -> Vec<(&StoredBatch, Next<'_>)> {
    static ACCESS: LazyLock<DeclaredAccess> = LazyLock::new(DeclaredAccess::everything);
    let open = batches.iter().filter(|batch| !batch.progress.state.is_terminal());
    let open = open.map(|batch| OpenBatch {
        batch,
        position: Some(batch.created_at),
        access: &ACCESS,
        halts: false,
    });
    let open: Vec<OpenBatch<'_>> = open.collect();
    let next = schedule(Scheduling::SERIAL, &open, &|_| Dependency::Applied, NOW);
    open.iter().map(|open| open.batch).zip(next).collect()
}

fn chosen_id(batches: &[StoredBatch]) -> Option<ItemId> {
    let mut next = next(batches).into_iter().filter(|(_, next)| *next == Next::Submit);
    let chosen = next.next().map(|(batch, _)| batch.batch_id);
    assert_eq!(next.next(), None, "one at a time");
    chosen
}

/// The number of the chosen batch.
fn chosen(batches: &[StoredBatch]) -> Option<u8> {
    chosen_id(batches).map(|id| id.as_bytes()[0])
}

/// What these batches wait for.
fn waits(batches: &[StoredBatch]) -> Vec<WaitsFor<'_>> {
    let wait = |(_, next)| match next {
        Next::Wait(waits_for) => waits_for,
        next => panic!("it does not wait: {next:?}"),
    };
    next(batches).into_iter().map(wait).collect()
}

// Queue now.

#[test]
fn new_batch_of_a_free_service_is_queued() {
    assert_eq!(chosen(&[batch(1, New, 1)]), Some(1));
}

#[test]
fn absent_batch_is_queued() {
    assert_eq!(chosen(&[batch(2, Absent, 2), batch(1, New, 1)]), Some(2));
}

#[test]
fn delayed_batch_is_queued_when_its_delay_has_ended() {
    assert_eq!(chosen(&[delayed(2, 1_000), batch(1, New, 1)]), Some(2));
}

// Queue later.

#[test]
fn held_batch_waits_and_blocks_later_ones() {
    let hold = Hold { since: NOW, reason: "look first".to_owned(), until_decision: true };
    let held = |state| StoredBatch { held: Some(hold.clone()), ..batch(1, state, 1) };
    for state in [New, Delayed, Absent] {
        let batches = [held(state), batch(2, New, 2)];
        assert_eq!(waits(&batches), [WaitsFor::Hold, WaitsFor::Earlier(&batches[0])]);
    }
}

#[test]
fn delayed_batch_waits_for_the_end_of_its_delay() {
    let batches = [delayed(1, 1_001)];
    let then = Timestamp::from_micros(1_001);
    assert_eq!(waits(&batches), [WaitsFor::Delay(then)]);
}

#[test]
fn new_batch_waits_for_a_delayed_one() {
    assert_eq!(chosen(&[delayed(1, 1_001), batch(2, New, 2)]), None);
}

#[test]
fn new_batch_waits_for_one_in_flight() {
    for state in [Submitting, InDoubt, Pending, Valid] {
        let batches = [batch(1, state, 1), batch(2, New, 2)];
        let earlier = WaitsFor::Earlier(&batches[0]);
        assert_eq!(waits(&batches), [WaitsFor::Result, earlier], "{state}");
        assert_eq!(chosen(&[batch(1, New, 1), batch(2, state, 2)]), None, "{state}");
    }
}

#[test]
fn new_batch_waits_for_an_absent_one() {
    assert_eq!(chosen(&[batch(1, New, 1), batch(2, Absent, 2)]), Some(2));
}

// Never queue.

#[test]
fn pending_batch_is_not_queued() {
    assert_eq!(chosen(&[batch(1, Pending, 1)]), None);
}

#[test]
fn valid_batch_is_not_queued() {
    assert_eq!(chosen(&[batch(1, Valid, 1)]), None);
}

#[test]
fn invalid_batch_is_not_queued_and_blocks_nothing() {
    assert_eq!(chosen(&[batch(1, Invalid, 1)]), None);
    assert_eq!(chosen(&[batch(1, Invalid, 1), batch(2, New, 2)]), Some(2));
}

#[test]
fn committed_batch_is_not_queued_and_blocks_nothing() {
    assert_eq!(chosen(&[batch(1, Committed, 1)]), None);
    assert_eq!(chosen(&[batch(1, Committed, 1), batch(2, New, 2)]), Some(2));
}

#[test]
fn batch_with_a_submitter_is_not_queued() {
    assert_eq!(chosen(&[batch(1, Submitting, 1)]), None);
}

#[test]
fn batch_in_doubt_is_not_queued() {
    assert_eq!(chosen(&[batch(1, InDoubt, 1)]), None);
}

// Order.

#[test]
fn oldest_new_batch_is_queued() {
    assert_eq!(chosen(&[batch(1, New, 3), batch(2, New, 1), batch(3, New, 2)]), Some(2));
}

#[test]
fn smallest_id_breaks_a_tie() {
    assert_eq!(chosen(&[batch(3, New, 1), batch(2, New, 1), batch(4, New, 1)]), Some(2));
}

#[test]
fn service_without_open_batches_waits() {
    assert_eq!(chosen(&[]), None);
    assert_eq!(chosen(&[batch(1, Committed, 1)]), None);
}

/// The steps of the strategy's specification, for one service. In addition, a batch that is with a submitter blocks its
/// service.
fn choose_by_document(all: &[StoredBatch], now: Timestamp) -> Option<ItemId> {
    // 1. All batches that are not committed, valid or invalid.
    let has = |state| all.iter().any(|batch| batch.progress.state == state);
    let mut batch_list: Vec<&StoredBatch> = all
        .iter()
        .filter(|batch| ![Committed, Valid, Invalid].contains(&batch.progress.state))
        .collect();
    batch_list.sort_by_key(|batch| (batch.created_at, batch.batch_id));
    if has(Submitting) || has(InDoubt) || has(Pending) || has(Valid) {
        return None;
    }
    // 2. and 3. The queue begins with the unknown batches,
    let mut batch_queue: Vec<&StoredBatch> = Vec::new();
    batch_queue.extend(batch_list.iter().filter(|batch| batch.progress.state == Absent));
    // 4. then the delayed batches whose delay window has ended.
    let due = |batch: &&&StoredBatch| {
        batch.progress.state == Delayed && batch.next_try_at.is_none_or(|at| at <= now)
    };
    batch_queue.extend(batch_list.iter().filter(due));
    // 5. A service with a pending, unknown or delayed batch is excluded.
    if !has(Pending) && !has(Absent) && !has(Delayed) {
        // 6. The oldest batch of each other service; the header breaks a tie.
        batch_queue.extend(batch_list.first());
    }
    batch_queue.first().map(|batch| batch.batch_id)
}

/// Batches of a service, of which at most one is neither new nor ended, as the strategy ensures.
fn service_batches() -> impl Strategy<Value = Vec<StoredBatch>> {
    let new_or_ended = (any::<u8>(), select(vec![New, New, Invalid, Committed]), 0..4i64)
        .prop_map(|(number, state, at)| batch(number, state, at));
    let any_state =
        (any::<u8>(), select(BatchState::ALL.to_vec()), 0..4i64, prop::option::of(998..1_003i64))
            .prop_map(|(number, state, at, until)| StoredBatch {
                next_try_at: until.filter(|_| state == Delayed).map(Timestamp::from_micros),
                ..batch(number, state, at)
            });
    (vec(new_or_ended, 0..6), prop::option::of(any_state)).prop_map(|(mut batches, any_state)| {
        batches.extend(any_state);
        batches
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn choice_is_that_of_the_document(batches in service_batches().prop_shuffle()) {
        prop_assert_eq!(chosen_id(&batches), choose_by_document(&batches, NOW));
    }
}
