use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use grid_batch_core::batches::Event;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ItemId, MonotonicTime, ServiceId};
use grid_batch_work::{DueKind, Entered, Place, ServiceSending, Work};

use super::{PlaceLimits, window_size::WindowSize};

/// The sums over the records of the table that concern places, and the services that wait for one.
#[derive(Debug)]
pub(super) struct State {
    pub(super) window: WindowSize,
    used: usize,
    /// How many services were called and have not asked yet. A place is kept free for each.
    called: usize,
    /// How many services want more places.
    wanting: usize,
    /// How many places the services in `wanting` use.
    used_by_wanting: usize,
    /// The places of each node. The key is `None` if places do not belong to nodes.
    nodes: HashMap<Option<usize>, NodePlaces>,
    /// The number of the next batch. It shows which batches were added after a read of the store began.
    next_number: u64,
    /// Counts the services that have waited.
    next_turn: i64,
    /// While the store is read: the number of the first batch that was added since, and the batches that have ended.
    reading: Option<(u64, HashSet<String>)>,
}

#[derive(Debug, Default)]
struct NodePlaces {
    used: usize,
    called: usize,
    /// Services that wait for a place, in order.
    waiting: BTreeMap<i64, ServiceId>,
}

/// The rules of places, with access to the locked state.
pub(super) struct Rules<'a> {
    pub(super) limits: &'a PlaceLimits,
    pub(super) state: &'a mut State,
    pub(super) work: &'a mut Work,
    pub(super) now: MonotonicTime,
}

/// A service that was called and does not ask within this time loses its turn.
const TURN_LIMIT: Duration = Duration::from_secs(2);

/// Limit on the number of services that wait for places. Further ones are found by the queue's scan.
const MOST_WAITING: usize = 100_000;

/// If all batches with a place have been under way for longer than this, one more may be sent although no place is
/// free. Batches that the ledger does not end must not stop everything else.
const LONG: Duration = Duration::from_secs(30);

impl State {
    pub(super) fn new(initial: usize, largest: usize) -> Self {
        Self {
            window: WindowSize::new(initial, largest),
            used: 0,
            called: 0,
            wanting: 0,
            used_by_wanting: 0,
            nodes: HashMap::new(),
            next_number: 0,
            next_turn: 0,
            reading: None,
        }
    }

    /// Prepares for a read of the batches under way from the store.
    pub(super) fn start_reading(&mut self) {
        self.reading = Some((self.next_number, HashSet::new()));
    }

    /// Changes the record of a service, and the sums.
    fn count_change(
        &mut self,
        work: &mut Work,
        service_id: &str,
        change: impl FnOnce(&mut Entered<'_>),
    ) {
        let mut entered = work.enter(service_id);
        self.count(&entered.service.sending, |sum, part| sum - part);
        change(&mut entered);
        self.count(&entered.service.sending, |sum, part| sum + part);
        work.remove_unneeded(service_id, None);
    }

    /// Adds the record of a service to the sums, or subtracts it.
    fn count(&mut self, service: &ServiceSending, change: fn(usize, usize) -> usize) {
        let called = usize::from(service.called.is_some());
        self.used = change(self.used, service.places);
        self.called = change(self.called, called);
        if service.wants_more {
            self.wanting = change(self.wanting, 1);
            self.used_by_wanting = change(self.used_by_wanting, service.places);
        }
        let node = self.nodes.entry(service.node).or_default();
        node.used = change(node.used, service.places);
        node.called = change(node.called, called);
        if node.used == 0 && node.called == 0 && node.waiting.is_empty() {
            self.nodes.remove(&service.node);
        }
    }
}

impl Rules<'_> {
    /// How many batches are under way and have a place.
    pub(super) fn under_way(&self) -> usize {
        self.work.due.count(DueKind::Place)
    }

