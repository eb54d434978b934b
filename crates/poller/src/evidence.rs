//! When to search for evidence, and about which batches.
//!
//! This only saves work for the store and the ledger. A batch that is forgotten becomes a candidate again when the
//! ledger is next asked for its status.

use std::{collections::HashMap, time::Duration};

use grid_batch_core::MonotonicTime;
use grid_batch_core::evidence::UnresolvedBatch;
use grid_batch_work::{DueKind, DueTimes, Entered, Look, Search, Work, WorkKey};

/// Limit on the number of scheduled searches.
const MAX_LOOKS: usize = 10_000;

/// The batches of an answer for which evidence may be needed: those for which it is due and, once per `pause`, the
/// others that were reported.
pub(crate) fn candidates(
    work: &mut Work,
    service_id: &str,
    due: &[String],
    reported: impl Iterator<Item = String>,
    pause: Duration,
    now: MonotonicTime,
) -> Vec<String> {
    let mut reported = reported.peekable();
    // A service without such batches gets no record.
    let are_taken = reported.peek().is_some() && takes_reported(work, service_id, pause, now);
    let reported = are_taken.then_some(reported);
    let is_over = |id: &String, not_before: fn(&Search) -> Option<MonotonicTime>| {
        let search = work.batch(service_id, id).and_then(|batch| batch.search.as_deref());
        search.and_then(not_before).is_none_or(|not_before| not_before <= now)
    };
    let reported = reported.into_iter().flatten();
    let reported = reported.filter(|id| is_over(id, |search| search.reported_not_before));
    let all = due.iter().cloned().chain(reported);
    all.filter(|id| is_over(id, |search| search.not_before)).collect()
}

/// Whether the reported batches of a service are candidates now. A reported status alone is no reason to search for
/// evidence, and most batches end soon, so this is first true after one pause.
fn takes_reported(work: &mut Work, service_id: &str, pause: Duration, now: MonotonicTime) -> bool {
    let not_before = &mut work.enter(service_id).service.reported_not_before;
    let is_due = not_before.is_some_and(|not_before| not_before <= now);
    if is_due || not_before.is_none() {
        *not_before = Some(now.plus(pause));
    }
    is_due
}

/// The record of the search for evidence about a batch. Marks it as used now.
pub(crate) fn search<'a>(
    entered: &'a mut Entered<'_>,
    batch: &UnresolvedBatch,
    now: MonotonicTime,
) -> (WorkKey, &'a mut Search, &'a mut DueTimes) {
    let (key, record, due) = entered.batch(&batch.batch_id.to_string());
    let search = record.search.get_or_insert_default();
    search.last_used = search.last_used.max(now);
    (key, search, due)
}

/// Prevents the batch from being a candidate before `until`.
pub(crate) fn defer(work: &mut Work, batch: &UnresolvedBatch, until: MonotonicTime) {
    search(&mut work.enter(batch.service_id.as_str()), batch, until).1.not_before = Some(until);
}

/// Prevents the batch from being a candidate before `until` as long as the ledger reports it.
pub(crate) fn defer_reported(work: &mut Work, batch: &UnresolvedBatch, until: MonotonicTime) {
    search(&mut work.enter(batch.service_id.as_str()), batch, until).1.reported_not_before =
        Some(until);
}

/// Schedules a search for the batch, even if the ledger is not asked for its status. It replaces an earlier one for the
/// same reason.
pub(crate) fn schedule(work: &mut Work, batch: &UnresolvedBatch, look: Look, at: MonotonicTime) {
    let is_full = work.due.count(DueKind::Look) >= MAX_LOOKS;
    let mut entered = work.enter(batch.service_id.as_str());
    let (key, search, due) = search(&mut entered, batch, at);
    let entry = &mut search.looks[look as usize];
    if entry.is_some() || !is_full {
        due.set(entry, DueKind::Look, at, key);
    }
}

