//! Events hurry the poller, and polling goes on without them.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use grid_batch_core::{
    BatchResult, BatchState::Committed, LedgerEvent, LedgerEventStream, LedgerEvents, LedgerStatus,
    ShutdownHandle, mocks::MockLedgerEvents,
};
use grid_batch_poller::{
    Backoff, EventMonitor, EventOptions, MonitorOptions, PollTrigger, RunningEventMonitor,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::*;

type Said = BatchResult<LedgerEvent>;

/// Streams that the test speaks into.
#[derive(Default)]
struct Streams {
    subscribed: Watched<Vec<String>>,
    speakers: Mutex<HashMap<String, UnboundedSender<Said>>>,
}

impl Streams {
    fn say(&self, service: &str, said: Said) {
        self.speakers.lock().unwrap()[service].send(said).unwrap();
    }

    /// Whether someone still listens.
    fn is_heard(&self, service: &str) -> bool {
        !self.speakers.lock().unwrap()[service].is_closed()
    }

    fn wait_for(&self, count: usize) {
        self.subscribed.wait_until(|subscribed| subscribed.len() >= count);
    }
}

impl LedgerEvents for Streams {
    fn subscribe<'a>(
        &'a self,
        service: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = BatchResult<LedgerEventStream>> + Send + 'a>> {
        let (speaker, said) = unbounded_channel();
        self.speakers.lock().unwrap().insert(service.to_owned(), speaker);
        self.subscribed.change(|subscribed| subscribed.push(service.to_owned()));
        Box::pin(ready(Ok(into_stream(said))))
    }
}

fn into_stream(said: UnboundedReceiver<Said>) -> LedgerEventStream {
    stream::unfold(said, |mut said| async move { said.recv().await.map(|event| (event, said)) })
        .boxed()
}

fn event() -> Said {
    Ok(LedgerEvent { transaction_id: None })
}

fn event_options() -> EventOptions {
    let backoff = Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(4) };
    EventOptions { reconnect_backoff: backoff, seed: Some(1), ..EventOptions::default() }
}

fn listen(
    events: Arc<dyn LedgerEvents>,
    trigger: &PollTrigger,
    options: EventOptions,
) -> RunningEventMonitor {
    EventMonitor::new(events, trigger.clone(), options).unwrap().run().unwrap()
}

/// A monitor that only polls when it is triggered, of a service "a" that has a batch for ever.
fn only_triggered(trigger: &PollTrigger) -> (Arc<Ledger>, Running) {
    let store = Store::with(&["a"]);
    store.rows.change(|rows| rows[0].checked_at = Some(rows[0].submitted_at));
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Pending));
    let patient = builder(&store, &ledger).with_options(patient()).with_trigger(trigger.clone());
    (ledger, run(patient))
}

#[test]
fn a_connection_and_each_event_trigger_a_poll() {
    let trigger = PollTrigger::new();
    let (ledger, polling) = only_triggered(&trigger);
    let streams = Arc::new(Streams::default());
    let listening = listen(Arc::<Streams>::clone(&streams), &trigger, event_options());
    listening.follower().follow("a");
    ledger.wait_for(1);
    for count in 2..5 {
        streams.say("a", event());
        ledger.wait_for(count);
    }
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
    assert_eq!(ledger.asked.get().len(), 4);
    assert_eq!(streams.subscribed.get(), ["a"]);
}

#[test]
fn an_event_ends_a_batch_without_waiting_for_the_interval() {
    let store = Store::with(&["a"]);
    store.rows.change(|rows| rows[0].checked_at = Some(rows[0].submitted_at));
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed));
    let trigger = PollTrigger::new();
    let streams = Arc::new(Streams::default());
    let listening = listen(streams, &trigger, event_options());
    let polling = run(builder(&store, &ledger).with_options(patient()).with_trigger(trigger));
    listening.follower().follow("a");
    store.wait_for_state(0, Committed);
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
}

#[test]
fn a_stream_that_breaks_or_ends_is_listened_to_again_and_polled_for_what_was_missed() {
    let trigger = PollTrigger::new();
    let (ledger, polling) = only_triggered(&trigger);
    let streams = Arc::new(Streams::default());
    let listening = listen(Arc::<Streams>::clone(&streams), &trigger, event_options());
    listening.follower().follow("a");
    ledger.wait_for(1);
    streams.say("a", Err(unavailable()));
    streams.wait_for(2);
    ledger.wait_for(2);
    streams.speakers.lock().unwrap().clear();
    streams.wait_for(3);
    ledger.wait_for(3);
    until(|| listening.follower().is_live("a"));
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
}

