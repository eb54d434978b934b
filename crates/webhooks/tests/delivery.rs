//! Delivery over real HTTP, from a SQLite database to receivers with bad answers.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_core::future::BoxFuture;
use grid_batch_core::batches::{BatchState, IntakeStore, NewBatch, TraceContext};
use grid_batch_core::events::{
    BatchEvent, EventFilter, EventId, EventKind, EventPage, EventPosition, EventStore,
    PositionedEvent,
};
use grid_batch_core::mocks::MockEventStore;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::webhooks::{
    EventReceiver, FailedDelivery, NewWebhook, Webhook, WebhookId, WebhookSecret, WebhookStore,
};
use grid_batch_core::{BatchError, BatchResult, ItemId};
use grid_batch_http::{HttpError, HttpResponse, mocks::MockHttpRequests};
use grid_batch_store::{Store, StoreOptions};
use grid_batch_test_support::webhook_receiver::{ReceivedMessage, WebhookReceiver};
use grid_batch_webhooks::{
    AllowedNetworks, Deliverer, DeliveryOptions, DeliveryParts, Job, Jobs, ShutdownHandle,
};
use sha2::{Digest, Sha256};

struct Fixture {
    store: Arc<Store>,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/batches.db", directory.path().display());
        let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
        Self { store: Arc::new(store), _directory: directory }
    }

    fn create(&self, receiver: &WebhookReceiver) -> WebhookId {
        self.create_at(receiver.url())
    }

    fn create_at(&self, url: String) -> WebhookId {
        let filter = EventFilter {
            services: BTreeSet::from(["a::b".parse().unwrap()]),
            kinds: BTreeSet::from([EventKind::Accepted]),
        };
        let new = NewWebhook { url, secret: WebhookSecret::new(vec![7; 24]), filter };
        self.store.create_webhook(&new, &OperatorRequest::program()).unwrap().unwrap().id
    }

    fn parts(&self) -> DeliveryParts {
        DeliveryParts { events: self.store.clone(), webhooks: self.store.clone(), traces: None }
    }

    fn deliver(&self, options: DeliveryOptions) -> Job {
        Deliverer::start(&Jobs::start().unwrap(), self.parts(), options).unwrap()
    }

    fn add(&self, service: &str, number: u8) {
        self.add_traced(service, number, None);
    }

    fn add_traced(&self, service: &str, number: u8, trace: Option<TraceContext>) {
        let batch = NewBatch {
            service_id: service.parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            signer: None,
            transaction_ids: vec![ItemId::from_bytes([number + 100; 64])],
            serialized_batch: vec![number],
            declared_access: None,
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace,
        };
        self.store.add(&[&[batch]]).unwrap().remove(0).unwrap();
    }

    fn webhook(&self, id: WebhookId) -> Webhook {
        self.store.webhooks().unwrap().into_iter().find(|webhook| webhook.id == id).unwrap()
    }

    fn failed(&self, id: WebhookId) -> Vec<FailedDelivery> {
        self.store.failed_deliveries(id, None, 9).unwrap().unwrap()
    }

    fn wait_until(&self, id: WebhookId, what: &str, condition: impl Fn(&Webhook) -> bool) {
        let started = Instant::now();
        while !condition(&self.webhook(id)) {
            assert!(started.elapsed().as_secs() < 20, "{what}: {:?}", self.webhook(id));
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn wait_for_error(&self, id: WebhookId, part: &str) {
        self.wait_until(id, part, |webhook| {
            webhook.last_error.as_ref().is_some_and(|error| error.contains(part))
        });
    }
}

/// Options with short times that allow addresses of this machine.
fn options() -> DeliveryOptions {
    DeliveryOptions {
        first_delay: Duration::from_millis(2),
        longest_delay: Duration::from_millis(4),
        poll_interval: Duration::from_millis(5),
        request_timeout: Duration::from_secs(20),
        allowed: AllowedNetworks::new(["127.0.0.1".parse().unwrap()]),
        ..DeliveryOptions::default()
    }
}

/// Options without a second attempt within the time of a test.
fn one_attempt() -> DeliveryOptions {
    let hour = Duration::from_secs(3_600);
    DeliveryOptions { first_delay: hour, longest_delay: hour, ..options() }
}

fn is_of(received: &ReceivedMessage, number: u8) -> bool {
    received.body.contains(&ItemId::from_bytes([number; 64]).to_string())
}

#[test]
fn events_arrive_in_order_and_repeats_have_the_same_id() {
    let receiver = WebhookReceiver::start(&["500 No", "302 Found\r\nlocation: /other", "close"]);
    let fixture = Fixture::new();
    fixture.add("a::b", 1);
    let id = fixture.create(&receiver);
    for number in 2..=4 {
        fixture.add("a::b", number);
        fixture.add("other::b", number);
    }
    let _running = fixture.deliver(options());
    let received: Vec<ReceivedMessage> = (0..6).map(|_| receiver.next()).collect();
    assert!(received[..4].iter().all(|it| is_of(it, 2)), "until it was delivered: {received:?}");
    assert!(received[..4].iter().all(|it| it.id == received[0].id));
    assert!(is_of(&received[4], 3) && is_of(&received[5], 4), "{received:?}");
    assert!(received[4].id != received[0].id && received[5].id != received[4].id);
    assert!(received.iter().all(|it| it.path == "/events"), "no redirect is followed");
    assert!(received[0].body.contains(r#""type":"batch.accepted""#));
    fixture.wait_until(id, "no error is left", |webhook| {
        webhook.last_error.is_none() && webhook.attempts == 0
    });
}

/// The signature as a receiver computes it.
fn signature(received: &ReceivedMessage, secret: [u8; 24]) -> String {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(secret).for_each(|(block, secret)| *block ^= secret);
        block
    };
    let signed = format!("{}.{}.{}", received.id, received.timestamp, received.body);
    let inner = Sha256::digest([&pad(0x36)[..], signed.as_bytes()].concat());
    let outer = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat());
    format!("v1,{}", BASE64_STANDARD.encode(outer))
}

#[test]
fn requests_are_signed_with_the_secret_and_the_present_time() {
    let receiver = WebhookReceiver::start(&[]);
    let fixture = Fixture::new();
    fixture.create(&receiver);
    fixture.add("a::b", 1);
    let _running = fixture.deliver(options());
    let received = receiver.next();
    let sent_at: i64 = received.timestamp.parse().unwrap();
    let now = WebhookStore::now(&*fixture.store).as_micros() / 1_000_000;
    assert!((now - 60..=now).contains(&sent_at), "{sent_at} at {now}");
    assert_eq!(received.signature, signature(&received, [7; 24]));
    assert_ne!(received.signature, signature(&received, [8; 24]));
}

#[test]
fn event_that_is_given_up_is_kept_and_sent_again_on_demand() {
    let receiver = WebhookReceiver::start(&["500 No", "500 No", "204 Fine", "500 No"]);
    let fixture = Fixture::new();
    let id = fixture.create(&receiver);
    let _running = fixture.deliver(DeliveryOptions { most_attempts: 2, ..options() });
    fixture.add("a::b", 1);
    fixture.add("a::b", 2);
    let first = receiver.next();
    assert_eq!(receiver.next().id, first.id);
    assert!(is_of(&receiver.next(), 2), "the next one follows");
    let failed = fixture.failed(id);
    assert_eq!((failed.len(), failed[0].attempts), (1, 2));
    assert_eq!((&failed[0].message.id, &failed[0].message.body), (&first.id, &first.body));
    assert!(failed[0].error.contains("500"), "{}", failed[0].error);

    for _ in 0..2 {
        assert_eq!(
            fixture.store.redeliver(id, Some(failed[0].id), &OperatorRequest::program()).unwrap(),
            Some(1)
        );
        assert_eq!(receiver.next().id, first.id);
        fixture.wait_until(id, "the result was stored", |_| {
            fixture.failed(id).iter().all(|failed| !failed.again)
        });
    }
    fixture.wait_until(id, "nothing is left", |webhook| webhook.failed == 0);
}

#[test]
fn client_of_a_program_sends_events() {
    let (report, sent) = mpsc::channel();
    let mut client = MockHttpRequests::new();
    let refused = Err(HttpError::NotSent("refused".to_owned()));
    client.expect_post().times(1).return_once(|_, _, _| refused);
    client.expect_post().returning(move |url, headers, _| {
        report.send((url.to_owned(), headers)).unwrap();
        Ok(HttpResponse { status: 204, retry_after: None, body: Ok(Vec::new()) })
    });
    let fixture = Fixture::new();
    let id = fixture.create_at("https://receiver.example/events".to_owned());
    fixture.add("a::b", 1);
    let jobs = Jobs::start().unwrap();
    let _running =
        Deliverer::start_with_client(&jobs, fixture.parts(), options(), Arc::new(client));
    let (url, headers) = sent.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(url, "https://receiver.example/events");
    assert!(headers.iter().any(|(name, _)| name == "webhook-signature"), "{headers:?}");
    fixture.wait_until(id, "the event is delivered", |webhook| webhook.last_error.is_none());
}

#[test]
fn receiver_that_is_gone_gets_nothing_until_it_is_enabled() {
    let receiver = WebhookReceiver::start(&["410 Gone"]);
    let fixture = Fixture::new();
    let id = fixture.create(&receiver);
    fixture.add("a::b", 1);
    let _running = fixture.deliver(options());
    let first = receiver.next();
    fixture.wait_until(id, "it is disabled", |webhook| webhook.disabled_at.is_some());
    fixture.add("a::b", 2);
    assert_eq!(fixture.store.redeliver(id, None, &OperatorRequest::program()).unwrap(), Some(0));
    assert_eq!(receiver.next().id, first.id, "nothing is skipped");
    assert!(is_of(&receiver.next(), 2));
    assert_eq!(fixture.webhook(id).disabled_at, None);
}

#[test]
fn receiver_that_does_not_answer_delays_no_other() {
    let (hung, receiver) = (WebhookReceiver::start(&["hang"; 9]), WebhookReceiver::start(&[]));
    let fixture = Fixture::new();
    let waiting = fixture.create(&hung);
    fixture.create(&receiver);
    fixture.add("a::b", 1);
    let running = fixture.deliver(options());
    let first = hung.next();
    for number in 1..=3 {
        assert!(is_of(&receiver.next(), number), "the other one goes on");
        fixture.add("a::b", number + 1);
    }
    assert_eq!(fixture.webhook(waiting).attempts, 0, "its request is under way");
    running.wait_for_shutdown().unwrap();
    let due = fixture.store.due_webhooks().unwrap();
    assert_eq!(due.len(), 2, "a server that stops gives the webhooks back");
    let _next = fixture.deliver(options());
    assert_eq!(hung.next().id, first.id);
}

#[test]
fn request_that_takes_too_long_fails() {
    let hung = WebhookReceiver::start(&["hang"]);
    let fixture = Fixture::new();
    let id = fixture.create(&hung);
    fixture.add("a::b", 1);
    let timeout = Duration::from_millis(50);
    let _running = fixture.deliver(DeliveryOptions { request_timeout: timeout, ..one_attempt() });
    fixture.wait_for_error(id, "longer than 50ms");
    assert_eq!(fixture.webhook(id).attempts, 1);
}

#[test]
fn receiver_is_left_alone_for_as_long_as_it_asks() {
    let receiver = WebhookReceiver::start(&["503 Busy\r\nretry-after: 600"]);
    let fixture = Fixture::new();
    let id = fixture.create(&receiver);
    fixture.add("a::b", 1);
    let hour = Duration::from_secs(3_600);
    let _running = fixture.deliver(DeliveryOptions { longest_delay: hour, ..options() });
    fixture.wait_for_error(id, "503");
    let webhook = fixture.webhook(id);
    let wait = webhook.next_try_at.unwrap().since(WebhookStore::now(&*fixture.store));
    assert!((500..=600).contains(&wait.as_secs()), "{wait:?}");
}

#[test]
fn private_addresses_are_refused_without_a_connection() {
    let receiver = WebhookReceiver::start(&[]);
    let fixture = Fixture::new();
    let port = receiver.address.port();
    let urls = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433"];
    let ids = urls.map(|host| fixture.create_at(format!("http://{host}:{port}/events")));
    fixture.add("a::b", 1);
    let options = DeliveryOptions { allowed: AllowedNetworks::default(), ..one_attempt() };
    let _running = fixture.deliver(options);
    for (id, url) in ids.into_iter().zip(urls) {
        fixture.wait_until(id, url, |webhook| webhook.attempts == 1);
        let error = fixture.webhook(id).last_error.unwrap();
        assert!(
            error.contains("may be connected to") || error.contains("resolve"),
            "{url}: {error}"
        );
    }
    assert!(receiver.is_unused());
}

#[test]
fn address_of_a_redirect_is_not_visited() {
    let other = WebhookReceiver::start(&[]);
    let redirect: &'static str =
        Box::leak(format!("307 Elsewhere\r\nlocation: {}", other.url()).into_boxed_str());
    let receiver = WebhookReceiver::start(&[redirect]);
    let fixture = Fixture::new();
    let id = fixture.create(&receiver);
    fixture.add("a::b", 1);
    let _running = fixture.deliver(one_attempt());
    fixture.wait_for_error(id, "307");
    assert!(other.is_unused());
}

/// A feed without an end, of which a filter selects nothing. Its pages are counted.
fn endless_feed(store: &Arc<Store>, pages: &Arc<AtomicUsize>) -> MockEventStore {
    let (store, pages) = (Arc::clone(store), Arc::clone(pages));
    let mut feed = MockEventStore::new();
    feed.expect_on_events().return_const(());
    feed.expect_events().returning(move |from, filter, limit| {
        pages.fetch_add(1, Relaxed);
        let page = EventStore::events(&*store, from, filter, limit)?;
        Ok(page.map(|page| EventPage { events: Vec::new(), more: true, ..page }))
    });
    feed
}

#[test]
fn shutdown_ends_a_search_without_a_match() {
    let receiver = WebhookReceiver::start(&[]);
    let fixture = Fixture::new();
    fixture.add("a::b", 1);
    fixture.create(&receiver);
    let store = &fixture.store;
    let pages = Arc::<AtomicUsize>::default();
    let feed = Arc::new(endless_feed(store, &pages));
    let parts = DeliveryParts { events: feed, webhooks: store.clone(), traces: None };
    let running = Deliverer::start(&Jobs::start().unwrap(), parts, options()).unwrap();
    let started = Instant::now();
    while pages.load(Relaxed) < 3 {
        assert!(started.elapsed().as_secs() < 20, "it reads page after page");
        thread::sleep(Duration::from_millis(2));
    }
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(running.wait_for_shutdown()));
    ended.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
}

