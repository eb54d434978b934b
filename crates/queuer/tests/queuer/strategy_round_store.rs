//! The strategy over an importer's store of open batches.

use std::cell::RefCell;

use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queue::{Round, RoundStore, ServiceShare, TakenBatch};
use grid_batch_core::{BatchError, BatchResult, ServiceId};
use grid_batch_queuer::{OpenBatchStore, StrategyRoundStore};

use crate::memory_store::{LARGE, MemoryStore, id};

fn service(name: &str) -> ServiceId {
    name.parse().unwrap()
}

fn shares(services: &[ServiceId]) -> Vec<ServiceShare> {
    services.iter().cloned().map(ServiceShare::of_one).collect()
}

/// A memory store whose calls of `mark_submitted` have the given results in order.
struct FaultyStore {
    store: MemoryStore,
    faults: RefCell<Vec<Fault>>,
}

#[derive(Clone, Copy)]
enum Fault {
    None,
    Unavailable,
    Changed,
}

impl OpenBatchStore for FaultyStore {
    fn services(&self, after: Option<&ServiceId>, limit: usize) -> BatchResult<Vec<ServiceId>> {
        self.store.services(after, limit)
    }

    fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>> {
        self.store.open_batches(service_id, limit)
    }

    fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize> {
        self.store.batch_length(batch)
    }

    fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>> {
        match self.faults.borrow_mut().remove(0) {
            Fault::None => self.store.mark_submitted(batch),
            Fault::Unavailable => Err(BatchError::Unavailable("injected by the test".to_owned())),
            Fault::Changed => Ok(None),
        }
    }

    fn unmark(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        self.store.unmark(batches)
    }
}

/// Takes a round of three services, each with one batch.
fn take_round(faults: [Fault; 3]) -> BatchResult<Vec<ServiceId>> {
    let store = MemoryStore::default();
    let services = ["a", "b", "c"].map(service);
    for (number, service) in (1..).zip(&services) {
        store.add(service.as_str(), number);
    }
    let faulty = FaultyStore { store, faults: RefCell::new(faults.to_vec()) };
    let round = StrategyRoundStore::new(faulty).take_round(&shares(&services), &mut |_| true)?;
    Ok(round.batches.into_iter().map(|taken| taken.service_id).collect())
}

#[test]
fn round_takes_the_chosen_batch_of_each_service() {
    let store = MemoryStore::default();
    [("a", 1), ("a", 2), ("b", 3)].into_iter().for_each(|(name, number)| store.add(name, number));
    let round_store = store.round_store();
    let services = ["a", "b", "unknown"].map(service);
    let round = round_store.take_round(&shares(&services), &mut |_| true).unwrap().batches;
    let taken: Vec<_> = round.iter().map(|taken| (taken.batch_id, taken.attempt)).collect();
    assert_eq!(taken, [(id(1), 1), (id(3), 1)]);
    let none = round_store.take_round(&shares(&services), &mut |_| true).unwrap();
    assert_eq!(none, Round::default(), "both services are busy");

    round_store.give_back(&round).unwrap();
    assert_eq!(store.states(), [BatchState::Delayed, BatchState::New, BatchState::Delayed]);
    let again = round_store.take_round(&shares(&services), &mut |_| true).unwrap().batches;
    assert_eq!(again.iter().map(|taken| taken.attempt).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn batch_that_does_not_fit_is_not_marked() {
    let store = MemoryStore::default();
    [("a", LARGE + 5), ("b", LARGE + 3)].into_iter().for_each(|(name, n)| store.add(name, n));
    let round_store = store.round_store();
    let round =
        round_store.take_round(&shares(&["a", "b"].map(service)), &mut |bytes| bytes < 5).unwrap();
    assert_eq!((round.batches.len(), round.left), (1, vec![service("a")]));
    assert_eq!(store.states(), [BatchState::New, BatchState::Submitting]);
}

#[test]
fn ready_services_are_found_in_order_among_many() {
    let store = MemoryStore::default();
    for number in 0..1_000 {
        store.add(&format!("service-{number:04}"), number);
    }
    let round_store = store.round_store();
    let name = |number: usize| service(&format!("service-{number:04}"));
    let busy: Vec<ServiceId> = (0..1_000).filter(|n| n % 300 != 299).map(name).collect();
    round_store.take_round(&shares(&busy), &mut |_| true).unwrap();

    let all = [299, 599, 899].map(name);
    assert_eq!(round_store.ready_services(None, 9).unwrap(), all);
    assert_eq!(round_store.ready_services(None, 2).unwrap(), all[..2]);
    assert_eq!(round_store.ready_services(Some(&all[0]), 9).unwrap(), all[1..]);
    assert_eq!(round_store.ready_services(Some(&all[2]), 9).unwrap(), []);
}

#[test]
fn batch_in_flight_blocks_a_long_backlog() {
    let store = MemoryStore::default();
    (0..1_000).for_each(|number| store.add("a", number));
    let round_store = store.round_store();
    let services = [service("a")];
    let taken =
        [(); 2].map(|()| round_store.take_round(&shares(&services), &mut |_| true).unwrap());
    assert_eq!(taken.map(|round| round.batches.len()), [1, 0]);
    assert_eq!(round_store.ready_services(None, 9).unwrap(), []);
}

#[test]
fn failed_store_ends_the_round_and_keeps_what_was_taken() {
    use Fault::{Changed, None, Unavailable};
    assert_eq!(take_round([None, Unavailable, None]), Ok(vec![service("a")]));
    assert_eq!(take_round([None, Changed, None]), Ok(["a", "c"].map(service).to_vec()));
    assert!(take_round([Unavailable, None, None]).is_err());
}
