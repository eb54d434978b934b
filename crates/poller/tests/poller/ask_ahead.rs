//! Questions about the next batch of a service.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, mpsc::channel},
};

use grid_batch_core::mocks::{MockLedger, MockLedgerQuestionStore};
use grid_batch_core::{BatchError, ItemId, ServiceId};
use grid_batch_nodes::{NodePool, NodePoolOptions};
use grid_batch_poller::{Job, Jobs, NextBatchMonitor, NextBatchRequests, ShutdownHandle};
use grid_batch_test_support::watched::WatchedValue;
use tokio::sync::Semaphore;

const BATCH: ItemId = ItemId::from_bytes([1; 64]);

fn service(number: usize) -> ServiceId {
    format!("a::{number}").parse().unwrap()
}

/// A store in which every service has a next batch.
fn store() -> MockLedgerQuestionStore {
    let mut store = MockLedgerQuestionStore::new();
    store.expect_next_batches().returning(|services| {
        Ok(services.iter().map(|service| (service.clone(), BATCH)).collect())
    });
    store
}

/// A ledger that answers when it has a permit, and records the services that it was asked about.
struct Ledger {
    asked: Arc<WatchedValue<Vec<ServiceId>>>,
    answers: Arc<Semaphore>,
}

impl Ledger {
    fn new() -> Self {
        Self { asked: Arc::default(), answers: Arc::new(Semaphore::new(0)) }
    }

    fn run(&self, store: MockLedgerQuestionStore, concurrency: usize) -> (NextBatchRequests, Job) {
        let mut ledger = MockLedger::new();
        let (asked, answers) = (Arc::clone(&self.asked), Arc::clone(&self.answers));
        ledger.expect_ask_ahead().returning(move |service, batch_ids| {
            assert_eq!(batch_ids, [BATCH]);
            asked.change(|asked| asked.push(service.clone()));
            let answers = Arc::clone(&answers);
            Box::pin(async move { answers.acquire().await.unwrap().forget() })
        });
        let monitor = NextBatchMonitor::new(store, Arc::new(ledger), concurrency);
        (monitor.requests(), monitor.run(&Jobs::start().unwrap()))
    }

    /// Waits until the ledger was asked this often.
    fn wait_until_asked(&self, times: usize) -> Vec<ServiceId> {
        self.asked.wait_until(|asked| asked.len() >= times);
        self.asked.get()
    }
}

