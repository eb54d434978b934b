use std::{path::Path, process::Command};

use grid_batch_client::{Client, ClientError};
use grid_batch_core::ItemId;
use grid_batch_core::ledger::LedgerFacts;
use thiserror::Error;

/// A ledger under test: a server program with its adapter, and a node, real or simulated, that does what a case asks
/// for.
///
/// Each case gets a harness of its own, whose ledger has applied nothing yet. Methods may panic: then the case fails.
pub trait Harness {
    /// The facts that the adapter declares with the server's settings: those of [`configuration`](Self::configuration),
    /// and [`LATE_ARRIVAL_LIMIT`](crate::LATE_ARRIVAL_LIMIT) unless they say otherwise.
    fn facts(&self) -> LedgerFacts;

    /// The command that runs a server with this configuration file until it is killed. It prints a line with the URL
    /// where it listens, such as `http://127.0.0.1:4711/`. If its nodes belong to another ledger than its database, it
    /// ends with an error, and prints to its standard error what `Server::ledger_mismatch` says.
    fn server(&self, configuration: &Path) -> Command;

    /// What the configuration file says about the ledger: the table `ledger`, with the nodes as they are now, and
    /// tables of the adapter. These settings replace those of the suite.
    fn configuration(&self) -> String;

    /// The service that batches are for; `None` if the ledger has only one.
    fn service(&self) -> Option<String>;

    /// Another batch. All batches of a harness conflict with each other, so that they must be applied in order.
    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible>;

    /// Begins a fault. It lasts until [`heal`](Self::heal), or for one submission if it is a fault of a single
    /// submission.
    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible>;

    /// Ends all faults. A submission that is held is lost.
    fn heal(&mut self);

    /// The ids of the batches that the ledger has applied, in order, with repetitions.
    fn applied(&self) -> Vec<ItemId>;

    /// How many submissions have arrived at the node, whatever it did with them. A submission that is held counts as
    /// arrived.
    fn arrivals(&self) -> usize;

    /// Lets a submission that [`Fault::HoldsRequest`] holds continue to the node, although its sender has given up.
    fn release(&mut self) -> Result<(), NotPossible> {
        Err(NotPossible::new("the harness cannot release a submission later"))
    }

    /// Restarts the node. It loses everything that it has only in memory.
    fn restart(&mut self) -> Result<(), NotPossible> {
        Err(NotPossible::new("the harness cannot restart the node"))
    }

    /// Sends a batch directly to the node, as another client does. Returns when the node has dealt with it.
    fn deliver(&mut self, _batch: &TestBatch) -> Result<(), NotPossible> {
        Err(NotPossible::new("no other client can send the batches of this ledger"))
    }

    /// Makes the deadlines of all batches so far pass at the ledger.
    fn pass_deadlines(&mut self) -> Result<(), NotPossible> {
        Err(NotPossible::new("the harness cannot let a deadline pass"))
    }

    /// The URL of an empty PostgreSQL database that several instances can share.
    fn postgres(&mut self) -> Result<String, NotPossible> {
        Err(NotPossible::new("the harness has no PostgreSQL database"))
    }

    /// Hands a batch to the server, and returns its id at `/v1/batches`. Override it for batches that clients do not
    /// send as bytes, such as withdrawals.
    fn submit(&mut self, server: &Client, batch: &TestBatch) -> Result<String, ClientError> {
        let service = self.service();
        server.submit(&batch.bytes, service.as_deref(), None, true)?;
        Ok(batch.id.to_string())
    }
}

/// A batch that clients send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestBatch {
    /// Its id, as in [`Harness::applied`].
    pub id: ItemId,
    /// The bytes that a client posts.
    pub bytes: Vec<u8>,
}

/// What the ledger does with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// It applies the batch.
    Valid,
    /// It accepts the batch and finds it invalid.
    Invalid,
    /// It can never apply the batch, because it has applied one of its transactions in another batch, for another
    /// client. That other batch is not in [`Harness::applied`].
    AppliedForAnother,
    /// It applies the batch only until a deadline, which [`Harness::pass_deadlines`] makes pass. Batches of the other
    /// kinds have no deadline, or one that does not pass.
    WithDeadline,
}

/// A fault of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It answers each submission with the report that it is busy, and accepts none.
    Busy,
    /// It refuses each submission, whatever the batch, for example for lack of permission.
    Refuses,
    /// The connection of the next submission breaks before the node has read it.
    LosesRequest,
    /// The next submission is accepted, and the connection breaks before the answer.
    LosesAnswer,
    /// The next submission is held back on its way to the node.
    HoldsRequest,
    /// The next submission is accepted, and its answer is held back.
    HoldsAnswer,
    /// Batches are accepted and not applied. They are applied after the end of the fault.
    AppliesNothing,
    /// Events are not sent, although their connection stays open.
    SendsNoEvents,
    /// There is a second node, which applies batches later than the first. A batch is invalid at a node that has not
    /// applied the one before it. Both nodes are in the configuration from now on. No server runs when the fault
    /// begins.
    SecondNodeLags,
    /// From now on, the configuration has a node of another ledger in place of the right one.
    OtherLedger,
}

/// Why a node or its harness cannot do what a case needs. The case is not run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NotPossible(String);

impl NotPossible {
    /// Creates it with this reason, which is shown to people.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