    /// Takes up to `wanted` places of this node. A service that gets fewer waits for its turn. Also returns another
    /// service that was called instead.
    pub(super) fn admit(
        &mut self,
        service_id: &ServiceId,
        node: Option<usize>,
        wanted: usize,
    ) -> (usize, Option<ServiceId>) {
        let id = service_id.as_str();
        let was_called = self.service(id).is_some_and(|service| service.called.is_some());
        self.change(id, |service| {
            if service.has_no_place() {
                service.node = node;
            }
            service.wants_more = true;
        });
        self.end_turn(id);
        let node = self.service(id).and_then(|service| service.node);
        let own = self.share().saturating_sub(self.used_by(id));
        let admitted = match own.min(self.free_for(node, was_called)) {
            0 if self.free() == 0 && self.all_is_old() => 1,
            own => own.min(wanted),
        };
        self.change(id, |service| service.places += admitted);
        if admitted < wanted {
            self.wait(service_id, was_called && admitted == 0);
        } else {
            self.leave(id);
        }
        // As long as places are free, a service that was called but does not ask must not block others.
        let called = self.state.nodes.get(&node).map_or(0, |node| node.called);
        let is_free = admitted == 0 && self.free_at(node, 0, 0) > called;
        (admitted, is_free.then(|| self.call_next(node)).flatten())
    }

    /// Assigns one of the places of its service to a batch.
    pub(super) fn taken(&mut self, batch: &TakenBatch) {
        let (service_id, batch_id) = (batch.service_id.as_str(), batch.batch_id.to_string());
        // The batch was found in the store before, or this process does not know yet that its last attempt has ended.
        self.remove_place(service_id, &batch_id);
        self.insert(service_id, &batch_id, Some(batch.attempt));
    }

    /// Whether the event is about an attempt before the one that is under way.
    pub(super) fn was_taken_again(&self, service_id: &str, batch_id: &str, event: Event) -> bool {
        let present = self.place(service_id, batch_id).and_then(|place| place.attempt);
        event.attempt().is_some_and(|attempt| present.is_some_and(|present| attempt < present))
    }

    /// Returns places for which the service has no batch.
    pub(super) fn release(&mut self, service_id: &str, places: usize) {
        self.remove_places(service_id, places);
        self.leave(service_id);
    }

    /// Returns places of a service that asks again.
    pub(super) fn put_back(&mut self, service_id: &str, places: usize) {
        if self.used_by(service_id) == 0 {
            return;
        }
        self.change(service_id, |service| service.wants_more = true);
        self.remove_places(service_id, places);
        self.stop_waiting(service_id);
        self.start_turn(service_id);
    }

    /// Returns places of a service.
    pub(super) fn remove_places(&mut self, service_id: &str, places: usize) {
        self.change(service_id, |service| service.places = service.places.saturating_sub(places));
    }

    /// Removes a batch that is no longer under way. If it was, returns how often the window had been lowered when it
    /// was sent.
    pub(super) fn remove(&mut self, service_id: &str, batch_id: &str) -> Option<u64> {
        if let Some((_, ended)) = &mut self.state.reading {
            ended.insert(batch_id.to_owned());
        }
        let lowered = self.remove_place(service_id, batch_id);
        self.work.remove_unneeded(service_id, Some(batch_id));
        lowered
    }

