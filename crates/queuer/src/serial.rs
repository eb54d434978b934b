use std::fmt;

use grid_batch_core::{BatchState, StoredBatch, Timestamp};

/// What a service's open batches come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<'a> {
    /// This one may be handed to a submitter now.
    Take(&'a StoredBatch),
    /// None may.
    Wait(Reason<'a>),
}

/// Why no batch of a service may be handed to a submitter now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason<'a> {
    /// There is none.
    NothingOpen,
    /// This one must end first: it is with a submitter, or at the ledger, or may be there.
    UnderWay(&'a StoredBatch),
    /// This one is tried again then, before anything else of the service.
    Delayed(&'a StoredBatch, Timestamp),
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingOpen => f.write_str("no batch is open"),
            Self::UnderWay(batch) => {
                write!(f, "the batch {} is {}", batch.batch_id, batch.progress.state)
            }
            Self::Delayed(batch, _) => write!(f, "the batch {} is delayed", batch.batch_id),
        }
    }
}

/// The one-round serial strategy: which of one service's open batches is next, if any.
///
/// A resubmission comes before anything new, once its delay is over; while a batch is under way, or
/// waits out its delay, nothing else of the service moves; else it is the turn of the oldest, and
/// among batches of the same moment that of the smallest id. Batches may stand in any order, and
/// those that have ended may be among them.
pub fn choose(batches: &[StoredBatch], now: Timestamp) -> Choice<'_> {
    let in_order = |batch: &&StoredBatch| (batch.created_at, batch.batch_id);
    let first = |wanted: fn(&StoredBatch) -> bool| {
        batches.iter().filter(|batch| wanted(batch)).min_by_key(in_order)
    };
    if let Some(batch) = first(is_under_way) {
        return Choice::Wait(Reason::UnderWay(batch));
    }
    let tried_before = first(|batch| {
        batch.progress.state.awaits_queuer() && batch.progress.state != BatchState::New
    });
    match tried_before.or_else(|| first(|batch| batch.progress.state == BatchState::New)) {
        None => Choice::Wait(Reason::NothingOpen),
        Some(batch) => match batch.next_try_at {
            Some(then) if then > now => Choice::Wait(Reason::Delayed(batch, then)),
            _ => Choice::Take(batch),
        },
    }
}

