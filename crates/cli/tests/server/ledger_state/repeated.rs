//! Transactions in several batches. The ledger applies each once, and the server takes one again only if
//! the batches that have it are invalid.

use grid_batch_core::batches::BatchState;
use grid_batch_protocol::Batch;
use grid_batch_store::Store;
use grid_batch_test_support::{batches::SignedBatch, wait::wait_for};

use super::run::{Accepted, Run, stored};
use crate::harness::{BatchServer, post_to_ledger};

impl Run {
    pub(super) fn submit_repeated(&mut self, server: &BatchServer, store: &Store) {
        if self.random.bool() {
            self.submit_again(server, store)
        } else {
            self.submit_with_another_client(server)
        }
    }

    /// Sends a transaction of an earlier batch in a new one, and one that depends on it.
    fn submit_again(&mut self, server: &BatchServer, store: &Store) {
        let is_invalid =
            |it: &&Accepted| stored(store, &it.id).progress.state == BatchState::Invalid;
        let invalid: Vec<&Accepted> = self.accepted.iter().filter(is_invalid).collect();
        let of_invalid = self.random.bool();
        let chosen = match self.random.choice(&invalid) {
            Some(invalid) if of_invalid => *invalid,
            _ => self.random.choice(&self.accepted).unwrap(),
        };
        let earlier = chosen.batch.clone();
        let repeating = self.generator.repeating(&earlier);
        if is_accepted(server, &repeating) {
            self.add_accepted(Accepted::new(repeating));
        }
        let depending = self.generator.depending(&earlier);
        self.submit(server, vec![depending]);
    }

    /// A transaction that is alone in a batch gives the same batch each time.
    fn add_accepted(&mut self, batch: Accepted) {
        if !self.accepted.iter().any(|it| it.id == batch.id) {
            self.accepted.push(batch);
        }
    }

    /// Another client sends a transaction to the ledger in a batch of its own. The ledger applies one of the
    /// batches, and what depends on the transaction.
    fn submit_with_another_client(&mut self, server: &BatchServer) {
        let [batch, other] = self.generator.twins();
        let depending = self.generator.depending(&batch);
        let is_first = self.random.bool();
        if is_first {
            self.send_past_the_server(&other);
        }
        self.submit(server, vec![batch, depending]);
        if !is_first {
            self.send_past_the_server(&other);
        }
        self.of_others.push(other);
    }

    fn send_past_the_server(&self, batch: &Batch) {
        let batch = SignedBatch::new("global", batch.clone());
        wait_for("the ledger takes the batch", || {
            post_to_ledger(&self.harness.ledger, &batch).ok().filter(|it| it.status == 202)
        });
    }
}

/// Whether the server accepts the batch. It refuses one with a transaction that it has in another batch.
fn is_accepted(server: &BatchServer, batch: &Batch) -> bool {
    let list = [SignedBatch::new("global", batch.clone())];
    let answer = wait_for("an answer", || {
        server.post(&list).ok().filter(|answer| !matches!(answer.status, 429 | 503))
    });
    assert!(matches!(answer.status, 202 | 409), "{answer:?}");
    answer.status == 202
}
