//! What the parts share in memory. Most of it subscribes to what is recorded.

use std::sync::Arc;

use grid_batch_api::AwaitedBatches;
use grid_batch_claims::{
    AwaitedEnds, ChangeCounters, ClaimRequests, InvalidServices, RecordedStream, log_recorded,
};
use grid_batch_core::ServiceId;
use grid_batch_core::events::RecordedSubscriber;
use grid_batch_core::queue::Admission;
use grid_batch_monitoring::StageTimes;
use grid_batch_poller::{
    Backoff, EventFollower, EventMonitor, EventOptions, NextBatchMonitor, NextBatchRequests,
    PollTrigger,
};
use grid_batch_queuer::{PlaceLimits, Places, ReadWindow, WakeUp};
use grid_batch_store::{Dependents, MonitorStore};
use grid_batch_submitter::{DelayedServices, SubmitterWaker};
use grid_batch_support::{JobTrigger, Stops};
use grid_batch_work::WorkTable;

use super::{StartError, base::Base};
use crate::PollConfig;

/// What the parts share in memory.
pub(super) struct Shared {
    pub(super) table: WorkTable,
    pub(super) waker: SubmitterWaker,
    pub(super) wake_up: WakeUp,
    pub(super) trigger: PollTrigger,
    pub(super) follower: Option<EventFollower>,
    pub(super) next_batches: Option<NextBatchRequests>,
    pub(super) changes: ChangeCounters,
    pub(super) invalid: InvalidServices,
    pub(super) stages: StageTimes,
    pub(super) awaited: AwaitedBatches,
    pub(super) awaited_ends: AwaitedEnds,
    pub(super) in_flight: Option<ReadWindow>,
    /// Has batches evaluated whose blockers have ended.
    pub(super) looks: JobTrigger,
    pub(super) delayed: DelayedServices,
}

impl Shared {
    /// Starts what asks the ledger before a batch is sent: the event streams and the questions about next batches.
    pub(super) fn start(base: &Base<'_>, stops: &mut Stops) -> Result<Self, StartError> {
        let config = base.config;
        let table = WorkTable::default();
        let waker = SubmitterWaker::new();
        let wake_submitter = waker.clone();
        let wake_up = WakeUp::new(move || wake_submitter.wake()).with_clock(config.clock());
        let trigger = PollTrigger::with_table(table.clone());
        let awaited_ends = AwaitedEnds::default();
        let delayed = DelayedServices::new(
            table.clone(),
            config.times().warn_after,
            config.delay_options().longest_delay(),
            Arc::clone(&config.machine_clock),
        )
        .with_several_batches(config.uses_declared_access());
        Ok(Self {
            follower: start_event_monitor(base, &trigger, stops)?,
            next_batches: start_ask_ahead(base, &trigger, stops),
            in_flight: in_flight_window(base, &table, &wake_up),
            awaited: awaited(base, &awaited_ends),
            table,
            waker,
            wake_up,
            trigger,
            changes: ChangeCounters::default(),
            invalid: InvalidServices::default(),
            stages: StageTimes::new(),
            awaited_ends,
            looks: JobTrigger::default(),
            delayed,
        })
    }

    /// The subscribers to what is recorded, in their order.
    pub(super) fn stream(&self, base: &Base<'_>, claims: &ClaimRequests) -> RecordedStream {
        let stream = RecordedStream::default()
            .with("counters", self.changes.clone())
            .with("invalid services", self.invalid.clone())
            .with("log", log_recorded)
            .with("stage times", self.stages.clone())
            .with("requests that wait", self.awaited.clone())
            .with("requests that wait elsewhere", self.awaited_ends.clone())
            .with("delayed services", self.delayed.clone())
            .with("events", self.follower.clone());
        let looks = Dependents::request_looks(&base.store, &self.looks);
        with_queue(stream, self.in_flight.clone(), self.wake_up.clone(), looks)
            .with("poller", self.trigger.clone())
            .with("questions", self.next_batches.clone())
            .with("claims", claims.clone())
    }

    /// The window of all batches under way, if that is limited.
    pub(super) fn window(&self) -> Option<Places> {
        self.in_flight.as_ref().map(|in_flight| in_flight.window().clone())
    }

    /// What gives batches their places: the window, or the nodes of a ledger that has several.
    pub(super) fn admission(&self, base: &Base<'_>) -> Option<Arc<dyn Admission>> {
        if let Some(window) = self.window() {
            return Some(Arc::new(window));
        }
        if !base.nodes.has_own_nodes() {
            return None;
        }
        let places = usize::try_from(base.config.submit.concurrency).unwrap_or(usize::MAX);
        let wake_up = self.wake_up.clone();
        let wake = move |service| wake_up.wake(service);
        let (nodes, clock) = (base.nodes.clone(), Arc::clone(&base.config.machine_clock));
        let node_of = move |service: &ServiceId| nodes.only_node_of(service.as_str());
        let limits = PlaceLimits::of_nodes(places, places.div_ceil(2), node_of);
        Some(Arc::new(Places::new(limits, self.table.clone(), clock, wake)))
    }
}