    /// Records that the batch was committed. Earlier batches that have been under way for much longer than usual, and
    /// much longer than this one, lose their places: the ledger works, but they may never end.
    pub(super) fn committed(&mut self, service_id: &str, batch_id: &str) {
        let Some(place) = self.place(service_id, batch_id) else { return };
        let (number, since) =
            (place.number, place.since.as_ref().filter(|_| place.attempt.is_some()));
        // The usual time is learned slowly, only by a poller, and counts from the acceptance.
        let own = since.map(|since| self.now.since(since.at()));
        let after = overdue_after(self.work.times.usual_of_ledger().max(own));
        let keys = self.work.due.of(DueKind::Place);
        let old = keys.take_while(|(since, _)| self.now.since(*since) >= after);
        let old: Vec<_> = old.map(|(since, key)| (since, key.clone())).collect();
        for (since, key) in old {
            let Some(batch_id) = &key.batch_id else { continue };
            let place = self.work.services.get_mut(&key.service_id);
            let place = place.and_then(|service| service.batches.get_mut(batch_id));
            let place = place.and_then(|batch| batch.sending.place.as_mut());
            if let Some(place) = place.filter(|place| place.number < number) {
                let service_id = key.service_id.clone();
                self.work.due.set(&mut place.since, DueKind::Overdue, since, key);
                self.remove_places(&service_id, 1);
            }
        }
    }

    /// Calls the services that may take a free place, and returns them.
    pub(super) fn call(&mut self) -> Vec<ServiceId> {
        self.end_turns();
        let waiting = self.state.nodes.iter().filter(|(_, node)| !node.waiting.is_empty());
        let mut nodes: Vec<Option<usize>> = waiting.map(|(node, _)| *node).collect();
        let mut called = Vec::new();
        while !nodes.is_empty() {
            nodes.retain(|node| {
                let next = if self.kept_free(*node) > 0 { self.call_next(*node) } else { None };
                called.extend(next.clone());
                next.is_some()
            });
        }
        called
    }

    /// Takes over the batches that were under way when the store was read. Changes since then are kept.
    pub(super) fn finish_reading(&mut self, found: &[(ServiceId, ItemId)]) {
        let Some((first_since, ended)) = self.state.reading.take() else { return };
        let found: Vec<(String, &ServiceId)> =
            found.iter().map(|(service_id, id)| (id.to_string(), service_id)).collect();
        let ids: HashSet<&str> = found.iter().map(|(batch_id, _)| batch_id.as_str()).collect();
        let known = [DueKind::Place, DueKind::Overdue].map(|kind| self.work.due.of(kind));
        let known: Vec<_> = known.into_iter().flatten().map(|(_, key)| key.clone()).collect();
        for key in known {
            let Some(batch_id) = &key.batch_id else { continue };
            let place = self.place(&key.service_id, batch_id);
            let is_older = place.is_some_and(|place| place.number < first_since);
            if is_older && !ids.contains(&**batch_id) {
                self.remove(&key.service_id, batch_id);
            }
        }
        for (batch_id, service_id) in &found {
            let service_id = service_id.as_str();
            if !ended.contains(batch_id) && self.place(service_id, batch_id).is_none() {
                self.change(service_id, |service| service.places += 1);
                self.insert(service_id, batch_id, None);
            }
        }
    }

    fn place(&self, service_id: &str, batch_id: &str) -> Option<&Place> {
        self.work.batch(service_id, batch_id)?.sending.place.as_ref()
    }

    fn insert(&mut self, service_id: &str, batch_id: &str, attempt: Option<u32>) {
        let (number, lowered) = (self.state.next_number, self.state.window.lowered());
        self.state.next_number += 1;
        let mut entered = self.work.enter(service_id);
        let (key, batch, due) = entered.batch(batch_id);
        let place = Place { number, attempt, lowered, since: None };
        let place = batch.sending.place.insert(place);
        due.set(&mut place.since, DueKind::Place, self.now, key);
    }

    /// Removes the place of a batch, but keeps the record of the batch. Returns how often the window had been lowered.
    fn remove_place(&mut self, service_id: &str, batch_id: &str) -> Option<u64> {
        let Place { lowered, mut since, .. } =
            self.work.batch_mut(service_id, batch_id)?.sending.place.take()?;
        let is_overdue = since.as_ref().is_some_and(|since| since.kind() == DueKind::Overdue);
        self.work.due.clear(&mut since);
        if !is_overdue {
            self.remove_places(service_id, 1);
        }
        Some(lowered)
    }

