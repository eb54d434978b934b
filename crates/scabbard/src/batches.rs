use std::sync::{Mutex, MutexGuard, PoisonError};

use grid_batch_core::{HeaderId, Outcome, ServiceId, Timestamp};

use crate::{recent::Recent, watch::Generation};

/// A batch of a service.
pub(crate) type BatchName = (ServiceId, HeaderId);

/// What is remembered of the last so many batches.
pub(crate) struct Batches(Mutex<Recent<BatchName, Trace>>);

struct Trace {
    first_post: FirstPost,
    /// The last attempt that was made from here; 0: none.
    attempt: u32,
    standing: Option<Standing>,
}

/// The first POST of a batch that a node may have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPost {
    /// There was none yet.
    None,
    /// It left while this socket was live.
    Watched(Generation),
    /// It left while no socket was live, or not from here.
    Unwatched,
}

/// What nodes say of a batch that goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standstill {
    /// Every node says Unknown.
    Unknown,
    /// It is Valid.
    Valid,
}

struct Standing {
    standstill: Standstill,
    since: Timestamp,
}

impl Batches {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(Self::LIMIT)))
    }

    /// A POST of the batch is about to leave while this socket is live. Whether it is the first is
    /// known only where this and every attempt before it were made from here.
    pub(crate) fn begin_post(
        &self,
        batch: &BatchName,
        attempt: Option<u32>,
        live: Option<Generation>,
    ) -> Posting<'_> {
        let mut batches = self.lock();
        let trace = batches.entry(batch, || Trace {
            first_post: FirstPost::None,
            attempt: 0,
            standing: None,
        });
        let follows = |attempt: u32| attempt == trace.attempt || attempt == trace.attempt + 1;
        if !attempt.is_some_and(follows) {
            trace.first_post = FirstPost::Unwatched;
        }
        trace.attempt = attempt.unwrap_or_default();
        let before = trace.first_post;
        if before == FirstPost::None {
            trace.first_post = live.map_or(FirstPost::Unwatched, FirstPost::Watched);
        }
        trace.standing = None;
        Posting { batches: self, batch: batch.clone(), before }
    }

    /// The first POST of a batch that is at this attempt. Had another made the attempt, its POST
    /// may be anywhere.
    pub(crate) fn first_post(&self, batch: &BatchName, attempt: u32) -> FirstPost {
        match self.lock().get(batch) {
            Some(trace) if trace.attempt == attempt => trace.first_post,
            _ => FirstPost::Unwatched,
        }
    }

    /// The batch stands still at this time: since when it does.
    pub(crate) fn stands(
        &self,
        batch: &BatchName,
        standstill: Standstill,
        now: Timestamp,
    ) -> Timestamp {
        let mut batches = self.lock();
        let unwatched = || Trace { first_post: FirstPost::Unwatched, attempt: 0, standing: None };
        let standing = &mut batches.entry(batch, unwatched).standing;
        match standing {
            Some(standing) if standing.standstill == standstill => standing.since,
            _ => standing.insert(Standing { standstill, since: now }).since,
        }
    }

    pub(crate) fn moves(&self, batch: &BatchName) {
        if let Some(trace) = self.lock().get_mut(batch) {
            trace.standing = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recent<BatchName, Trace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A POST that is under way. One that is broken off may have been taken.
#[must_use]
pub(crate) struct Posting<'a> {
    batches: &'a Batches,
    batch: BatchName,
    before: FirstPost,
}

impl Posting<'_> {
    /// A POST that certainly was not taken does not count as one.
    pub(crate) fn end(self, outcome: Outcome) {
        if matches!(outcome, Outcome::Accepted | Outcome::Ambiguous) {
            return;
        }
        if let Some(trace) = self.batches.lock().get_mut(&self.batch) {
            trace.first_post = self.before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::watch::Watch;

    fn batch() -> BatchName {
        ("a::b".parse().unwrap(), HeaderId::from_bytes([1; 64]))
    }

    /// Two generations.
    fn generations() -> [Generation; 2] {
        let watch = Arc::new(Watch::default());
        let service = "a::b".parse().unwrap();
        [(); 2].map(|()| {
            let _socket = watch.open(&service);
            watch.live(&service).unwrap()
        })
    }

    /// A batch after POSTs: the attempt, the live socket, and the outcome.
    fn after(posts: &[(u32, Option<Generation>, Outcome)]) -> FirstPost {
        let batches = Batches::new();
        for (attempt, live, outcome) in posts {
            batches.begin_post(&batch(), Some(*attempt), *live).end(*outcome);
        }
        batches.first_post(&batch(), posts.last().map_or(1, |(attempt, ..)| *attempt))
    }

    #[test]
    fn the_first_post_that_may_have_been_taken_counts() {
        use FirstPost::{None as NoPost, Unwatched, Watched};
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let [a, b] = generations();
        assert_eq!(after(&[]), Unwatched);
        assert_eq!(after(&[(1, Some(a), Ambiguous)]), Watched(a));
        assert_eq!(after(&[(1, None, Ambiguous)]), Unwatched);
        for taken in [Accepted, Ambiguous] {
            let twice = [(1, Some(a), taken), (2, Some(b), Accepted)];
            assert_eq!(after(&twice), Watched(a));
            let unwatched_first = [(1, None, taken), (1, Some(b), taken)];
            assert_eq!(after(&unwatched_first), Unwatched);
        }
        for not_taken in [Busy, NotSent, Refused, Rejected] {
            assert_eq!(after(&[(1, Some(a), not_taken)]), NoPost);
            let again = [(1, None, not_taken), (2, Some(b), Ambiguous)];
            assert_eq!(after(&again), Watched(b));
            let later = [(1, Some(a), Ambiguous), (2, Some(b), not_taken)];
            assert_eq!(after(&later), Watched(a));
        }
    }

    #[test]
    fn an_attempt_that_another_made_is_not_watched() {
        let [a, b] = generations();
        let batches = Batches::new();
        batches.begin_post(&batch(), Some(1), Some(a)).end(Outcome::Ambiguous);
        assert_eq!(batches.first_post(&batch(), 1), FirstPost::Watched(a));
        assert_eq!(batches.first_post(&batch(), 2), FirstPost::Unwatched);
        batches.begin_post(&batch(), Some(3), Some(b)).end(Outcome::Ambiguous);
        assert_eq!(batches.first_post(&batch(), 3), FirstPost::Unwatched);
    }

    #[test]
    fn a_later_attempt_that_nothing_is_remembered_of_is_not_the_first() {
        let [a, _] = generations();
        assert_eq!(after(&[(2, Some(a), Outcome::Ambiguous)]), FirstPost::Unwatched);
        let refused = [(2, Some(a), Outcome::NotSent), (2, Some(a), Outcome::Accepted)];
        assert_eq!(after(&refused), FirstPost::Unwatched);
    }

    #[test]
    fn a_post_that_is_broken_off_counts() {
        let [a, _] = generations();
        let batches = Batches::new();
        drop(batches.begin_post(&batch(), Some(1), Some(a)));
        assert_eq!(batches.first_post(&batch(), 1), FirstPost::Watched(a));
    }

    #[test]
    fn a_standstill_begins_anew_when_something_else_is_said_or_the_batch_is_sent() {
        use Standstill::{Unknown, Valid};
        let batches = Batches::new();
        let at = Timestamp::from_micros;
        let stands = |what, now| batches.stands(&batch(), what, at(now)).as_micros();
        assert_eq!([stands(Valid, 1), stands(Valid, 2), stands(Unknown, 3)], [1, 1, 3]);
        batches.moves(&batch());
        assert_eq!([stands(Unknown, 4), stands(Unknown, 5)], [4, 4]);
        drop(batches.begin_post(&batch(), None, None));
        assert_eq!(stands(Unknown, 6), 6);
    }
}