/// Takes the scheduled batches that are due, by service.
pub(crate) fn take_scheduled(work: &mut Work, now: MonotonicTime) -> Vec<(String, Vec<String>)> {
    let keys: Vec<WorkKey> = work.due.due(DueKind::Look, now).cloned().collect();
    let mut by_service: HashMap<String, Vec<String>> = HashMap::new();
    for WorkKey { service_id, batch_id } in keys {
        let Some(batch_id) = batch_id else { continue };
        let Entered { service, due, .. } = work.enter(&service_id);
        let record = service.batches.get_mut(&batch_id);
        if let Some(search) = record.and_then(|record| record.search.as_mut()) {
            let looks = search.looks.iter_mut();
            looks
                .filter(|look| look.as_ref().is_some_and(|look| look.at() <= now))
                .for_each(|look| due.clear(look));
        }
        let batches = by_service.entry(service_id.to_string()).or_default();
        if batches.last().is_none_or(|last| **last != *batch_id) {
            batches.push(batch_id.to_string());
        }
    }
    by_service.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::BatchState;
    use grid_batch_core::ledger::AttemptId;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> MonotonicTime {
        MonotonicTime::default().plus(SECOND * seconds)
    }

    fn unresolved(number: u8) -> UnresolvedBatch {
        let (service_id, id) = ("s".parse().unwrap(), ItemId::from_bytes([number; 64]));
        let attempt_id = AttemptId { attempt: 1, epoch: 1 };
        UnresolvedBatch::new(service_id, id, attempt_id, BatchState::InDoubt)
    }

    fn take_candidates(
        work: &mut Work,
        not_reported: &[&str],
        reported: &[&str],
        now: u32,
    ) -> Vec<String> {
        let not_reported: Vec<String> = not_reported.iter().map(ToString::to_string).collect();
        let reported = reported.iter().map(ToString::to_string);
        candidates(work, "s", &not_reported, reported, SECOND * 15, at(now))
    }

    #[test]
    fn reported_batches_are_candidates_from_time_to_time() {
        let mut work = Work::default();
        assert_eq!(take_candidates(&mut work, &["a"], &["b"], 0), ["a"]);
        assert_eq!(take_candidates(&mut work, &["a"], &["b"], 14), ["a"]);
        assert_eq!(take_candidates(&mut work, &["a"], &["b"], 15), ["a", "b"]);
        assert_eq!(take_candidates(&mut work, &[], &["b"], 16), [""; 0]);
        assert_eq!(take_candidates(&mut work, &[], &["b"], 600), ["b"]);
    }

    #[test]
    fn service_without_candidates_gets_no_record() {
        let mut work = Work::default();
        assert_eq!(take_candidates(&mut work, &[], &[], 0), [""; 0]);
        assert!(work.services.is_empty());
    }

    #[test]
    fn deferred_batch_is_no_candidate_before_its_time() {
        let mut work = Work::default();
        let id = unresolved(1).batch_id.to_string();
        defer(&mut work, &unresolved(1), at(10));
        assert_eq!(take_candidates(&mut work, &[&id], &[], 9), [""; 0]);
        assert_eq!(take_candidates(&mut work, &[&id], &[], 10), [id.as_str()]);
    }

    #[test]
    fn batch_deferred_while_reported_is_a_candidate_once_it_is_not() {
        let mut work = Work::default();
        let id = unresolved(1).batch_id.to_string();
        defer_reported(&mut work, &unresolved(1), at(60));
        assert_eq!(take_candidates(&mut work, &[], &[&id], 0), [""; 0]);
        assert_eq!(take_candidates(&mut work, &[], &[&id], 15), [""; 0]);
        assert_eq!(take_candidates(&mut work, &[&id], &[], 16), [id.as_str()]);
        assert_eq!(take_candidates(&mut work, &[], &[&id], 60), [id.as_str()]);
    }

    #[test]
    fn look_after_a_search_replaces_the_one_before() {
        let mut work = Work::default();
        schedule(&mut work, &unresolved(1), Look::Hold, at(50));
        for seconds in [20, 30] {
            schedule(&mut work, &unresolved(1), Look::Again, at(seconds));
        }
        let taken = |now| take_scheduled(&mut work, at(now)).len();
        assert_eq!([29, 30, 49, 50].map(taken), [0, 1, 0, 1]);
    }

    #[test]
    fn scheduled_batch_is_taken_once() {
        let mut work = Work::default();
        schedule(&mut work, &unresolved(2), Look::Hold, at(30));
        schedule(&mut work, &unresolved(1), Look::Hold, at(20));
        assert_eq!(work.due.next(DueKind::Look), Some(at(20)));
        assert_eq!(take_scheduled(&mut work, at(19)), []);
        let both = vec![unresolved(1).batch_id.to_string(), unresolved(2).batch_id.to_string()];
        assert_eq!(take_scheduled(&mut work, at(30)), [("s".to_owned(), both)]);
        assert_eq!(take_scheduled(&mut work, at(30)), []);
    }
}
