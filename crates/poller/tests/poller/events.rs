//! Events trigger polls, and polling continues without them.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use grid_batch_core::{
    BatchResult, SystemClock,
    batches::{
        BatchState::{self, Committed},
        LedgerStatus,
    },
    ledger::{LedgerEvent, LedgerEventStream},
    mocks::MockLedger,
};
use grid_batch_nodes::NodePool;
use grid_batch_poller::{
    Backoff, EventFollower, EventMonitor, EventOptions, Job, Jobs, PollTrigger, ShutdownHandle,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::*;

type EventResult = BatchResult<LedgerEvent>;

/// Event streams that the test sends into.
#[derive(Default)]
struct TestStreams {
    subscribed: WatchedValue<Vec<String>>,
    senders: Mutex<HashMap<String, UnboundedSender<EventResult>>>,
}

impl TestStreams {
    fn send(&self, service: &str, event: EventResult) {
        self.senders.lock().unwrap()[service].send(event).unwrap();
    }

    /// Whether the monitor still listens to this service.
    fn is_open(&self, service: &str) -> bool {
        !self.senders.lock().unwrap()[service].is_closed()
    }

    fn wait_for(&self, count: usize) {
        self.subscribed.wait_until(|subscribed| subscribed.len() >= count);
    }
}

impl grid_batch_core::ledger::Ledger for TestStreams {
    grid_batch_core::unused_ledger_methods!();

    fn events<'a>(
        &'a self,
        service: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = BatchResult<LedgerEventStream>> + Send + 'a>> {
        let (sender, events) = unbounded_channel();
        self.senders.lock().unwrap().insert(service.to_owned(), sender);
        self.subscribed.change(|subscribed| subscribed.push(service.to_owned()));
        Box::pin(ready(Ok(into_stream(events))))
    }
}

fn into_stream(events: UnboundedReceiver<EventResult>) -> LedgerEventStream {
    stream::unfold(
        events,
        |mut events| async move { events.recv().await.map(|event| (event, events)) },
    )
    .boxed()
}

fn event() -> EventResult {
    Ok(LedgerEvent::default())
}

fn event_options() -> EventOptions {
    let backoff = Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(4) };
    EventOptions { reconnect_backoff: backoff, seed: Some(1), ..EventOptions::default() }
}

fn listen(
    events: Arc<dyn grid_batch_core::ledger::Ledger>,
    trigger: &PollTrigger,
    options: EventOptions,
) -> (Job<EventMonitor>, EventFollower) {
    let monitor = EventMonitor::new(events, trigger.clone(), options).unwrap();
    let follower = monitor.follower();
    (monitor.run(&Jobs::start().unwrap()), follower)
}

/// A monitor that polls only when it is triggered. Service "a" has a batch that never ends.
fn run_only_triggered(trigger: &PollTrigger) -> (Arc<Ledger>, Running) {
    let store = Store::with(&["a"]);
    store.rows.change(|rows| rows[0].checked_at = Some(rows[0].submitted_at));
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let hourly = builder(&store, &ledger).with_options(hourly()).with_trigger(trigger.clone());
    (ledger, run(hourly))
}

#[test]
fn connection_and_each_event_trigger_a_poll() {
    let trigger = PollTrigger::new();
    let (ledger, polling) = run_only_triggered(&trigger);
    let streams = Arc::new(TestStreams::default());
    let (listening, follower) =
        listen(Arc::<TestStreams>::clone(&streams), &trigger, event_options());
    follower.follow("a");
    ledger.wait_for(1);
    for count in 2..5 {
        streams.send("a", event());
        ledger.wait_for(count);
    }
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
    assert_eq!(ledger.requests.get().len(), 4);
    assert_eq!(streams.subscribed.get(), ["a"]);
}

#[test]
fn event_ends_a_batch_before_the_poll_interval() {
    let store = Store::with(&["a"]);
    store.rows.change(|rows| rows[0].checked_at = Some(rows[0].submitted_at));
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let trigger = PollTrigger::new();
    let streams = Arc::new(TestStreams::default());
    let (listening, follower) = listen(streams, &trigger, event_options());
    let polling = run(builder(&store, &ledger).with_options(hourly()).with_trigger(trigger));
    follower.follow("a");
    store.wait_for_state(0, Committed);
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
}

#[test]
fn node_must_confirm_its_ledger_again_after_a_stream_broke() {
    let (streams, pool) = (Arc::new(TestStreams::default()), NodePool::new(["http://node"]));
    let events = Arc::<TestStreams>::clone(&streams);
    let monitor = EventMonitor::new(events, PollTrigger::new(), event_options()).unwrap();
    let follower = monitor.follower();
    let listening = monitor.with_nodes(pool.clone()).run(&Jobs::start().unwrap());
    follower.follow("a");
    streams.wait_for(1);
    assert_eq!(pool.nodes()[0].identity().failures(), 0);
    streams.send("a", Err(unavailable()));
    streams.wait_for(2);
    assert_eq!(pool.nodes()[0].identity().failures(), 1);
    listening.wait_for_shutdown().unwrap();
}