fn is_under_way(batch: &StoredBatch) -> bool {
    let state = batch.progress.state;
    !state.is_terminal() && !state.awaits_queuer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use BatchState::{
        Absent, Committed, Delayed, InDoubt, Invalid, New, Pending, Submitting, Valid,
    };
    use grid_batch_core::{HeaderId, Progress};
    use proptest::{collection::vec, prelude::*, sample::select};

    const NOW: Timestamp = Timestamp::from_micros(1_000);

    fn batch(number: u8, state: BatchState, created_at: i64) -> StoredBatch {
        StoredBatch {
            service_id: "a::b".parse().unwrap(),
            batch_id: HeaderId::from_bytes([number; 64]),
            created_at: Timestamp::from_micros(created_at),
            progress: Progress { state, attempts: u32::from(state != New), commit_proven: false },
            submitted_at: None,
            checked_at: None,
            next_try_at: None,
            last_error: None,
            held: None,
            ended_at: None,
        }
    }

    fn delayed(number: u8, until: i64) -> StoredBatch {
        let next_try_at = Some(Timestamp::from_micros(until));
        StoredBatch { next_try_at, ..batch(number, Delayed, i64::from(number)) }
    }

    /// The number of the batch that is chosen.
    fn chosen(batches: &[StoredBatch]) -> Option<u8> {
        match choose(batches, NOW) {
            Choice::Take(batch) => Some(batch.batch_id.as_bytes()[0]),
            Choice::Wait(_) => None,
        }
    }

    // Queue now.

    #[test]
    fn a_new_batch_of_a_free_service_is_queued_now() {
        assert_eq!(chosen(&[batch(1, New, 1)]), Some(1));
    }

    #[test]
    fn a_batch_that_the_ledger_does_not_have_is_queued_now() {
        assert_eq!(chosen(&[batch(2, Absent, 2), batch(1, New, 1)]), Some(2));
    }

    #[test]
    fn a_delayed_batch_is_queued_now_when_its_delay_is_over() {
        assert_eq!(chosen(&[delayed(2, 1_000), batch(1, New, 1)]), Some(2));
    }

    // Queue later.

    #[test]
    fn a_delayed_batch_is_queued_later_while_its_delay_lasts() {
        let batches = [delayed(1, 1_001)];
        let then = Timestamp::from_micros(1_001);
        assert_eq!(choose(&batches, NOW), Choice::Wait(Reason::Delayed(&batches[0], then)));
    }

    #[test]
    fn a_new_batch_is_queued_later_while_another_of_its_service_is_delayed() {
        assert_eq!(chosen(&[delayed(1, 1_001), batch(2, New, 2)]), None);
    }

    #[test]
    fn a_new_batch_is_queued_later_while_another_of_its_service_is_under_way() {
        for state in [Submitting, InDoubt, Pending, Valid] {
            let batches = [batch(1, New, 1), batch(2, state, 2)];
            let reason = Reason::UnderWay(&batches[1]);
            assert_eq!(choose(&batches, NOW), Choice::Wait(reason), "{state}");
        }
    }

    #[test]
    fn a_new_batch_is_queued_after_one_that_the_ledger_does_not_have() {
        assert_eq!(chosen(&[batch(1, New, 1), batch(2, Absent, 2)]), Some(2));
    }

    // Never queue.

    #[test]
    fn a_pending_batch_is_not_queued() {
        assert_eq!(chosen(&[batch(1, Pending, 1)]), None);
    }

    #[test]
    fn a_valid_batch_is_not_queued() {
        assert_eq!(chosen(&[batch(1, Valid, 1)]), None);
    }

    #[test]
    fn an_invalid_batch_is_not_queued_and_blocks_nothing() {
        assert_eq!(chosen(&[batch(1, Invalid, 1)]), None);
        assert_eq!(chosen(&[batch(1, Invalid, 1), batch(2, New, 2)]), Some(2));
    }

    #[test]
    fn a_committed_batch_is_not_queued_and_blocks_nothing() {
        assert_eq!(chosen(&[batch(1, Committed, 1)]), None);
        assert_eq!(chosen(&[batch(1, Committed, 1), batch(2, New, 2)]), Some(2));
    }

    #[test]
    fn a_batch_with_a_submitter_is_not_queued() {
        assert_eq!(chosen(&[batch(1, Submitting, 1)]), None);
    }

    #[test]
    fn a_batch_in_doubt_is_not_queued() {
        assert_eq!(chosen(&[batch(1, InDoubt, 1)]), None);
    }

    // Among several.

    #[test]
    fn the_oldest_of_the_new_ones_is_queued() {
        assert_eq!(chosen(&[batch(1, New, 3), batch(2, New, 1), batch(3, New, 2)]), Some(2));
    }

    #[test]
    fn of_new_ones_of_the_same_moment_the_smallest_id_is_queued() {
        assert_eq!(chosen(&[batch(3, New, 1), batch(2, New, 1), batch(4, New, 1)]), Some(2));
    }

    #[test]
    fn nothing_open_is_nothing_to_queue() {
        assert_eq!(choose(&[], NOW), Choice::Wait(Reason::NothingOpen));
        assert_eq!(choose(&[batch(1, Committed, 1)], NOW), Choice::Wait(Reason::NothingOpen));
    }

    #[test]
    fn a_reason_names_the_batch_that_it_is_about() {
        let batches = [batch(0xab, Pending, 1)];
        let Choice::Wait(reason) = choose(&batches, NOW) else { panic!("it waits") };
        assert_eq!(reason.to_string(), format!("the batch {} is pending", "ab".repeat(64)));
    }

    /// The steps as they are written in the document of the strategy, in its order, for one
    /// service; with the one thing that it leaves out: a batch with a submitter blocks its service.
    fn by_the_document(all: &[StoredBatch], now: Timestamp) -> Option<HeaderId> {
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
        // 2. and 3. The queue begins with those that are unknown;
        let mut batch_queue: Vec<&StoredBatch> = Vec::new();
        batch_queue.extend(batch_list.iter().filter(|batch| batch.progress.state == Absent));
        // 4. then come the delayed ones whose window is over.
        let due = |batch: &&&StoredBatch| {
            batch.progress.state == Delayed && batch.next_try_at.is_none_or(|at| at <= now)
        };
        batch_queue.extend(batch_list.iter().filter(due));
        // 5. A service with one that is pending, unknown or delayed is left out.
        if !has(Pending) && !has(Absent) && !has(Delayed) {
            // 6. Of the others the oldest, and of the oldest the first by its header.
            batch_queue.extend(batch_list.first());
        }
        batch_queue.first().map(|batch| batch.batch_id)
    }

    /// A history in which at most one batch is anything but new or ended, as the strategy leaves it.
    fn history() -> impl Strategy<Value = Vec<StoredBatch>> {
        let settled = (any::<u8>(), select(vec![New, New, Invalid, Committed]), 0..4i64)
            .prop_map(|(number, state, at)| batch(number, state, at));
        let moving = (
            any::<u8>(),
            select(BatchState::ALL.to_vec()),
            0..4i64,
            prop::option::of(998..1_003i64),
        )
            .prop_map(|(number, state, at, until)| StoredBatch {
                next_try_at: until.filter(|_| state == Delayed).map(Timestamp::from_micros),
                ..batch(number, state, at)
            });
        (vec(settled, 0..6), prop::option::of(moving)).prop_map(|(mut batches, moving)| {
            batches.extend(moving);
            batches
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn the_choice_is_that_of_the_document(history in history().prop_shuffle()) {
            let choice = match choose(&history, NOW) {
                Choice::Take(batch) => Some(batch.batch_id),
                Choice::Wait(_) => None,
            };
            prop_assert_eq!(choice, by_the_document(&history, NOW));
        }
    }
}