#[test]
fn service_is_asked_about_again_after_its_answer() {
    let ledger = Ledger::new();
    let (requests, running) = ledger.run(store(), 9);
    requests.accepted(&service(1));
    ledger.wait_until_asked(1);
    requests.accepted(&service(1));
    requests.accepted(&service(2));
    assert_eq!(ledger.wait_until_asked(2), [1, 2].map(service), "one question of a service");
    ledger.answers.add_permits(2);
    assert_eq!(ledger.wait_until_asked(3), [1, 2, 1].map(service));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn one_question_is_about_all_next_batches_of_a_service() {
    let mut store = MockLedgerQuestionStore::new();
    let next = |number: u8| (service(1), ItemId::from_bytes([number; 64]));
    store.expect_next_batches().returning(move |_| Ok((0..100).map(next).collect()));
    let asked = Arc::new(WatchedValue::<Vec<ItemId>>::default());
    let mut ledger = MockLedger::new();
    let batches = Arc::clone(&asked);
    ledger.expect_ask_ahead().once().returning(move |_, ids| {
        batches.change(|asked| asked.extend(ids));
        Box::pin(async {})
    });
    let monitor = NextBatchMonitor::new(store, Arc::new(ledger), 2);
    let (requests, running) = (monitor.requests(), monitor.run(&Jobs::start().unwrap()));
    requests.accepted(&service(1));
    asked.wait_until(|asked| asked.len() == 100);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn next_question_comes_when_most_batches_are_accepted() {
    let mut store = MockLedgerQuestionStore::new();
    store.expect_next_batches().returning(|services| {
        let batches = |service: &ServiceId| {
            let service = service.clone();
            (1..=8).map(move |number| (service.clone(), ItemId::from_bytes([number; 64])))
        };
        Ok(services.iter().flat_map(batches).collect())
    });
    let asked = Arc::new(WatchedValue::<Vec<ServiceId>>::default());
    let mut ledger = MockLedger::new();
    let services = Arc::clone(&asked);
    ledger.expect_ask_ahead().returning(move |service, _| {
        services.change(|asked| asked.push(service.clone()));
        Box::pin(async {})
    });
    let monitor = NextBatchMonitor::new(store, Arc::new(ledger), 1);
    let (requests, running) = (monitor.requests(), monitor.run(&Jobs::start().unwrap()));
    requests.stored(&service(1));
    asked.wait_until(|asked| asked.len() == 1);
    requests.stored(&service(1));
    (0..4).for_each(|_| requests.accepted(&service(1)));
    // A question about the first service would have been asked before.
    requests.stored(&service(2));
    asked.wait_until(|asked| asked.contains(&service(2)));
    assert_eq!(asked.get(), [1, 2].map(service));
    requests.accepted(&service(1));
    asked.wait_until(|asked| *asked == [1, 2, 1].map(service));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn number_of_questions_under_way_is_limited() {
    let ledger = Ledger::new();
    let (requests, running) = ledger.run(store(), 3);
    (0..20).for_each(|number| requests.accepted(&service(number)));
    assert_eq!(ledger.wait_until_asked(3).len(), 3);
    ledger.answers.add_permits(1);
    assert_eq!(ledger.wait_until_asked(4).len(), 4);
    ledger.answers.add_permits(20);
    let mut asked = ledger.wait_until_asked(20);
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 20);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn services_without_a_next_batch_do_not_stop_others() {
    let mut store = MockLedgerQuestionStore::new();
    store.expect_next_batches().returning(|services| {
        Ok(services.iter().filter(|id| **id == service(50)).map(|id| (id.clone(), BATCH)).collect())
    });
    let ledger = Ledger::new();
    let (requests, running) = ledger.run(store, 2);
    (0..=50).for_each(|number| requests.accepted(&service(number)));
    assert_eq!(ledger.wait_until_asked(1), [service(50)]);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn later_request_is_answered_after_the_store_failed() {
    let mut store = MockLedgerQuestionStore::new();
    let failed = Arc::new(WatchedValue::<bool>::default());
    let first = Arc::clone(&failed);
    store.expect_next_batches().returning(move |services| {
        if first.change(|failed| !std::mem::replace(failed, true)) {
            return Err(BatchError::Unavailable("no connection".to_owned()));
        }
        Ok(services.iter().map(|id| (id.clone(), BATCH)).collect())
    });
    let ledger = Ledger::new();
    let (requests, running) = ledger.run(store, 2);
    requests.accepted(&service(1));
    failed.wait_until(|failed| *failed);
    requests.accepted(&service(2));
    assert_eq!(ledger.wait_until_asked(1), [service(2)]);
    running.wait_for_shutdown().unwrap();
}

/// A ledger that panics at each question, and counts them.
struct PanickingLedger(Arc<WatchedValue<usize>>);

impl grid_batch_core::ledger::Ledger for PanickingLedger {
    grid_batch_core::unused_ledger_methods!();

    fn ask_ahead<'a>(
        &'a self,
        _service_id: &'a ServiceId,
        _batch_ids: &'a [ItemId],
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.0.change(|count| *count += 1);
        panic!("of the test")
    }
}

#[test]
fn question_that_panics_does_not_stop_later_ones() {
    let asked = Arc::new(WatchedValue::<usize>::default());
    let ledger = Arc::new(PanickingLedger(Arc::clone(&asked)));
    let monitor = NextBatchMonitor::new(store(), ledger, 1);
    let (requests, running) = (monitor.requests(), monitor.run(&Jobs::start().unwrap()));
    for times in 1..=2 {
        requests.accepted(&service(1));
        asked.wait_until(|count| *count == times);
    }
    running.wait_for_shutdown().unwrap();
}

#[test]
fn node_that_does_not_answer_leaves_questions_to_others() {
    let ledger = Ledger::new();
    let (asked, answers) = (Arc::clone(&ledger.asked), Arc::clone(&ledger.answers));
    let mut adapter = MockLedger::new();
    adapter.expect_ask_ahead().returning(move |service, _| {
        asked.change(|asked| asked.push(service.clone()));
        let answers = Arc::clone(&answers);
        let is_frozen = service.as_str().starts_with("frozen");
        Box::pin(async move {
            if is_frozen {
                answers.acquire().await.unwrap().forget();
            }
        })
    });
    let services = (0..20).map(|number| (format!("frozen::{number}"), "frozen"));
    let services = services.chain([("good::1".to_owned(), "good")]);
    let services = services.map(|(id, node)| (id.parse().unwrap(), node.to_owned())).collect();
    let pool = NodePool::with_options(NodePoolOptions { services, ..NodePoolOptions::default() });
    let monitor = NextBatchMonitor::new(store(), Arc::new(adapter), 4).with_nodes(pool);
    let (requests, running) = (monitor.requests(), monitor.run(&Jobs::start().unwrap()));
    let good: ServiceId = "good::1".parse().unwrap();
    requests.accepted(&good);
    ledger.wait_until_asked(1);
    for number in 0..20 {
        requests.accepted(&format!("frozen::{number}").parse().unwrap());
    }
    ledger.wait_until_asked(2);
    requests.accepted(&good);
    ledger.asked.wait_until(|asked| asked.iter().filter(|service| **service == good).count() == 2);
    let frozen = ledger.asked.get().len() - 2;
    assert!(frozen <= 2, "{frozen} questions to the node that does not answer");
    running.wait_for_shutdown().unwrap();
}

#[test]
fn monitor_stops_while_the_store_does_not_answer() {
    let (asked, (answer, answered)) = (Arc::<WatchedValue<bool>>::default(), channel::<()>());
    let (is_asked, answered) = (Arc::clone(&asked), Mutex::new(answered));
    let mut store = MockLedgerQuestionStore::new();
    store.expect_next_batches().returning(move |_| {
        is_asked.change(|asked| *asked = true);
        let _ = answered.lock().unwrap().recv();
        Ok(Vec::new())
    });
    let jobs = Jobs::start().unwrap();
    let monitor = NextBatchMonitor::new(store, Arc::new(MockLedger::new()), 1);
    let (requests, running) = (monitor.requests(), monitor.run(&jobs));
    requests.stored(&service(1));
    asked.wait_until(|asked| *asked);
    running.wait_for_shutdown().unwrap();
    drop(answer);
}