#[test]
fn what_cannot_be_listened_to_is_tried_again_whatever_goes_wrong() {
    let trigger = PollTrigger::new();
    let (ledger, polling) = only_triggered(&trigger);
    let mut events = MockLedgerEvents::new();
    let mut times = 0;
    events.expect_subscribe().returning(move |_| {
        times += 1;
        match times {
            1 => Box::pin(ready(Err(unavailable()))),
            2 => Box::pin(async { panic!("as the test wishes") }),
            3 => {
                let panics = stream::once(async { panic!("as the test wishes") });
                Box::pin(ready(Ok(panics.boxed())))
            }
            4 => Box::pin(std::future::pending()),
            _ => Box::pin(ready(Ok(stream::pending().boxed()))),
        }
    });
    let short = EventOptions { connect_limit: Duration::from_millis(5), ..event_options() };
    let listening = listen(Arc::new(events), &trigger, short);
    listening.follower().follow("a");
    // The third and the fifth time, there was a connection.
    ledger.wait_for(2);
    until(|| listening.follower().is_live("a"));
    listening.wait_for_shutdown().unwrap();
    polling.wait_for_shutdown().unwrap();
}

#[test]
fn a_service_is_followed_once_however_often_one_says_so() {
    let streams = Arc::new(Streams::default());
    let listening = listen(Arc::<Streams>::clone(&streams), &PollTrigger::new(), event_options());
    let follower = listening.follower();
    (0..100).for_each(|_| follower.follow("a"));
    follower.follow("b");
    streams.wait_for(2);
    until(|| follower.is_live("a") && follower.is_live("b"));
    listening.wait_for_shutdown().unwrap();
    assert_eq!(streams.subscribed.get().len(), 2);
}

#[test]
fn without_a_socket_left_the_service_followed_longest_ago_is_let_go() {
    let streams = Arc::new(Streams::default());
    let two = EventOptions { sockets: 2, ..event_options() };
    let listening = listen(Arc::<Streams>::clone(&streams), &PollTrigger::new(), two);
    let follower = listening.follower();
    ["a", "b", "a"].into_iter().for_each(|service| follower.follow(service));
    streams.wait_for(2);
    follower.follow("c");
    streams.wait_for(3);
    until(|| follower.is_live("c") && !streams.is_heard("b"));
    assert!(follower.is_live("a") && !follower.is_live("b"));
    assert!(!follower.all_live(), "one was turned away");
    listening.wait_for_shutdown().unwrap();
}

#[test]
fn polling_is_slow_while_all_events_are_live_and_quick_again_when_one_is_not() {
    let store = Store::new();
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Pending));
    let trigger = PollTrigger::new();
    let streams = Arc::new(Streams::default());
    let slow = EventOptions {
        reconnect_backoff: Backoff { first: HOUR, longest: HOUR },
        ..event_options()
    };
    let listening = listen(Arc::<Streams>::clone(&streams), &trigger, slow);
    let events = listening.follower();
    let options: MonitorOptions = options();
    let (quick, slow) = (options.poll_interval, options.poll_interval_with_events);
    let polling = run(builder(&store, &ledger).with_trigger(trigger).with_events(events.clone()));
    let wait_for = |interval| {
        store.paces.change(Vec::clear);
        store.paces.wait_until(|paces| paces.last().is_some_and(|pace| pace.interval == interval));
    };
    wait_for(quick);
    events.follow("a");
    wait_for(slow);
    streams.say("a", Err(unavailable()));
    wait_for(quick);
    polling.wait_for_shutdown().unwrap();
    listening.wait_for_shutdown().unwrap();
}

#[test]
fn a_stopped_monitor_is_not_live_and_remembers_whom_it_followed() {
    let streams = Arc::new(Streams::default());
    let listening = listen(Arc::<Streams>::clone(&streams), &PollTrigger::new(), event_options());
    let follower = listening.follower();
    follower.follow("a");
    until(|| follower.all_live());
    let stopped = listening.stop().unwrap();
    assert!(!follower.all_live() && !streams.is_heard("a"));
    let listening = stopped.run().unwrap();
    until(|| follower.all_live());
    drop(listening);
    until(|| !follower.all_live());
}

#[test]
fn options_without_sockets_or_waits_are_refused() {
    let build = |options| {
        EventMonitor::new(Arc::new(Streams::default()), PollTrigger::new(), options).map(drop)
    };
    let error = build(EventOptions { sockets: 0, ..event_options() }).unwrap_err();
    assert_eq!(error.to_string(), "the monitor's sockets is zero; it must be more");
    let never = Backoff { first: Duration::ZERO, longest: HOUR };
    assert!(build(EventOptions { reconnect_backoff: never, ..event_options() }).is_err());
}