    fn service(&self, service_id: &str) -> Option<&ServiceSending> {
        self.work.service(service_id).map(|service| &service.sending)
    }

    fn used_by(&self, service_id: &str) -> usize {
        self.service(service_id).map_or(0, |service| service.places)
    }

    /// How many places a service that wants more may use: the places that the other services do not use, divided by the
    /// number of services that want more, but at least one.
    fn share(&self) -> usize {
        let State { window, used, wanting, used_by_wanting, .. } = &*self.state;
        let left = window.batches().saturating_sub(used - used_by_wanting);
        (left / (*wanting).max(1)).max(1).min(self.limits.of_service)
    }

    /// How many places of the instance are free.
    fn free(&self) -> usize {
        self.state.window.batches().saturating_sub(self.state.used)
    }

    /// How many more places this node may have if `kept` are kept free, `kept_here` of them for this node.
    fn free_at(&self, node: Option<usize>, kept: usize, kept_here: usize) -> usize {
        let left = self.free().saturating_sub(kept);
        let Some((most, _)) = &self.limits.of_node else { return left };
        let used = self.state.nodes.get(&node).map_or(0, |node| node.used);
        (*most).min(left).saturating_sub(used + kept_here)
    }

    /// How many more places this node may have, besides those for services whose turn it is.
    fn kept_free(&self, node: Option<usize>) -> usize {
        let called = self.state.nodes.get(&node).map_or(0, |node| node.called);
        self.free_at(node, self.state.called, called)
    }

    /// The same for a service. If it was its turn, it gets one place before the others whose turn it is.
    fn free_for(&self, node: Option<usize>, was_called: bool) -> usize {
        let least = if was_called { self.free_at(node, 0, 0).min(1) } else { 0 };
        self.kept_free(node).max(least)
    }

    /// Whether all batches with a place have been under way for long. If one more is sent and does not end either, the
    /// next one waits twice as long.
    fn all_is_old(&self) -> bool {
        let mut with_place = self.work.due.of(DueKind::Place).map(|(since, _)| since);
        let oldest = with_place.next();
        let youngest = with_place.next_back().or(oldest);
        let [oldest, youngest] =
            [oldest, youngest].map(|since| since.map(|since| self.now.since(since)));
        let usual = overdue_after(self.work.times.usual_of_ledger());
        let long = usual.max(oldest.unwrap_or_default() / 2).min(LONG);
        self.state.used == self.under_way() && youngest.is_none_or(|youngest| youngest >= long)
    }

    /// Makes the service wait. If it was its turn, it becomes the first.
    fn wait(&mut self, service_id: &ServiceId, was_called: bool) {
        let Some(service) = self.service(service_id.as_str()) else { return };
        let (node, waits) = (service.node, service.waits.is_some());
        let node = self.state.nodes.entry(node).or_default();
        if waits || node.waiting.len() >= MOST_WAITING {
            return;
        }
        self.state.next_turn += 1;
        let turn = if was_called { -self.state.next_turn } else { self.state.next_turn };
        node.waiting.insert(turn, service_id.clone());
        self.change(service_id.as_str(), |service| service.waits = Some(turn));
    }

    /// Records that the service no longer wants a place.
    fn leave(&mut self, service_id: &str) {
        self.stop_waiting(service_id);
        self.end_turn(service_id);
        self.change(service_id, |service| service.wants_more = false);
    }

    fn stop_waiting(&mut self, service_id: &str) {
        let waits = self.service(service_id).map(|service| (service.node, service.waits));
        let Some((node, Some(turn))) = waits else { return };
        if let Some(node) = self.state.nodes.get_mut(&node) {
            node.waiting.remove(&turn);
        }
        self.change(service_id, |service| service.waits = None);
    }