/// A collector that fails as often as it is told, and keeps what it receives.
#[derive(Default)]
struct TestCollector {
    failures: AtomicUsize,
    received: Mutex<Vec<ItemId>>,
}

impl EventReceiver for TestCollector {
    fn receive<'a>(&'a self, events: &'a [BatchEvent]) -> BoxFuture<'a, BatchResult<()>> {
        let fails =
            self.failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        Box::pin(async move {
            if fails {
                return Err(BatchError::Unavailable("the collector is away".to_owned()));
            }
            self.received.lock().unwrap().extend(events.iter().map(|event| event.batch_id));
            Ok(())
        })
    }
}

/// A feed with an end of the batch 7 before its latest position.
fn feed_with_an_end(store: &Arc<Store>) -> MockEventStore {
    let store = Arc::clone(store);
    let mut feed = MockEventStore::new();
    feed.expect_on_events().return_const(());
    feed.expect_events().returning(move |from, filter, limit| {
        assert_eq!(limit, 200);
        let page = EventStore::events(&*store, from, filter, limit)?.unwrap();
        let is_read = *from == EventPosition::After(page.next.clone());
        let event = BatchEvent {
            id: EventId { group: 1, position: 0 },
            service_id: "a::b".parse().unwrap(),
            batch_id: ItemId::from_bytes([7; 64]),
            kind: EventKind::Status,
            state: BatchState::Committed,
            attempt: 1,
            detail: None,
            at: store.now(),
            instance: None,
            withdrawal: None,
            trace: None,
        };
        let end = PositionedEvent { event, cursor: page.next.clone() };
        let events = if is_read { Vec::new() } else { vec![end] };
        Ok(Ok(EventPage { events, ..page }))
    });
    feed
}

