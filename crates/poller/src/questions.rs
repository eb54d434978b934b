//! The services about whose next batches the ledger is to be asked.

use std::time::Duration;

use grid_batch_core::{MonotonicTime, ServiceId};
use grid_batch_work::{DueKind, Entered, Question, Work, WorkKey};

/// Answers are only used for a short time, so the ledger is asked again soon.
const SUFFICIENT_FOR: Duration = Duration::from_secs(1);

/// Requests a question about the next batches of the service, unless the last one is sufficient because the ledger has
/// not accepted half of its batches yet. Returns whether a question was requested.
pub(crate) fn request(work: &mut Work, service_id: &ServiceId, now: MonotonicTime) -> bool {
    forget_old(work, now);
    let Entered { key, service, due, .. } = work.enter(service_id.as_str());
    let is_sufficient = service.question.as_ref().is_some_and(|question| {
        question.not_accepted > 0 && 2 * question.not_accepted >= question.batches
    });
    if !is_sufficient && service.question_due.is_none() {
        due.set(&mut service.question_due, DueKind::Question, now, key);
    }
    !is_sufficient
}

/// Records that the ledger has accepted a batch of the service.
pub(crate) fn accepted(work: &mut Work, service_id: &ServiceId) {
    let service = work.services.get_mut(service_id.as_str());
    if let Some(question) = service.and_then(|service| service.question.as_mut()) {
        question.not_accepted = question.not_accepted.saturating_sub(1);
    }
}

/// Takes the requested services for which `is_ready` is true.
pub(crate) fn take(work: &mut Work, is_ready: impl Fn(&str) -> bool) -> Vec<ServiceId> {
    let keys = work.due.of(DueKind::Question).map(|(_, key)| key);
    let ready: Vec<WorkKey> = keys.filter(|key| is_ready(&key.service_id)).cloned().collect();
    for key in &ready {
        let Entered { service, due, .. } = work.enter(&key.service_id);
        due.clear(&mut service.question_due);
        work.remove_unneeded(&key.service_id, None);
    }
    ready.iter().filter_map(|key| key.service_id.parse().ok()).collect()
}

/// Records that the ledger is asked about this many of the service's next batches.
pub(crate) fn asked(work: &mut Work, service_id: &ServiceId, batches: usize, now: MonotonicTime) {
    forget_old(work, now);
    let Entered { key, service, due, .. } = work.enter(service_id.as_str());
    let mut old_at = service.question.take().and_then(|question| question.old_at);
    due.set(&mut old_at, DueKind::OldQuestion, now.plus(SUFFICIENT_FOR), key);
    service.question = Some(Question { old_at, batches, not_accepted: batches });
}

fn forget_old(work: &mut Work, now: MonotonicTime) {
    let old: Vec<WorkKey> = work.due.due(DueKind::OldQuestion, now).cloned().collect();
    for key in old {
        let Entered { service, due, .. } = work.enter(&key.service_id);
        if let Some(mut question) = service.question.take() {
            due.clear(&mut question.old_at);
        }
        work.remove_unneeded(&key.service_id, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_millis(1_000_000 + millis))
    }

    fn is_sufficient(work: &mut Work, service: &ServiceId, millis: u64) -> bool {
        let is_requested = request(work, service, at(millis));
        assert_eq!(take(work, |_| true).len(), usize::from(is_requested));
        !is_requested
    }

    #[test]
    fn answers_suffice_until_most_batches_are_accepted() {
        for (batches, enough) in [(1, 1), (2, 2), (3, 2), (8, 5)] {
            let mut work = Work::default();
            let (busy, other) = (service("a::busy"), service("a::other"));
            asked(&mut work, &busy, batches, at(0));
            asked(&mut work, &other, batches, at(0));
            for _ in 0..enough {
                assert!(is_sufficient(&mut work, &busy, 0), "{batches}");
                accepted(&mut work, &busy);
            }
            assert!(!is_sufficient(&mut work, &busy, 0), "{batches}");
            assert!(is_sufficient(&mut work, &other, 0));
        }
    }

    #[test]
    fn answers_suffice_for_a_short_time() {
        let (mut work, service) = (Work::default(), service("a::b"));
        assert!(!is_sufficient(&mut work, &service, 0), "nothing was asked");
        asked(&mut work, &service, 8, at(0));
        assert!(is_sufficient(&mut work, &service, 500));
        assert!(!is_sufficient(&mut work, &service, 1_000));
        assert!(work.services.is_empty(), "it is forgotten");
    }

    #[test]
    fn more_batches_may_be_accepted_than_were_asked_about() {
        let (mut work, service) = (Work::default(), service("a::b"));
        asked(&mut work, &service, 1, at(0));
        (0..3).for_each(|_| accepted(&mut work, &service));
        assert!(!is_sufficient(&mut work, &service, 0));
        accepted(&mut work, &service);
    }

    #[test]
    fn old_questions_are_removed() {
        let mut work = Work::default();
        for number in 0..100 {
            asked(&mut work, &service(&format!("a::{number}")), 1, at(number));
        }
        asked(&mut work, &service("a::next"), 1, at(1_100));
        assert_eq!((work.services.len(), work.due.count(DueKind::OldQuestion)), (1, 1));
    }
}
