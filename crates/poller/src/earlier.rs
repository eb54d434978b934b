//! Batches with an earlier attempt that may still arrive at the ledger.
//!
//! An attempt can no longer arrive once `limit` has passed since this process first saw a later attempt, because the
//! earlier one had ended by then. A restart or a takeover starts the wait anew, because the new process does not know
//! when earlier attempts ended.

use std::time::Duration;

use grid_batch_core::MonotonicTime;
use grid_batch_core::evidence::UnresolvedBatch;
use grid_batch_work::{DueKind, Entered, Search, ServiceWork, Work, WorkKey};

use crate::evidence::search;

/// Limit on the number of waits. Further batches begin to wait when other waits are over.
const MOST: usize = 10_000;

/// Records that the store returned this batch.
pub(crate) fn observe(
    work: &mut Work,
    batch: &UnresolvedBatch,
    limit: Duration,
    now: MonotonicTime,
) {
    let mut entered = work.enter(batch.service_id.as_str());
    let (key, search, due) = search(&mut entered, batch, now);
    let known = search.earlier.as_ref().map(|(_, known)| known.attempt_id);
    if known == Some(batch.attempt_id) && batch.earlier_may_arrive {
        return;
    }
    if let Some((mut entry, _)) = search.earlier.take() {
        due.clear(&mut entry);
    }
    if batch.earlier_may_arrive && due.count(DueKind::EarlierAttempt) < MOST {
        let mut entry = None;
        due.set(&mut entry, DueKind::EarlierAttempt, now.plus(limit), key);
        search.earlier = Some((entry, batch.clone()));
    }
}

/// Takes the batches whose earlier attempts can no longer arrive. Batches with a request in flight are left for
/// later, because its answer may be older than the end of the wait.
pub(crate) fn take_over(
    work: &mut Work,
    limit: Duration,
    now: MonotonicTime,
    has_request: impl Fn(&str) -> bool,
) -> Vec<UnresolvedBatch> {
    let mut over = Vec::new();
    for key in keys(work, DueKind::EarlierAttempt, now) {
        let Entered { service, due, .. } = work.enter(&key.service_id);
        let Some(search) = search_of(service, &key) else { continue };
        if search.is_requested() || has_request(&key.service_id) {
            continue;
        }
        let Some((mut wait, batch)) = search.earlier.take() else { continue };
        due.clear(&mut wait);
        if due.count(DueKind::LastLook) < MOST {
            // With `invalid_reported`, only evidence of a commit has an effect.
            let look = UnresolvedBatch { invalid_reported: true, ..batch.clone() };
            let mut entry = search.last_look.take().and_then(|(entry, _)| entry);
            due.set(&mut entry, DueKind::LastLook, now.plus(limit), key);
            search.last_look = Some((entry, look));
        }
        over.push(batch);
    }
    over
}

/// Takes the batches whose last search for evidence is due. Some of them may have ended; one that ended as invalid may
/// have been applied after all.
pub(crate) fn take_last_looks(work: &mut Work, now: MonotonicTime) -> Vec<UnresolvedBatch> {
    let mut looks = Vec::new();
    for key in keys(work, DueKind::LastLook, now) {
        let Entered { service, due, .. } = work.enter(&key.service_id);
        if let Some((mut entry, batch)) =
            search_of(service, &key).and_then(|search| search.last_look.take())
        {
            due.clear(&mut entry);
            looks.push(batch);
        }
    }
    looks
}

/// When the next wait ends or the next last search is due.
pub(crate) fn next(work: &Work, now: MonotonicTime) -> Option<MonotonicTime> {
    // Waits that have ended already are left out: their batches have a request in flight, whose reply wakes the
    // monitor.
    let kinds = [DueKind::EarlierAttempt, DueKind::LastLook];
    kinds.into_iter().filter_map(|kind| work.due.next_after(kind, now)).min()
}

fn keys(work: &Work, kind: DueKind, now: MonotonicTime) -> Vec<WorkKey> {
    work.due.due(kind, now).cloned().collect()
}

fn search_of<'a>(service: &'a mut ServiceWork, key: &WorkKey) -> Option<&'a mut Search> {
    service.batches.get_mut(key.batch_id.as_ref()?)?.search.as_deref_mut()
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::BatchState;
    use grid_batch_core::ledger::AttemptId;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(330);
    const START: Duration = Duration::from_secs(1_000);

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(START).plus(Duration::from_secs(seconds))
    }

    fn second_attempt() -> UnresolvedBatch {
        let (service_id, id) = ("s".parse().unwrap(), ItemId::from_bytes([1; 64]));
        let attempt_id = AttemptId { attempt: 2, epoch: 1 };
        UnresolvedBatch {
            earlier_may_arrive: true,
            ..UnresolvedBatch::new(service_id, id, attempt_id, BatchState::Pending)
        }
    }

    fn over(work: &mut Work, seconds: u64) -> usize {
        take_over(work, LIMIT, at(seconds), |_| false).len()
    }

    #[test]
    fn wait_is_measured_from_the_first_observation() {
        let mut work = Work::default();
        observe(&mut work, &second_attempt(), LIMIT, at(0));
        observe(&mut work, &second_attempt(), LIMIT, at(100));
        assert_eq!(next(&work, at(0)), Some(at(330)));
        assert_eq!((over(&mut work, 329), over(&mut work, 330)), (0, 1));
        assert_eq!(over(&mut work, 1_000), 0);
    }

    #[test]
    fn next_attempt_or_epoch_waits_anew() {
        for attempt_id in [AttemptId { attempt: 3, epoch: 1 }, AttemptId { attempt: 2, epoch: 2 }] {
            let mut work = Work::default();
            observe(&mut work, &second_attempt(), LIMIT, at(0));
            observe(&mut work, &UnresolvedBatch { attempt_id, ..second_attempt() }, LIMIT, at(100));
            assert_eq!((over(&mut work, 429), over(&mut work, 430)), (0, 1));
        }
    }

    #[test]
    fn wait_of_a_busy_batch_ends_when_it_is_free() {
        let mut work = Work::default();
        observe(&mut work, &second_attempt(), LIMIT, at(0));
        assert!(take_over(&mut work, LIMIT, at(400), |service| service == "s").is_empty());
        assert_eq!(next(&work, at(400)), None, "a reply wakes the monitor");
        assert_eq!(over(&mut work, 401), 1);
    }

    #[test]
    fn batch_is_searched_once_more_after_its_wait() {
        let mut work = Work::default();
        observe(&mut work, &second_attempt(), LIMIT, at(0));
        assert_eq!(over(&mut work, 330), 1);
        assert_eq!(next(&work, at(330)), Some(at(660)));
        assert_eq!(take_last_looks(&mut work, at(659)), []);
        let look = UnresolvedBatch { invalid_reported: true, ..second_attempt() };
        assert_eq!(take_last_looks(&mut work, at(660)), [look]);
        assert_eq!(take_last_looks(&mut work, at(9_999)), []);
    }

    #[test]
    fn number_of_waits_is_limited() {
        let mut work = Work::default();
        for number in 0..MOST + 5 {
            let service_id = format!("s{number}").parse().unwrap();
            observe(&mut work, &UnresolvedBatch { service_id, ..second_attempt() }, LIMIT, at(0));
        }
        assert_eq!(over(&mut work, 330), MOST);
    }
}
