use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use grid_batch_core::{Event, ItemId, MonotonicTime, ServiceId, TakenBatch};

use super::{shares::Shares, turns::Turns, usual_time::UsualTime, window_size::WindowSize};

/// The batches that are under way, and the services that want to send more.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) window: WindowSize,
    shares: Shares,
    turns: Turns,
    batches: HashMap<ItemId, UnderWay>,
    usual: UsualTime,
    /// Counts the batches, so that those that came after a reading of the store began are known.
    next_number: u64,
    /// While the store is read: the number of the first batch that came since, and the batches that ended.
    reading: Option<(u64, HashSet<ItemId>)>,
}

#[derive(Debug)]
struct UnderWay {
    service_id: ServiceId,
    number: u64,
    /// The attempt; `None` if the batch was found in the store.
    attempt: Option<u32>,
    since: MonotonicTime,
    /// How often the window had been lowered when it was sent.
    lowered: u64,
    /// It is under way for much longer than usual, and later ones were committed: it has no place any more.
    overdue: bool,
}

/// If all batches with a place are under way for longer than this, one more may be sent, although the window is
/// full: what the ledger does not end must not stop everything else.
const LONG: Duration = Duration::from_secs(30);

impl Places {
    pub(super) fn new(window: WindowSize) -> Self {
        Self {
            window,
            shares: Shares::default(),
            turns: Turns::default(),
            batches: HashMap::new(),
            usual: UsualTime::default(),
            next_number: 0,
            reading: None,
        }
    }

    /// How many batches are under way and have a place.
    pub(super) fn under_way(&self) -> usize {
        self.batches.len() - self.overdue()
    }

    /// How many batches are under way for so long that they have no place any more.
    pub(super) fn overdue(&self) -> usize {
        self.batches.values().filter(|batch| batch.overdue).count()
    }

    /// Whether the service wants more places than it has got.
    pub(super) fn waits(&self, service_id: &ServiceId) -> bool {
        self.turns.waits(service_id)
    }

    /// Takes up to `wanted` places. A service that gets fewer waits for its turn.
    pub(super) fn admit(
        &mut self,
        service_id: &ServiceId,
        wanted: usize,
        now: MonotonicTime,
    ) -> usize {
        self.end_turns(now);
        let was_called = self.turns.take(service_id);
        self.shares.set_wants_more(service_id, true);
        let share = self.shares.share(self.window.batches());
        let own = share.saturating_sub(self.shares.used_by(service_id));
        let admitted = match own.min(self.free().saturating_sub(self.turns.called())) {
            0 if self.free() == 0 && self.all_is_old(now) => 1,
            own => own.min(wanted),
        };
        self.shares.add(service_id, admitted);
        if admitted < wanted {
            self.turns.wait(service_id, was_called && admitted == 0);
        } else {
            self.leave(service_id);
        }
        admitted
    }

    /// A batch uses one of the places of its service.
    pub(super) fn taken(&mut self, batch: &TakenBatch, now: MonotonicTime) {
        let id = batch.batch_id;
        if self.batches.remove(&id).is_some_and(|batch| !batch.overdue) {
            // It was found in the store before, or the end of its last attempt is not yet known here.
            self.shares.remove(&batch.service_id, 1);
        }
        self.insert(batch.service_id.clone(), id, Some(batch.attempt), now);
    }

    /// Whether the event is about an earlier attempt of a batch than the one that is under way.
    pub(super) fn was_taken_again(&self, id: &ItemId, event: Event) -> bool {
        let present = self.batches.get(id).and_then(|batch| batch.attempt);
        event.attempt().is_some_and(|attempt| present.is_some_and(|present| attempt < present))
    }

    /// Returns places that the service has no batch for.
    pub(super) fn release(&mut self, service_id: &ServiceId, places: usize) {
        self.shares.remove(service_id, places);
        self.leave(service_id);
    }

    /// Returns places of a service that asks again.
    pub(super) fn put_back(&mut self, service_id: &ServiceId, places: usize, now: MonotonicTime) {
        self.shares.remove(service_id, places);
        self.leave(service_id);
        self.shares.set_wants_more(service_id, true);
        self.turns.call(service_id, now);
    }