#[test]
fn export_of_traces_goes_on_when_the_collector_is_back() {
    let fixture = Fixture::new();
    fixture.store.add_trace_export().unwrap();
    let id = fixture.store.webhooks().unwrap()[0].id;
    fixture.add("a::b", 1);
    let collector = Arc::new(TestCollector::default());
    // More often than an event of a webhook is tried.
    collector.failures.store(25, Relaxed);
    let parts = DeliveryParts {
        events: Arc::new(feed_with_an_end(&fixture.store)),
        webhooks: fixture.store.clone(),
        traces: Some(collector.clone()),
    };
    let _running = Deliverer::start(&Jobs::start().unwrap(), parts, options()).unwrap();
    fixture.wait_for_error(id, "the collector is away");
    fixture.wait_until(id, "the event is received", |webhook| webhook.last_error.is_none());
    assert_eq!(*collector.received.lock().unwrap(), [ItemId::from_bytes([7; 64])]);
    assert!(fixture.failed(id).is_empty());
}

#[test]
fn instance_that_exports_no_traces_leaves_them_to_others() {
    let receiver = WebhookReceiver::start(&[]);
    let fixture = Fixture::new();
    fixture.store.add_trace_export().unwrap();
    let before = fixture.store.due_webhooks().unwrap();
    fixture.create(&receiver);
    let _running = fixture.deliver(options());
    fixture.add("a::b", 1);
    receiver.next();
    assert_eq!(fixture.store.due_webhooks().unwrap()[..1], before);
}

#[test]
fn message_that_is_sent_again_carries_the_trace() {
    let receiver = WebhookReceiver::start(&["500 No"]);
    let fixture = Fixture::new();
    let id = fixture.create(&receiver);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    fixture.add_traced("a::b", 1, Some(parent.parse().unwrap()));
    let _running = fixture.deliver(DeliveryOptions { most_attempts: 1, ..options() });
    assert_eq!(receiver.next().traceparent.as_deref(), Some(parent));
    fixture.wait_until(id, "it is given up", |webhook| webhook.failed == 1);
    fixture.store.redeliver(id, None, &OperatorRequest::program()).unwrap();
    assert_eq!(receiver.next().traceparent.as_deref(), Some(parent));
    fixture.add("a::b", 2);
    assert_eq!(receiver.next().traceparent, None);
}