    /// Calls the first service that waits for a place of this node and may take one. The others stay.
    fn call_next(&mut self, node: Option<usize>) -> Option<ServiceId> {
        let share = self.share();
        let mut waiting = self.state.nodes.get(&node)?.waiting.values();
        let next = waiting.find(|id| self.used_by(id.as_str()) < share)?.clone();
        self.stop_waiting(next.as_str());
        self.start_turn(next.as_str());
        Some(next)
    }

    fn start_turn(&mut self, service_id: &str) {
        let ends_at = self.now.plus(TURN_LIMIT);
        self.state.count_change(self.work, service_id, |entered| {
            let (key, due) = (entered.key.clone(), &mut *entered.due);
            due.set(&mut entered.service.sending.called, DueKind::Turn, ends_at, key);
        });
    }

    fn end_turn(&mut self, service_id: &str) {
        self.state.count_change(self.work, service_id, |entered| {
            entered.due.clear(&mut entered.service.sending.called);
        });
    }

    /// Ends the turns of services that have not asked in time.
    fn end_turns(&mut self) {
        let ended = self.work.due.due(DueKind::Turn, self.now);
        let ended: Vec<_> = ended.map(|key| key.service_id.clone()).collect();
        for service_id in ended {
            self.end_turn(&service_id);
            self.change(&service_id, |service| service.wants_more = false);
        }
    }

    fn change(&mut self, service_id: &str, change: impl FnOnce(&mut ServiceSending)) {
        self.state.count_change(self.work, service_id, |entered| {
            change(&mut entered.service.sending);
        });
    }
}