    /// The batch is not under way any more. Returns how often the window had been lowered when it was sent, if
    /// the batch was under way.
    pub(super) fn remove(&mut self, id: &ItemId) -> Option<u64> {
        if let Some((_, ended)) = &mut self.reading {
            ended.insert(*id);
        }
        let batch = self.batches.remove(id)?;
        if !batch.overdue {
            self.shares.remove(&batch.service_id, 1);
        }
        Some(batch.lowered)
    }

    /// The batch was committed. Earlier ones that are under way for much longer than usual lose their places: the
    /// ledger works, and they may never end.
    pub(super) fn committed(&mut self, id: &ItemId, now: MonotonicTime) {
        let Some(UnderWay { number, since, attempt, .. }) = self.batches.get(id) else { return };
        let (number, is_timed) = (*number, attempt.is_some());
        if is_timed {
            self.usual.committed_after(now.since(*since));
        }
        let overdue_after = self.usual.overdue_after();
        for batch in self.batches.values_mut() {
            let is_overtaken = batch.number < number && !batch.overdue;
            if is_overtaken && now.since(batch.since) >= overdue_after {
                batch.overdue = true;
                self.shares.remove(&batch.service_id, 1);
            }
        }
    }

    /// Calls services that may take a place that is free. Returns these.
    pub(super) fn call(&mut self, now: MonotonicTime) -> Vec<ServiceId> {
        self.end_turns(now);
        let mut called = Vec::new();
        while self.free() > self.turns.called() {
            let share = self.shares.share(self.window.batches());
            let may_take = |service: &ServiceId| self.shares.used_by(service) < share;
            let Some(next) = self.turns.call_next(now, may_take) else { break };
            called.push(next);
        }
        called
    }

    /// The batches that are under way are about to be read from the store.
    pub(super) fn start_reading(&mut self) {
        self.reading = Some((self.next_number, HashSet::new()));
    }

    /// These batches were under way when the store was read. What has changed since then stays.
    pub(super) fn finish_reading(&mut self, found: Vec<(ServiceId, ItemId)>, now: MonotonicTime) {
        let Some((first_since, ended)) = self.reading.take() else { return };
        let ids: HashSet<ItemId> = found.iter().map(|(_, id)| *id).collect();
        let is_gone = |(id, batch): (&ItemId, &UnderWay)| {
            (batch.number < first_since && !ids.contains(id)).then_some(*id)
        };
        let gone: Vec<ItemId> = self.batches.iter().filter_map(is_gone).collect();
        for id in gone {
            self.remove(&id);
        }
        for (service_id, id) in found {
            if !ended.contains(&id) && !self.batches.contains_key(&id) {
                self.shares.add(&service_id, 1);
                self.insert(service_id, id, None, now);
            }
        }
    }

    fn insert(
        &mut self,
        service_id: ServiceId,
        id: ItemId,
        attempt: Option<u32>,
        since: MonotonicTime,
    ) {
        let (number, lowered) = (self.next_number, self.window.lowered());
        self.next_number += 1;
        let overdue = false;
        self.batches.insert(id, UnderWay { service_id, number, attempt, since, lowered, overdue });
    }

    fn free(&self) -> usize {
        self.window.batches().saturating_sub(self.shares.used())
    }

    /// Whether all batches with a place are under way for long. If one more is sent and does not end either, the
    /// next one waits twice as long.
    fn all_is_old(&self, now: MonotonicTime) -> bool {
        let counted = self.batches.values().filter(|batch| !batch.overdue);
        let ages = counted.map(|batch| now.since(batch.since));
        let (youngest, oldest) = ages
            .fold((Duration::MAX, Duration::ZERO), |(least, most), age| {
                (least.min(age), most.max(age))
            });
        let long = self.usual.overdue_after().max(oldest / 2).min(LONG);
        self.shares.used() == self.under_way() && youngest >= long
    }

    fn leave(&mut self, service_id: &ServiceId) {
        self.turns.leave(service_id);
        self.shares.set_wants_more(service_id, false);
    }

    fn end_turns(&mut self, now: MonotonicTime) {
        for service_id in self.turns.end_turns(now) {
            self.shares.set_wants_more(&service_id, false);
        }
    }
}
