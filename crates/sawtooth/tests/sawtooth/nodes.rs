//! Several nodes of one ledger, some of which apply blocks later than others.

use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::LedgerStatus::{self, Committed, Invalid, NotReported};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{CommitHistory, CommittedBefore, Ledger};
use grid_batch_core::{BatchResult, ItemId, ManualClock, ServiceId};
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};
use grid_batch_protocol::{Batch, VerifiedBatch};
use grid_batch_sawtooth::Sawtooth;

use crate::{
    batches::{Nodes, SERVICE, batch, batch_of, sawtooth, submission, unresolved},
    rest_api::unused_address,
};

const LAG: Duration = Duration::from_secs(60);

fn id(batch: &Batch) -> ItemId {
    batch.header_signature.parse().unwrap()
}

/// A store in which batch 1 is committed, and batch 2 comes after it.
struct OneCommitted;

impl CommitHistory for OneCommitted {
    fn committed_before(&self, _: &ServiceId, of: &ItemId) -> BatchResult<CommittedBefore> {
        let before = (*of == id(&batch(2))).then(|| id(&batch(1))).into_iter().collect();
        Ok(CommittedBefore { before, since: Vec::new() })
    }

    fn has_committed(&self, _: &ServiceId) -> BatchResult<bool> {
        Ok(true)
    }
}

/// Two nodes of one chain, each with its own clock. Batch 2 needs batch 1, which the first node has applied.
struct TestNodes {
    first: LedgerSim,
    second: LedgerSim,
    second_clock: Arc<ManualClock>,
    sawtooth: Sawtooth,
}

impl TestNodes {
    async fn start() -> Self {
        let first = in_order(LedgerSim::sawtooth()).clock(Arc::new(ManualClock::default()));
        let first = first.start().unwrap();
        let second_clock = Arc::new(ManualClock::default());
        let second = in_order(LedgerSim::sawtooth()).clock(second_clock.clone());
        let second = second.join_chain_of(&first, LAG).start().unwrap();
        let urls = [first.url(), second.url()];
        let sawtooth = sawtooth().with_several_nodes(Arc::new(OneCommitted), urls);
        let test = Self { first, second, second_clock, sawtooth };
        test.send(&test.first, 1).await;
        test
    }

    async fn send(&self, node: &LedgerSim, number: u32) {
        let answer = self.sawtooth.send(&node.url(), &submission(&batch(number))).await;
        assert_eq!(answer.status, Some(202));
    }

    async fn check(&self, node: &LedgerSim, number: u32) -> Result<(), String> {
        let check = self.sawtooth.clone();
        check.check_node(&node.url(), &submission(&batch(number))).await
    }

    /// Lets the second node apply the blocks of the first one.
    fn catch_up(&self) {
        self.second_clock.advance(LAG);
    }

    async fn status(&self, nodes: &[String], number: u32) -> LedgerStatus {
        let reader = self.sawtooth.clone().with_nodes(Nodes::new(nodes));
        let ids = [batch(number).header_signature];
        reader.statuses(SERVICE, &ids).await.unwrap().remove(0).status
    }

    /// The status of batch 2 if the second node is asked first.
    async fn status_at_second(&self) -> LedgerStatus {
        self.status(&[self.second.url(), self.first.url()], 2).await
    }
}

fn in_order(builder: LedgerSimBuilder) -> LedgerSimBuilder {
    builder.execute_after(|batch_2: &VerifiedBatch| {
        (batch_2.id() == id(&batch(2))).then(|| id(&batch(1)))
    })
}

#[tokio::test]
async fn batch_waits_until_a_node_has_applied_the_one_before() {
    let test = TestNodes::start().await;
    assert_eq!(test.check(&test.second, 1).await, Ok(()), "no batch is before it");
    assert_eq!(test.check(&test.first, 2).await, Ok(()));
    let reason = test.check(&test.second, 2).await.unwrap_err();
    let expected = format!("the node {} does not report an earlier batch, ", test.second.url());
    assert!(reason.starts_with(&expected), "{reason}");
    test.catch_up();
    assert_eq!(test.check(&test.second, 2).await, Ok(()));
}

#[tokio::test]
async fn node_that_reported_the_batch_before_is_not_asked() {
    let test = TestNodes::start().await;
    assert_eq!(test.status(&[test.first.url()], 1).await, Committed);
    test.first.freeze();
    assert_eq!(test.check(&test.first, 2).await, Ok(()));
}

