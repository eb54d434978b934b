use std::{collections::BTreeMap, sync::Arc};

use grid_batch_core::MonotonicTime;

/// What is to be done at a time, or what has been the case since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueKind {
    /// A batch was accepted since the poller last looked.
    Accepted,
    /// A service is to be polled at once.
    Trigger,
    /// A service was triggered although it had no pending batch.
    Missed,
    /// A service is to be polled.
    Poll,
    /// The last request for a service failed at this time.
    Failed,
    /// The ledger was first asked about a batch at this time.
    UnderWay,
    /// Evidence about a batch is to be searched, whether or not the ledger is asked for its status.
    Look,
    /// No earlier attempt of a batch can arrive any more.
    EarlierAttempt,
    /// Evidence about a batch is to be searched for the last time.
    LastLook,
    /// The ledger is to be asked about the next batches of a service.
    Question,
    /// The answers to the last question about a service become too old to be used.
    OldQuestion,
    /// An attempt began at this time, and has not ended.
    Attempt,
    /// A batch has held its place since this time.
    Place,
    /// A batch that lost its place because it was under way for too long: under way since this time.
    Overdue,
    /// The turn of a service to take places ends.
    Turn,
    /// From this time on, a batch that is still recorded as being with a submitter is an orphan.
    Orphan,
    /// The ledger has not accepted a batch since this time.
    Delay,
    /// A batch that certainly reached no node was last tried at this time.
    Unsent,
}

impl DueKind {
    const COUNT: usize = Self::Unsent as usize + 1;
}

/// A service, or a batch of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkKey {
    /// The service.
    pub service_id: Arc<str>,
    /// The batch. `None`: the key stands for the service.
    pub batch_id: Option<Arc<str>>,
}

/// A handle to an entry of [`DueTimes`]. The record that the entry is about keeps it.
#[derive(Debug, PartialEq, Eq)]
pub struct Due {
    kind: DueKind,
    at: MonotonicTime,
    /// Unique. Entries of the same time are in the order in which they were set.
    number: u64,
}

impl Due {
    /// What is to be done.
    pub const fn kind(&self) -> DueKind {
        self.kind
    }

    /// When it is due.
    pub const fn at(&self) -> MonotonicTime {
        self.at
    }
}

/// What is due when: the entries of each kind, in the order of time.
#[derive(Debug, Default)]
pub struct DueTimes {
    kinds: [BTreeMap<(MonotonicTime, u64), WorkKey>; DueKind::COUNT],
    numbers: u64,
}

impl DueTimes {
    /// Sets the time of an entry and replaces its previous time.
    pub fn set(&mut self, due: &mut Option<Due>, kind: DueKind, at: MonotonicTime, key: WorkKey) {
        self.clear(due);
        self.numbers += 1;
        let number = self.numbers;
        self.kinds[kind as usize].insert((at, number), key);
        *due = Some(Due { kind, at, number });
    }

    /// Removes an entry.
    pub fn clear(&mut self, due: &mut Option<Due>) {
        if let Some(Due { kind, at, number }) = due.take() {
            self.kinds[kind as usize].remove(&(at, number));
        }
    }

    /// The entries of this kind, the earliest first.
    pub fn of(&self, kind: DueKind) -> impl DoubleEndedIterator<Item = (MonotonicTime, &WorkKey)> {
        self.kinds[kind as usize].iter().map(|((at, _), key)| (*at, key))
    }

    /// The entries of this kind that are due.
    pub fn due(&self, kind: DueKind, now: MonotonicTime) -> impl Iterator<Item = &WorkKey> {
        self.kinds[kind as usize].range(..=(now, u64::MAX)).map(|(_, key)| key)
    }

    /// When the first entry of this kind is due.
    pub fn next(&self, kind: DueKind) -> Option<MonotonicTime> {
        self.of(kind).next().map(|(at, _)| at)
    }

    /// When the first entry of this kind that is not due yet becomes due.
    pub fn next_after(&self, kind: DueKind, now: MonotonicTime) -> Option<MonotonicTime> {
        self.kinds[kind as usize].range((now, u64::MAX)..).next().map(|((at, _), _)| *at)
    }

    /// The number of entries of this kind.
    pub fn count(&self, kind: DueKind) -> usize {
        self.kinds[kind as usize].len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    fn key(service_id: &str) -> WorkKey {
        WorkKey { service_id: service_id.into(), batch_id: None }
    }

    fn due(times: &DueTimes, seconds: u64) -> Vec<&str> {
        times.due(DueKind::Poll, at(seconds)).map(|key| &*key.service_id).collect()
    }

    #[test]
    fn entries_are_in_the_order_of_their_times() {
        let (mut times, mut a, mut b, mut c) = (DueTimes::default(), None, None, None);
        times.set(&mut b, DueKind::Poll, at(2), key("b"));
        times.set(&mut a, DueKind::Poll, at(2), key("a"));
        times.set(&mut c, DueKind::Poll, at(1), key("c"));
        assert_eq!((due(&times, 1), due(&times, 2)), (vec!["c"], vec!["c", "b", "a"]));
        assert_eq!(times.next(DueKind::Poll), Some(at(1)));
        assert_eq!(times.next_after(DueKind::Poll, at(1)), Some(at(2)));
        assert_eq!(times.next(DueKind::Look), None);
    }

    #[test]
    fn entry_has_one_time() {
        let (mut times, mut a) = (DueTimes::default(), None);
        for seconds in [5, 3, 4] {
            times.set(&mut a, DueKind::Poll, at(seconds), key("a"));
        }
        assert_eq!((due(&times, 3), due(&times, 9)), (vec![], vec!["a"]));
        times.clear(&mut a);
        assert_eq!((times.count(DueKind::Poll), a), (0, None));
    }
}