/// A batch that has been under way for longer than this is overdue if a later one was committed.
fn overdue_after(usual: Option<Duration>) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(2);
    const UNKNOWN: Duration = Duration::from_secs(30);
    usual.map_or(UNKNOWN, |usual| SHORTEST.max(usual.saturating_mul(4)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grid_batch_core::batches::{BatchState, Change, LedgerStatus};
    use grid_batch_core::ledger::Outcome;
    use grid_batch_core::queue::Admission;
    use grid_batch_core::{Clock, ManualClock};
    use grid_batch_work::WorkTable;
    use proptest::prelude::*;

    use super::{super::Places, *};

    #[test]
    fn overdue_is_much_longer_than_usual() {
        assert_eq!(overdue_after(None), Duration::from_secs(30));
        assert_eq!(overdue_after(Some(Duration::from_secs(10))), Duration::from_secs(40));
        assert_eq!(overdue_after(Some(Duration::from_millis(100))), Duration::from_secs(2));
    }

    /// Checks that the sums match the records of the table, and that each service waits where its record says.
    fn check(places: &Places) {
        let mut state = places.0.state.lock().unwrap();
        let work = places.0.table.lock();
        let mut counted = State::new(1, 1);
        for service in work.services.values() {
            counted.count(&service.sending, |sum, part| sum + part);
        }
        let sums = |it: &State| (it.used, it.called, it.wanting, it.used_by_wanting);
        assert_eq!(sums(&state), sums(&counted));
        let nodes = std::mem::take(&mut state.nodes);
        for (node, it) in &nodes {
            let counted = counted.nodes.get(node).map_or((0, 0), |it| (it.used, it.called));
            assert_eq!((it.used, it.called), counted, "{node:?}");
            for (turn, service) in &it.waiting {
                let known = &work.service(service.as_str()).unwrap().sending;
                assert_eq!((known.node, known.waits), (*node, Some(*turn)));
            }
        }
        let waiting: usize = nodes.values().map(|node| node.waiting.len()).sum();
        let known = work.services.values().filter(|it| it.sending.waits.is_some()).count();
        assert_eq!(waiting, known);
        assert_eq!(work.due.count(DueKind::Turn), state.called);
        let batches = work.services.values().flat_map(|service| service.batches.values());
        let with_place = batches.filter(|batch| batch.sending.place.is_some()).count();
        let entries = work.due.count(DueKind::Place) + work.due.count(DueKind::Overdue);
        assert_eq!(with_place, entries);
        state.nodes = nodes;
    }

    /// Applies one action to a service and one of its batches.
    fn step(places: &Places, clock: &ManualClock, action: u8, name: u8, number: u8) {
        let service_id: ServiceId = format!("circuit::{name}").parse().unwrap();
        let batch_id = ItemId::from_bytes([number; 64]);
        let attempt = u32::from(number % 3) + 1;
        let batch = TakenBatch {
            service_id: service_id.clone(),
            batch_id,
            attempt,
            epoch: 1,
            serialized_batch: Vec::new(),
            deadline: None,
            trace: None,
            joins_list: false,
        };
        let outcome = |outcome| Event::Outcome { attempt, outcome };
        let record = |event, state| {
            places.recorded(&Change::new(service_id.clone(), batch_id, event), state);
        };
        let wanted = usize::from(number % 4) + 1;
        match action {
            0 => clock.advance(Duration::from_millis(u64::from(number) * 500)),
            1 | 2 => {
                let admitted = places.admit(&service_id, wanted);
                if admitted > 0 {
                    places.taken(&service_id, &[&batch]);
                    match number % 2 {
                        0 => places.release(&service_id, admitted - 1),
                        _ => places.put_back(&service_id, admitted - 1),
                    }
                }
            }
            3 => {
                let admitted = places.admit(&service_id, wanted);
                places.put_back(&service_id, admitted);
            }
            4 => places.given_back(&batch),
            5 => places.submission_ended(&service_id),
            6 => record(Event::status(LedgerStatus::Committed), BatchState::Committed),
            7 => record(outcome(Outcome::Busy), BatchState::Delayed),
            8 => {
                let found = (0..number % 5).map(|n| (service_id.clone(), [n; 64]));
                let found = found.map(|(id, bytes)| (id, ItemId::from_bytes(bytes))).collect();
                places.refresh(|| Ok(found)).unwrap();
            }
            _ => {
                let (mut work, now) = (places.0.table.lock(), clock.monotonic());
                work.record_unsent(service_id.as_str(), &batch_id.to_string(), 1, now);
                work.prune(now, Duration::from_secs(1), |_| false);
            }
        }
    }

    /// Ends all batches, without any called service asking.
    fn end_all(places: &Places, clock: &ManualClock) {
        for name in (0..6).cycle().take(60) {
            places.refresh(|| Ok(Vec::new())).unwrap();
            let service_id: ServiceId = format!("circuit::{name}").parse().unwrap();
            (0..2).for_each(|_| places.submission_ended(&service_id));
            clock.advance(TURN_LIMIT);
            let mut work = places.0.table.lock();
            for number in 0..8 {
                let batch_id = ItemId::from_bytes([number; 64]).to_string();
                work.was_sent_again(service_id.as_str(), &batch_id, 1);
            }
        }
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_table(
            of_nodes: bool,
            size in 1_usize..8,
            steps in proptest::collection::vec((0_u8..10, 0_u8..6, 0_u8..8), 1..150),
        ) {
            let limits = if of_nodes {
                PlaceLimits::of_nodes(size, 3, |service: &ServiceId| {
                    let node = service.as_str().bytes().last()? % 4;
                    (node > 0).then_some(usize::from(node))
                })
            } else {
                PlaceLimits { initial: size, ..PlaceLimits::window(size) }
            };
            let clock = Arc::new(ManualClock::default());
            let table = WorkTable::default();
            let places = Places::new(limits, table, Arc::<ManualClock>::clone(&clock), |_| ());
            for (action, name, number) in steps {
                step(&places, &clock, action, name, number);
                check(&places);
            }
            end_all(&places, &clock);
            let work = places.0.table.lock();
            prop_assert!(work.services.is_empty(), "{:?}", work.services);
            prop_assert!(places.0.state.lock().unwrap().nodes.is_empty());
        }
    }
}
