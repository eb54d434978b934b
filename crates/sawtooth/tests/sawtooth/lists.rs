//! Several batches in one request.

use std::time::Duration;

use grid_batch_core::ServiceId;
use grid_batch_core::ledger::{Ledger, Outcome, Submission};
use grid_batch_core::queue::ListSize;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, RequestKind, When};
use grid_batch_sawtooth::Sawtooth;

use crate::batches::{batch, sawtooth, submission};

/// A ledger that commits a batch a minute after its submission, and an adapter for it.
struct TestLists {
    ledger: LedgerSim,
    sawtooth: Sawtooth,
    lists: ListSize,
}

impl TestLists {
    fn new(configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder) -> Self {
        let ledger = LedgerSim::sawtooth().pending_for(Duration::from_secs(60));
        let ledger = configure(ledger).start().unwrap();
        let lists = ListSize::default();
        Self { ledger, sawtooth: sawtooth().with_lists(lists.clone()), lists }
    }

    /// The outcomes of sending the batches 1 to 3.
    async fn send(&self) -> Vec<Outcome> {
        let list: Vec<Submission<ServiceId>> =
            (1..=3).map(|number| submission(&batch(number))).collect();
        let answers = self.sawtooth.send_list(&self.ledger.url(), &list).await;
        answers.into_iter().map(|answer| answer.outcome).collect()
    }

    fn received(&self) -> [usize; 3] {
        [1, 2, 3].map(|number| {
            self.ledger.times_received(&batch(number).header_signature.parse().unwrap())
        })
    }
}

fn count_posts(ledger: &LedgerSim) -> usize {
    ledger.requests().iter().filter(|request| request.kind == RequestKind::Submission).count()
}

#[tokio::test]
async fn list_is_one_request() {
    let test = TestLists::new(|ledger| ledger);
    assert_eq!(test.send().await, [Outcome::Accepted; 3]);
    assert_eq!((test.received(), count_posts(&test.ledger)), ([1; 3], 1));
    assert!(test.lists.get() > 1);
}

#[tokio::test]
async fn node_with_peers_gets_no_list() {
    let test = TestLists::new(|ledger| ledger);
    let joins = LedgerSim::sawtooth().join_chain_of(&test.ledger, Duration::ZERO);
    let _peer = joins.start().unwrap();
    assert_eq!(test.send().await, [Outcome::Accepted]);
    assert_eq!(test.received(), [1, 0, 0]);
    assert_eq!(test.lists.get(), 1);
}

#[tokio::test]
async fn single_batch_opens_lists() {
    let test = TestLists::new(|ledger| ledger);
    assert_eq!(test.lists.get(), 1);
    test.sawtooth.send(&test.ledger.url(), &submission(&batch(1))).await;
    assert!(test.lists.get() > 1);
}

#[tokio::test]
async fn first_batch_of_a_refused_list_is_sent_alone() {
    let test = TestLists::new(|ledger| ledger);
    test.ledger.inject(Fault::Rejected, When::Next(1));
    assert_eq!(test.send().await, [Outcome::Accepted]);
    assert_eq!(test.received(), [2, 1, 1]);
}

#[tokio::test]
async fn all_batches_of_a_list_without_an_answer_are_in_doubt() {
    let test = TestLists::new(|ledger| ledger);
    test.ledger.inject(Fault::ResetAfter, When::Next(1));
    assert_eq!(test.send().await, [Outcome::Ambiguous; 3]);
}

#[tokio::test]
async fn busy_node_has_none_of_a_list() {
    let test = TestLists::new(|ledger| ledger);
    test.ledger.inject(Fault::Busy, When::Next(1));
    assert_eq!(test.send().await, [Outcome::Busy]);
}

/// It is in the node's queue, where it would come before the others.
#[tokio::test]
async fn batch_that_the_node_has_ends_the_list() {
    let test = TestLists::new(|ledger| ledger);
    sawtooth().send(&test.ledger.url(), &submission(&batch(3))).await;
    assert_eq!(test.send().await, [Outcome::Accepted; 2]);
    assert_eq!(test.received(), [1; 3]);
}

#[tokio::test]
async fn adapter_without_lists_sends_the_first() {
    let test = TestLists::new(|ledger| ledger);
    let test = TestLists { sawtooth: sawtooth(), ..test };
    assert_eq!(test.send().await, [Outcome::Accepted]);
    assert_eq!(test.received(), [1, 0, 0]);
}
