//! Several nodes of one Sawtooth chain.

use std::time::Duration;

use grid_batch_protocol::VerifiedBatch;

use crate::{
    batches::{batch, batch_of, id},
    ledgers::{Ledger, sawtooth},
};

const LAG: Duration = Duration::from_secs(60);

/// Two nodes of one chain. Batch 2 needs batch 1.
fn two_nodes() -> [Ledger; 2] {
    let needs = |verified: &VerifiedBatch| (verified.id() == id(&batch(2))).then(|| id(&batch(1)));
    let first = sawtooth(|builder| builder.execute_after(needs));
    let second = sawtooth(|builder| builder.execute_after(needs).join_chain_of(&first, LAG));
    [first, second]
}

#[test]
fn node_applies_the_blocks_of_another_after_its_lag() {
    let [first, second] = two_nodes();
    first.submit_one(&batch(1));
    assert_eq!((first.status(&batch(1)), second.status(&batch(1))), pair("COMMITTED", "UNKNOWN"));
    second.advance(59);
    assert_eq!(second.status(&batch(1)), "UNKNOWN");
    second.advance(1);
    assert_eq!(second.status(&batch(1)), "COMMITTED");
    assert_eq!(second.applied(), [id(&batch(1))]);
}

#[test]
fn node_that_lags_finds_a_dependent_batch_invalid() {
    let [first, second] = two_nodes();
    first.submit_one(&batch(1));
    second.submit_one(&batch(2));
    assert_eq!(second.status(&batch(2)), "INVALID");
    first.submit_one(&batch(2));
    assert_eq!(first.status(&batch(2)), "COMMITTED");
    second.advance(60);
    assert_eq!(second.status(&batch(2)), "COMMITTED");
}

#[test]
fn batch_posted_to_two_nodes_is_applied_once() {
    let [first, second] = two_nodes();
    first.submit_one(&batch(1));
    second.submit_one(&batch(1));
    assert_eq!(second.status(&batch(1)), "UNKNOWN");
    second.advance(60);
    assert_eq!((first.applied(), second.applied()), (vec![id(&batch(1))], vec![id(&batch(1))]));
}

#[test]
fn transaction_of_another_node_is_not_applied_again() {
    let [first, second] = two_nodes();
    let both = batch_of(&[1, 3]);
    first.submit_one(&batch(1));
    second.submit_one(&both);
    second.advance(60);
    assert_eq!((first.status(&both), second.status(&both)), pair("UNKNOWN", "PENDING"));
    assert_eq!(second.applied(), [id(&batch(1))]);
}

fn pair(first: &str, second: &str) -> (String, String) {
    (first.to_owned(), second.to_owned())
}
