use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use grid_batch_core::ItemId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_support::{Histogram, HistogramValues};

/// How long batches take from one stage to the next. Clones share their state.
///
/// The table has a fixed size, and takes no lock. When more batches are open than it has slots, it measures some of
/// them: a batch whose slot is taken is not measured. What other instances do is not measured either.
#[derive(Debug, Clone)]
pub struct StageTimes(Arc<Table>);

#[derive(Debug)]
struct Table {
    started: Instant,
    slots: Box<[StageSlot]>,
    stages: [Histogram; Stage::ALL.len()],
}

/// The times of one batch: microseconds since the start, or 0 if unknown.
#[derive(Debug, Default)]
struct StageSlot {
    key: AtomicU64,
    received: AtomicU64,
    taken: AtomicU64,
    answered: AtomicU64,
}

/// A stage, from one event to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Waiting,
    Submitting,
    Committing,
    All,
}

impl Stage {
    pub(super) const ALL: [(Self, &'static str); 4] = [
        (Self::Waiting, "accepted_to_taken"),
        (Self::Submitting, "taken_to_answer"),
        (Self::Committing, "answer_to_commit"),
        (Self::All, "accepted_to_commit"),
    ];
}

impl StageTimes {
    const SLOTS: usize = 16 * 1024;
    /// A batch that has had its slot for longer than this loses it to a new one.
    const LONGEST: Duration = Duration::from_mins(10);

    /// An empty table.
    pub fn new() -> Self {
        Self(Arc::new(Table {
            started: Instant::now(),
            slots: (0..Self::SLOTS).map(|_| StageSlot::default()).collect(),
            stages: Default::default(),
        }))
    }

    /// Records that the batches are about to be stored.
    pub fn received(&self, ids: &[ItemId]) {
        let now = self.since_start();
        let longest = micros(Self::LONGEST);
        for id in ids {
            let key = key(id.as_bytes());
            let slot = self.slot(key);
            let (known, since) = (slot.key.load(Relaxed), slot.received.load(Relaxed));
            if known == key || known != 0 && now.saturating_sub(since) < longest {
                continue;
            }
            slot.taken.store(0, Relaxed);
            slot.answered.store(0, Relaxed);
            slot.received.store(now, Relaxed);
            slot.key.store(key, Relaxed);
        }
    }

    /// Records that a submitter has taken the batch with this id, in hexadecimal digits. Only its first attempt is
    /// measured.
    pub fn taken(&self, id: &str) {
        self.step(id, |slot| (&slot.taken, &slot.received), Stage::Waiting);
    }

    /// Records that the attempt has ended.
    pub fn answered(&self, id: &str) {
        self.step(id, |slot| (&slot.answered, &slot.taken), Stage::Submitting);
    }

    /// Records that the batch is committed, or has ended in another way.
    fn ended(&self, id: &ItemId, is_committed: bool) {
        let key = key(id.as_bytes());
        let slot = self.slot(key);
        if slot.key.load(Relaxed) != key {
            return;
        }
        let now = self.since_start();
        if is_committed {
            self.observe(Stage::Committing, slot.answered.load(Relaxed), now);
            self.observe(Stage::All, slot.received.load(Relaxed), now);
        }
        slot.key.store(0, Relaxed);
    }

    /// How long batches took, by the name of the stage.
    pub fn read(&self) -> [(&'static str, HistogramValues); Stage::ALL.len()] {
        Stage::ALL.map(|(stage, name)| (name, self.0.stages[stage as usize].read()))
    }

    fn step(&self, id: &str, times: fn(&StageSlot) -> (&AtomicU64, &AtomicU64), stage: Stage) {
        let Some(key) = key_of_text(id) else { return };
        let slot = self.slot(key);
        if slot.key.load(Relaxed) != key {
            return;
        }
        let ((reached, before), now) = (times(slot), self.since_start());
        if reached.compare_exchange(0, now, Relaxed, Relaxed).is_ok() {
            self.observe(stage, before.load(Relaxed), now);
        }
    }

    fn observe(&self, stage: Stage, from: u64, to: u64) {
        if from != 0 {
            let duration = Duration::from_micros(to.saturating_sub(from));
            self.0.stages[stage as usize].observe(duration);
        }
    }

    fn slot(&self, key: u64) -> &StageSlot {
        let slots = u64::try_from(Self::SLOTS).unwrap_or(1);
        let index = usize::try_from(key % slots).unwrap_or_default();
        &self.0.slots[index]
    }

    fn since_start(&self) -> u64 {
        micros(self.0.started.elapsed()) + 1
    }
}

impl Default for StageTimes {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordedSubscriber for StageTimes {
    fn recorded(&self, entry: Recorded<'_>) {
        if let Some((id, state)) = entry.ended() {
            self.ended(id, state == BatchState::Committed);
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The beginning of an id, which is as good as random because an id is usually a signature. Never 0.
fn key(id: &[u8]) -> u64 {
    let key = match id.first_chunk() {
        Some(first) if id.len() == ItemId::BYTES => u64::from_be_bytes(*first),
        // Ids that are not signatures often begin alike.
        _ => id
            .iter()
            .fold(0, |key: u64, byte| key.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte)),
    };
    key.max(1)
}

fn key_of_text(id: &str) -> Option<u64> {
    Some(key(id.parse::<ItemId>().ok()?.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(first: u8) -> ItemId {
        ItemId::from_bytes([first; 64])
    }

    fn counts(times: &StageTimes) -> [u64; 4] {
        times.read().map(|(_, values)| values.count)
    }

    #[test]
    fn each_stage_is_measured_once() {
        let times = StageTimes::new();
        times.received(&[id(1)]);
        times.received(&[id(1)]);
        for _ in 0..2 {
            times.taken(&id(1).to_string());
            times.answered(&id(1).to_string());
        }
        assert_eq!(counts(&times), [1, 1, 0, 0]);
        times.ended(&id(1), true);
        times.ended(&id(1), true);
        assert_eq!(counts(&times), [1, 1, 1, 1]);
    }

    #[test]
    fn batch_that_is_uncommitted_or_unknown_has_no_time() {
        let times = StageTimes::new();
        times.received(&[id(1)]);
        times.ended(&id(1), false);
        times.taken(&id(2).to_string());
        times.ended(&id(2), true);
        assert_eq!(counts(&times), [0; 4]);
    }

    #[test]
    fn open_batch_keeps_its_slot() {
        let times = StageTimes::new();
        let mut other = [1; 64];
        other[0] = 2;
        times.received(&[id(1), ItemId::from_bytes(other)]);
        times.taken(&ItemId::from_bytes(other).to_string());
        assert_eq!(counts(&times), [0; 4]);
        times.taken(&id(1).to_string());
        assert_eq!(counts(&times), [1, 0, 0, 0]);
    }
}