#[tokio::test]
async fn node_that_does_not_answer_fails_the_check() {
    let test = TestNodes::start().await;
    let check = test.sawtooth.clone();
    let url = unused_address().await;
    let reason = check.check_node(&url, &submission(&batch(2))).await.unwrap_err();
    assert!(reason.starts_with("cannot ask the node "), "{reason}");
    assert_eq!(check.check_node(&url, &submission(&batch(1))).await, Ok(()), "nothing is asked");
}

#[tokio::test]
async fn invalid_batch_that_another_node_committed_is_committed() {
    let test = TestNodes::start().await;
    test.send(&test.second, 2).await;
    assert_eq!(test.status(&[test.second.url()], 2).await, NotReported);
    test.send(&test.first, 2).await;
    assert_eq!(test.status_at_second().await, Committed);
}

#[tokio::test]
async fn invalid_of_a_node_that_lagged_is_never_final() {
    let test = TestNodes::start().await;
    test.send(&test.second, 2).await;
    assert_eq!(test.status_at_second().await, NotReported);
    test.catch_up();
    assert_eq!(test.check(&test.second, 2).await, Ok(()), "the node has batch 1 by now");
    let clock = Arc::new(ManualClock::default());
    let other = sawtooth().with_clock(clock.clone());
    let reader = other.clone().with_nodes(Nodes::new([test.second.url()]));
    let ids = [batch(2).header_signature];
    let alone = async || reader.statuses(SERVICE, &ids).await.unwrap().remove(0).status;
    assert_eq!(alone().await, NotReported, "it may be from before");
    clock.advance(Duration::from_secs(10));
    assert_eq!(alone().await, Invalid, "the node still says so");
    assert_eq!(test.status_at_second().await, NotReported, "it was executed on an old state");
}

#[tokio::test]
async fn invalid_of_a_node_with_the_batch_before_is_final() {
    let test = TestNodes::start().await;
    test.catch_up();
    test.second.refuse(|_| Some("no such name".to_owned()));
    test.send(&test.second, 2).await;
    assert_eq!(test.status_at_second().await, Invalid);
}

#[tokio::test]
async fn invalid_is_final_at_the_node_that_was_checked() {
    let test = TestNodes::start().await;
    test.catch_up();
    assert_eq!(test.check(&test.second, 2).await, Ok(()));
    test.second.refuse(|_| Some("no such name".to_owned()));
    test.send(&test.second, 2).await;
    let down = unused_address().await;
    assert_eq!(test.status(&[test.second.url(), down], 2).await, Invalid);
}

#[tokio::test]
async fn invalid_is_not_final_while_another_node_is_unknown() {
    let test = TestNodes::start().await;
    test.catch_up();
    test.second.refuse(|_| Some("no such name".to_owned()));
    test.send(&test.second, 2).await;
    let down = unused_address().await;
    assert_eq!(test.status(&[test.second.url(), down], 2).await, NotReported);
}

/// After a while, a node that does not answer is not used, but it may still have the batch.
#[tokio::test]
async fn invalid_is_not_final_while_another_node_is_not_used() {
    let test = TestNodes::start().await;
    test.catch_up();
    test.second.refuse(|_| Some("no such name".to_owned()));
    test.send(&test.second, 2).await;
    assert_eq!(test.status(&[test.second.url()], 2).await, NotReported);
}

/// The node that has the batch does not have the block with its transaction yet.
#[tokio::test]
async fn one_node_with_an_applied_transaction_is_enough() {
    let test = TestNodes::start().await;
    let both = batch_of(&[1, 3]);
    let sender = &test.sawtooth;
    assert_eq!(sender.send(&test.second.url(), &submission(&both)).await.status, Some(202));

    let clock = Arc::new(ManualClock::default());
    let sawtooth = sawtooth().with_clock(clock.clone());
    let nodes = Nodes::new([test.second.url(), test.first.url()]);
    let reader = sawtooth.clone().with_nodes(nodes);
    let mut unresolved = unresolved(&both.header_signature);
    unresolved.transaction_ids =
        both.transactions.iter().map(|t| t.header_signature.parse().unwrap()).collect();
    let evidence = async || reader.find_evidence(&unresolved).await.unwrap().evidence;
    assert_eq!(evidence().await, Evidence::Present);
    clock.advance(Duration::from_secs(2));
    assert_eq!(evidence().await, Evidence::NeverApplicable);
}

#[tokio::test]
async fn only_node_of_a_ledger_is_not_checked() {
    let checked = sawtooth().check_node("http://unused", &submission(&batch(1))).await;
    assert_eq!(checked, Ok(()));
}