/// The window of batches under way, if several of a service may be.
fn in_flight_window(base: &Base<'_>, table: &WorkTable, wake_up: &WakeUp) -> Option<ReadWindow> {
    if !base.config.uses_declared_access() {
        return None;
    }
    let (wake_up, claims) = (wake_up.clone(), base.claims.clone());
    let (limits, clock) =
        (PlaceLimits::window(base.config.submit.in_flight), Arc::clone(&base.config.machine_clock));
    let wake = move |service| wake_up.wake(service);
    let window = Places::new(limits, table.clone(), clock, wake);
    Some(ReadWindow::new(window, move || Ok(claims.under_way()?)))
}

fn awaited(base: &Base<'_>, awaited_ends: &AwaitedEnds) -> AwaitedBatches {
    if base.claims.work_notifications().is_none() {
        return AwaitedBatches::default();
    }
    let ends = awaited_ends.clone();
    AwaitedBatches::new(move |ids| ends.awaited(ids))
}

/// Also subscribes to the events of services with open batches before any of them is submitted.
fn start_event_monitor(
    base: &Base<'_>,
    trigger: &PollTrigger,
    stops: &mut Stops,
) -> Result<Option<EventFollower>, StartError> {
    let (ledger, testing) = (&base.config.ledger, &base.config.testing);
    if !base.ledger.facts().has_events || ledger.event_sockets == 0 {
        return Ok(None);
    }
    let options = EventOptions {
        sockets: ledger.event_sockets,
        reconnect_backoff: Backoff {
            first: testing.reconnect_first,
            longest: testing.reconnect_longest,
        },
        ..EventOptions::default()
    };
    let monitor = EventMonitor::new(Arc::clone(&base.ledger), trigger.clone(), options);
    let monitor = monitor.map_err(StartError::part)?.with_nodes(base.config.nodes.clone());
    let follower = monitor.follower();
    stops.first_jobs([monitor.run(&base.jobs)]);
    let depths = base.store.depths(None, ledger.event_sockets).map_err(StartError::part)?;
    depths
        .iter()
        .map(|depth| &depth.service_id)
        .filter(|service| base.ledger.check_service_id(service).is_ok())
        .for_each(|service| follower.follow(service.as_str()));
    Ok(Some(follower))
}

/// Asks about the next batch of each service, if the ledger needs that.
fn start_ask_ahead(
    base: &Base<'_>,
    trigger: &PollTrigger,
    stops: &mut Stops,
) -> Option<NextBatchRequests> {
    if !base.ledger.facts().asks_before_sending() {
        return None;
    }
    let store = MonitorStore::new(base.claims.clone(), RecordedStream::default());
    let connections = PollConfig::CONNECTIONS;
    let monitor = NextBatchMonitor::new(store, Arc::clone(&base.ledger), connections)
        .with_nodes(base.nodes.clone())
        .with_table(trigger.table().clone());
    let requests = monitor.requests();
    stops.first_jobs([monitor.run(&base.jobs)]);
    Some(requests)
}

/// The window returns the place of an ended batch before its service is woken, and before dependents are looked for. So
/// what follows the batch gets the place.
fn with_queue(
    stream: RecordedStream,
    window: impl RecordedSubscriber + 'static,
    wake_up: WakeUp,
    looks: impl RecordedSubscriber + 'static,
) -> RecordedStream {
    stream.with("in-flight window", window).with("queue", wake_up).with("dependents", looks)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use grid_batch_core::ItemId;
    use grid_batch_core::batches::{BatchState, Change, Event, LedgerStatus};
    use grid_batch_core::claims::{Claim, Takeover};
    use grid_batch_core::events::Recorded;

    use super::*;

    #[test]
    fn window_is_called_before_the_queue_and_dependents() {
        let (sender, called) = channel();
        let (woken, looked) = (sender.clone(), sender.clone());
        let wake_up = WakeUp::new(move || woken.send("woken").unwrap());
        let window = move |entry: Recorded<'_>| {
            let name = match entry {
                Recorded::Change { .. } => "ended",
                Recorded::TakenOver(_) => "claimed",
                _ => panic!("{entry:?}"),
            };
            sender.send(name).unwrap();
        };
        let looks = move |_: Recorded<'_>| looked.send("looked").unwrap();
        let stream = with_queue(RecordedStream::default(), window, wake_up, looks);
        let service_id: ServiceId = "circuit::service".parse().unwrap();
        let event = Event::status(LedgerStatus::Committed);
        let change = &Change::new(service_id.clone(), ItemId::from_bytes([1; 64]), event);
        let state = BatchState::Committed;
        stream.recorded(Recorded::Change { change, state, next_waits: true });
        let claims = vec![Claim { service_id, epoch: 1 }];
        stream.recorded(Recorded::TakenOver(&Takeover { claims, ..Takeover::default() }));
        let called: Vec<_> = called.try_iter().collect();
        assert_eq!(called, ["ended", "woken", "looked", "claimed", "woken", "looked"]);
    }
}
