use std::fmt;

use grid_batch_core::{BatchState, StoredBatch, Timestamp};

/// What the strategy chooses for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<'a> {
    /// This batch may be submitted now.
    Take(&'a StoredBatch),
    /// No batch may be submitted now.
    Wait(WaitReason<'a>),
}

/// Why no batch of a service may be submitted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason<'a> {
    /// The service has no open batch.
    NoOpenBatch,
    /// This batch must end first: it is, or may be, with a submitter or at the ledger.
    InFlight(&'a StoredBatch),
    /// This batch is held by an operator, and no other batch of the service may be submitted before it.
    Held(&'a StoredBatch),
    /// This batch is submitted again at this time, before any other batch of the service.
    Delayed(&'a StoredBatch, Timestamp),
}

impl fmt::Display for WaitReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOpenBatch => f.write_str("the service has no open batch"),
            Self::InFlight(batch) => {
                write!(f, "the batch {} is {}", batch.batch_id, batch.progress.state)
            }
            Self::Held(batch) => write!(f, "the batch {} is held", batch.batch_id),
            Self::Delayed(batch, _) => write!(f, "the batch {} is delayed", batch.batch_id),
        }
    }
}

/// The one-round serial strategy: chooses the next batch among the open batches of one service.
///
/// While a batch is in flight, held or delayed, no other batch of the service is submitted. A batch that
/// was tried before is submitted again before new ones, when its delay has ended. Then the oldest new
/// batch is next; among batches created at the same time, the one with the smallest id.
///
/// The batches may be in any order, and may include batches that have ended.
pub fn choose(batches: &[StoredBatch], now: Timestamp) -> Choice<'_> {
    let order = |batch: &&StoredBatch| (batch.created_at, batch.batch_id);
    let first = |wanted: fn(&StoredBatch) -> bool| {
        batches.iter().filter(|batch| wanted(batch)).min_by_key(order)
    };
    if let Some(batch) = first(is_in_flight) {
        return Choice::Wait(WaitReason::InFlight(batch));
    }
    let tried_before = first(|batch| {
        batch.progress.state.awaits_queuer() && batch.progress.state != BatchState::New
    });
    match tried_before.or_else(|| first(|batch| batch.progress.state == BatchState::New)) {
        None => Choice::Wait(WaitReason::NoOpenBatch),
        Some(batch) if batch.held.is_some() => Choice::Wait(WaitReason::Held(batch)),
        Some(batch) => match batch.next_try_at {
            Some(at) if at > now => Choice::Wait(WaitReason::Delayed(batch, at)),
            _ => Choice::Take(batch),
        },
    }
}

fn is_in_flight(batch: &StoredBatch) -> bool {
    let state = batch.progress.state;
    !state.is_terminal() && !state.awaits_queuer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use BatchState::{
        Absent, Committed, Delayed, InDoubt, Invalid, New, Pending, Submitting, Valid,
    };
    use grid_batch_core::{Hold, ItemId, Progress};
    use proptest::{collection::vec, prelude::*, sample::select};

    const NOW: Timestamp = Timestamp::from_micros(1_000);

    fn batch(number: u8, state: BatchState, created_at: i64) -> StoredBatch {
        StoredBatch {
            service_id: "a::b".parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            created_at: Timestamp::from_micros(created_at),
            progress: Progress { state, attempts: u32::from(state != New), ..Progress::NEW },
            submitted_at: None,
            since: None,
            checked_at: None,
            next_try_at: None,
            parked: false,
            last_error: None,
            held: None,
            ended_at: None,
        }
    }

    fn delayed(number: u8, until: i64) -> StoredBatch {
        let next_try_at = Some(Timestamp::from_micros(until));
        StoredBatch { next_try_at, ..batch(number, Delayed, i64::from(number)) }
    }

    /// The number of the chosen batch.
    fn chosen(batches: &[StoredBatch]) -> Option<u8> {
        match choose(batches, NOW) {
            Choice::Take(batch) => Some(batch.batch_id.as_bytes()[0]),
            Choice::Wait(_) => None,
        }
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
            assert_eq!(choose(&batches, NOW), Choice::Wait(WaitReason::Held(&batches[0])));
        }
    }

    #[test]
    fn delayed_batch_waits_for_the_end_of_its_delay() {
        let batches = [delayed(1, 1_001)];
        let then = Timestamp::from_micros(1_001);
        assert_eq!(choose(&batches, NOW), Choice::Wait(WaitReason::Delayed(&batches[0], then)));
    }

    #[test]
    fn new_batch_waits_for_a_delayed_one() {
        assert_eq!(chosen(&[delayed(1, 1_001), batch(2, New, 2)]), None);
    }

    #[test]
    fn new_batch_waits_for_one_in_flight() {
        for state in [Submitting, InDoubt, Pending, Valid] {
            let batches = [batch(1, New, 1), batch(2, state, 2)];
            let reason = WaitReason::InFlight(&batches[1]);
            assert_eq!(choose(&batches, NOW), Choice::Wait(reason), "{state}");
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
        assert_eq!(choose(&[], NOW), Choice::Wait(WaitReason::NoOpenBatch));
        assert_eq!(choose(&[batch(1, Committed, 1)], NOW), Choice::Wait(WaitReason::NoOpenBatch));
    }

    #[test]
    fn wait_reason_names_its_batch() {
        let batches = [batch(0xab, Pending, 1)];
        let Choice::Wait(reason) = choose(&batches, NOW) else { panic!("a batch was chosen") };
        assert_eq!(reason.to_string(), format!("the batch {} is pending", "ab".repeat(64)));
    }

    /// The steps of the strategy's document, for one service. Beyond it, a batch with a submitter
    /// blocks its service.
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

    /// Batches of a service of which at most one is neither new nor ended, as the strategy ensures.
    fn service_batches() -> impl Strategy<Value = Vec<StoredBatch>> {
        let new_or_ended = (any::<u8>(), select(vec![New, New, Invalid, Committed]), 0..4i64)
            .prop_map(|(number, state, at)| batch(number, state, at));
        let any_state = (
            any::<u8>(),
            select(BatchState::ALL.to_vec()),
            0..4i64,
            prop::option::of(998..1_003i64),
        )
            .prop_map(|(number, state, at, until)| StoredBatch {
                next_try_at: until.filter(|_| state == Delayed).map(Timestamp::from_micros),
                ..batch(number, state, at)
            });
        (vec(new_or_ended, 0..6), prop::option::of(any_state)).prop_map(
            |(mut batches, any_state)| {
                batches.extend(any_state);
                batches
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn choice_is_that_of_the_document(batches in service_batches().prop_shuffle()) {
            let choice = match choose(&batches, NOW) {
                Choice::Take(batch) => Some(batch.batch_id),
                Choice::Wait(_) => None,
            };
            prop_assert_eq!(choice, choose_by_document(&batches, NOW));
        }
    }
}