#[test]
fn broken_stream_is_connected_again_and_polled() {
    let trigger = PollTrigger::new();
    let (ledger, polling) = run_only_triggered(&trigger);
    let streams = Arc::new(TestStreams::default());
    let (listening, follower) =
        listen(Arc::<TestStreams>::clone(&streams), &trigger, event_options());
    follower.follow("a");
    ledger.wait_for(1);
    streams.send("a", Err(unavailable()));
    streams.wait_for(2);
    ledger.wait_for(2);
    streams.senders.lock().unwrap().clear();
    streams.wait_for(3);
    ledger.wait_for(3);
    until(|| follower.is_live("a"));
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
}

#[test]
fn failed_connection_is_retried() {
    let trigger = PollTrigger::new();
    let (ledger, polling) = run_only_triggered(&trigger);
    let mut events = MockLedger::new();
    let mut times = 0;
    events.expect_events().returning(move |_| {
        times += 1;
        match times {
            1 => Box::pin(ready(Err(unavailable()))),
            2 => Box::pin(async { panic!("injected by the test") }),
            3 => {
                let panics = stream::once(async { panic!("injected by the test") });
                Box::pin(ready(Ok(panics.boxed())))
            }
            4 => Box::pin(std::future::pending()),
            _ => Box::pin(ready(Ok(stream::pending().boxed()))),
        }
    });
    let short = EventOptions { connect_limit: Duration::from_millis(5), ..event_options() };
    let (listening, follower) = listen(Arc::new(events), &trigger, short);
    follower.follow("a");
    // The third and the fifth attempt connected.
    ledger.wait_for(2);
    until(|| follower.is_live("a"));
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
}

#[test]
fn service_is_followed_once() {
    let streams = Arc::new(TestStreams::default());
    let (listening, follower) =
        listen(Arc::<TestStreams>::clone(&streams), &PollTrigger::new(), event_options());
    (0..100).for_each(|_| follower.follow("a"));
    follower.follow("b");
    streams.wait_for(2);
    until(|| follower.is_live("a") && follower.is_live("b"));
    listening.wait_for_shutdown().unwrap();
    assert_eq!(streams.subscribed.get().len(), 2);
}

#[test]
fn service_followed_longest_ago_is_evicted() {
    let streams = Arc::new(TestStreams::default());
    let two = EventOptions { sockets: 2, evict_after: Duration::ZERO, ..event_options() };
    let (listening, follower) =
        listen(Arc::<TestStreams>::clone(&streams), &PollTrigger::new(), two);
    ["a", "b", "a"].into_iter().for_each(|service| follower.follow(service));
    streams.wait_for(2);
    follower.follow("c");
    streams.wait_for(3);
    until(|| follower.is_live("c") && !streams.is_open("b"));
    assert!(follower.is_live("a") && !follower.is_live("b"));
    assert!(!follower.all_live(), "a service was evicted");
    listening.wait_for_shutdown().unwrap();
}

#[test]
fn batch_is_polled_at_its_pace_while_events_are_live() {
    let store = Store::new();
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let trigger = PollTrigger::new();
    let (listening, follower) = listen(Arc::new(TestStreams::default()), &trigger, event_options());
    follower.follow("a");
    until(|| follower.is_live("a"));
    // The store is read once, when it has no batch yet.
    let polling = builder(&store, &ledger).with_clock(Arc::new(SystemClock)).with_options(hourly());
    let polling = run(polling.with_trigger(trigger.clone()));
    store.reads_at.wait_until(|paces| !paces.is_empty());
    store.add("a", 0, BatchState::Pending, Duration::ZERO);
    trigger.submitted("a", "batch");
    ledger.wait_for(10);
    polling.wait_for_shutdown().unwrap();
    listening.wait_for_shutdown().unwrap();
}

#[test]
fn stopped_monitor_is_not_live_and_keeps_following() {
    let streams = Arc::new(TestStreams::default());
    let (listening, follower) =
        listen(Arc::<TestStreams>::clone(&streams), &PollTrigger::new(), event_options());
    follower.follow("a");
    until(|| follower.all_live());
    let stopped = listening.join().unwrap();
    assert!(!follower.all_live() && !streams.is_open("a"));
    let listening = stopped.run(&Jobs::start().unwrap());
    until(|| follower.all_live());
    drop(listening);
    until(|| !follower.all_live());
}

#[test]
fn options_without_sockets_or_delays_are_rejected() {
    let build = |options| {
        EventMonitor::new(Arc::new(TestStreams::default()), PollTrigger::new(), options).map(drop)
    };
    let error = build(EventOptions { sockets: 0, ..event_options() }).unwrap_err();
    assert_eq!(error.to_string(), "the monitor's sockets is zero; it must be greater");
    let never = Backoff { first: Duration::ZERO, longest: HOUR };
    assert!(build(EventOptions { reconnect_backoff: never, ..event_options() }).is_err());
}

#[test]
fn silent_stream_is_connected_again_and_again() {
    let trigger = PollTrigger::new();
    let streams = Arc::new(TestStreams::default());
    let options = EventOptions {
        event_tolerance: Duration::ZERO,
        silent_after: 1,
        silent_reconnect_backoff: event_options().reconnect_backoff,
        ..event_options()
    };
    let (listening, follower) = listen(Arc::<TestStreams>::clone(&streams), &trigger, options);
    follower.follow("a");
    until(|| follower.is_live("a"));
    let service = "a".parse().unwrap();
    follower.accepted(&service);
    follower.committed(&service);
    assert!(!follower.is_live("a"));
    streams.wait_for(3);
    assert!(!follower.is_live("a"), "no event has told of a commit");
    listening.wait_for_shutdown().unwrap();
}
