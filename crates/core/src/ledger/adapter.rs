use std::sync::Arc;

use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::batches::{BatchFormat, LedgerPosition, StatusReport};
use crate::evidence::{EvidenceReport, TransactionAnswers, UnresolvedBatch};
use crate::ledger::{
    ForwardedRequest, ForwardedResponse, ForwardedSocket, KeyRefusal, LedgerFacts, LedgerKey,
    PassThroughError, SocketMessages, Submission, SubmissionAnswer,
};
use crate::tokens::AccessScope;
use crate::{BatchError, BatchResult, ItemId, ScopeIdError, ServiceId, ServiceIdError};

/// A ledger. Adapters implement this trait.
///
/// The first six methods are required. The others have default bodies, for ledgers without the feature. The server
/// calls `events`, `ask_ahead`, `look_up_transactions` and `compare_states` only if the [facts](Ledger::facts) say so.
///
/// Every request has a timeout of the adapter's own, and no method blocks the thread that polls it.
///
/// The ledger of this example accepts everything and reports nothing about it, so each batch is held until an operator
/// decides:
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use futures_core::future::BoxFuture;
/// use grid_batch_core::{
///     BatchResult,
///     ServiceId,
///     batches::{BatchFormat, FormatError, NewBatch, StatusReport},
///     evidence::{Evidence, EvidenceReport, UnresolvedBatch},
///     ledger::{Ledger, LedgerFacts, Outcome, Submission, SubmissionAnswer},
/// };
///
/// struct MyLedger;
///
/// impl Ledger for MyLedger {
///     fn facts(&self) -> LedgerFacts {
///         LedgerFacts::weakest(Duration::from_secs(60))
///     }
///
///     fn format(&self) -> Arc<dyn BatchFormat> {
///         Arc::new(TextIsId)
///     }
///
///     fn identity<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
///         Box::pin(async { Ok(String::new()) })
///     }
///
///     fn send<'a>(
///         &'a self,
///         _node: &'a str,
///         _submission: &'a Submission<ServiceId>,
///     ) -> BoxFuture<'a, SubmissionAnswer> {
///         let (outcome, status, message, retry_after) = (Outcome::Accepted, None, None, None);
///         Box::pin(async move { SubmissionAnswer { outcome, status, message, retry_after } })
///     }
///
///     fn statuses<'a>(
///         &'a self,
///         _service_id: &'a str,
///         _batch_ids: &'a [String],
///     ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
///         Box::pin(async { Ok(Vec::new()) })
///     }
///
///     fn find_evidence<'a>(
///         &'a self,
///         _batch: &'a UnresolvedBatch,
///     ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
///         Box::pin(async { Ok(Evidence::Inconclusive.into()) })
///     }
/// }
///
/// struct TextIsId;
///
/// impl BatchFormat for TextIsId {
///     fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
///         let id = self.parse_id(&String::from_utf8_lossy(bytes))?;
///         Ok(vec![NewBatch::new(service_id.clone(), id, bytes.to_vec())])
///     }
/// }
///
/// let batches = MyLedger.format().read(&"a".parse()?, b"batch-1")?;
/// assert_eq!(batches[0].batch_id.to_string(), "batch-1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Ledger: Send + Sync {
    /// What the ledger does with batches. It must always return the same facts.
    fn facts(&self) -> LedgerFacts;

    /// Turns what clients send into batches.
    fn format(&self) -> Arc<dyn BatchFormat>;

    /// What the node at this URL reports about its ledger: [`LedgerIdentity::id`](crate::ledger::LedgerIdentity::id). It must
    /// be the same at all nodes and at all times, except that a node may report less than others.
    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>>;

    /// Sends the batch to the node at this URL once, and reads the answer as an [`Outcome`](crate::ledger::Outcome).
    ///
    /// It never sends twice. If the batch may have arrived when the time is over, the outcome is
    /// [`Outcome::Ambiguous`](crate::ledger::Outcome::Ambiguous).
    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer>;

    /// Sends batches of one service to the node at this URL in one request, which arrives as a whole or not at all and
    /// in which conflicting batches are in order. Returns an answer for each of the first batches; the others were
    /// certainly not sent.
    ///
    /// The default sends the first. Only an adapter that opens a [`ListSize`](crate::queue::ListSize) gets more than one.
    fn send_list<'a>(
        &'a self,
        node: &'a str,
        list: &'a [Submission<ServiceId>],
    ) -> BoxFuture<'a, Vec<SubmissionAnswer>> {
        Box::pin(async move {
            match list.first() {
                Some(first) => vec![self.send(node, first).await],
                None => Vec::new(),
            }
        })
    }

    /// The statuses of these batches of one service.
    fn statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>>;

    /// What can be proved about the batch. A status that a ledger does not report proves nothing.
    /// [`Evidence::Absent`](crate::evidence::Evidence::Absent) is about every attempt up to the present one, including those of
    /// other instances.
    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>>;

    /// Like [`find_evidence`](Self::find_evidence), for several batches of one service, in their order. An adapter
    /// should ask about them at once if it can.
    fn find_evidence_of_all<'a>(
        &'a self,
        batches: &'a [UnresolvedBatch],
    ) -> BoxFuture<'a, Vec<BatchResult<EvidenceReport>>> {
        Box::pin(async move {
            let mut reports = Vec::with_capacity(batches.len());
            for batch in batches {
                reports.push(self.find_evidence(batch).await);
            }
            reports
        })
    }

    /// Whether evidence may be found now about a batch that the ledger has just reported as not ended. It must return
    /// at once. If it returns `false`, evidence is searched only after the state of the batch has not changed for long.
    fn needs_evidence(&self, _service_id: &str, _batch_id: &str) -> bool {
        false
    }

    /// The position of the ledger, as reported by the node at this URL. It is requested before a batch with a
    /// [deadline](crate::batches::Deadline) is sent.
    fn position<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        Box::pin(async { Ok(LedgerPosition::default()) })
    }

    /// How many requests for statuses and evidence may be in flight at once.
    fn connections(&self) -> usize {
        4
    }

    /// Fails if the ledger cannot have a service with this id.
    fn check_service_id(&self, _service_id: &ServiceId) -> Result<(), ScopeIdError> {
        Ok(())
    }

    /// Sends the node a request only to see whether it answers.
    fn probe<'a>(&'a self, node: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move { drop(self.identity(node).await) })
    }

    /// Subscribes to the events of a service. The stream is live when the future resolves. Events only make
    /// the poller ask sooner; any of them may be lost.
    fn events<'a>(&'a self, _service_id: &'a str) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        let error = BatchError::InvalidAnswer("the ledger has no events".to_owned());
        Box::pin(async move { Err(error) })
    }

    /// The node of the latest subscription to this service, for messages.
    fn event_node(&self, _service_id: &str) -> Option<String> {
        None
    }

    /// Asks about these batches of a service before it is their turn, and remembers the answers for
    /// [`send`](Ledger::send). A ledger that must be asked before a batch is sent can thus be asked early, so that the
    /// batch need not wait when its turn comes. After a failure, `send` asks itself.
    fn ask_ahead<'a>(
        &'a self,
        _service_id: &'a ServiceId,
        _batch_ids: &'a [ItemId],
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Which of these transactions the ledger has applied, with whatever batch.
    fn look_up_transactions<'a>(
        &'a self,
        _transaction_ids: &'a [ItemId],
    ) -> BoxFuture<'a, BatchResult<TransactionAnswers>> {
        Box::pin(async { Ok(TransactionAnswers::default()) })
    }

    /// Whether the batch may be sent to the node at this URL now. If not, the error is the reason; another node may be
    /// able to take the batch. A node that has not applied the earlier batches would execute this one on an old state,
    /// and might report it as invalid for good.
    fn check_node<'a>(
        &'a self,
        _node: &'a str,
        _submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Whether the ledger has reported that it has, or once had, the service. `false`: it has not answered, so a batch
    /// is stored and waits. If the ledger has reported that it does not have the service, the error is the reason.
    fn has_service<'a>(
        &'a self,
        _service_id: &'a ServiceId,
    ) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Ok(false) })
    }

    /// Fails with the reason if a batch of the service must be refused because the ledger may have committed it before.
    /// `is_new` is set if the client declares that the ledger has not.
    fn check_history<'a>(
        &'a self,
        _service_id: &'a ServiceId,
        _is_new: bool,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Fails if the node of the service does not grant this key the scope, or cannot be asked.
    fn check_key<'a>(
        &'a self,
        _service_id: &'a ServiceId,
        _key: LedgerKey<'a>,
        _scope: AccessScope,
    ) -> BoxFuture<'a, Result<(), KeyRefusal>> {
        Box::pin(async { Err(KeyRefusal::Refused) })
    }

    /// Compares the states of services at their nodes: of those whose states may differ, and of those in `paused`.
    /// Returns each service for which the result is certain, and whether its states differ for good. The server pauses
    /// a service whose states differ.
    fn compare_states<'a>(
        &'a self,
        _paused: &'a [ServiceId],
    ) -> BoxFuture<'a, Vec<(ServiceId, bool)>> {
        Box::pin(async { Vec::new() })
    }

    /// Whether requests of this path belong to the ledger's own interface and only read. Such requests are forwarded to
    /// a node.
    fn serves(&self, _is_post: bool, _path: &str) -> bool {
        false
    }

    /// The answer of a node to a request that is [served](Ledger::serves).
    fn forward(
        &self,
        _request: ForwardedRequest,
    ) -> BoxFuture<'_, Result<ForwardedResponse, PassThroughError>> {
        Box::pin(async { Err(PassThroughError::NoNode) })
    }

    /// Whether this path is a websocket of the ledger's own interface.
    fn serves_socket(&self, _path: &str) -> bool {
        false
    }

    /// Opens a websocket that is [served](Ledger::serves_socket) at a node. `sent` is the stream of the client's
    /// messages. It is read only while the node's messages are read.
    fn open_socket(
        &self,
        _request: ForwardedRequest,
        _sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        Box::pin(async { Err(PassThroughError::NoNode) })
    }
}

impl dyn Ledger + '_ {
    /// Fails if the ledger cannot have this service, so that its nodes are not asked about it.
    pub fn check_asked_service(&self, service_id: &str) -> BatchResult<()> {
        let service = service_id.parse().map_err(|error: ServiceIdError| error.to_string());
        let checked = service
            .and_then(|service| self.check_service_id(&service).map_err(|error| error.to_string()));
        checked.map_err(|error| {
            let message = format!("the ledger is not asked about this service: {error}");
            BatchError::InternalError(message)
        })
    }
}

/// An event that a ledger sends on its event stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LedgerEvent {
    /// The transaction that was applied, if the ledger names it.
    pub transaction_id: Option<String>,
    /// Whether the ledger has reported the transaction before, although it does not repeat earlier events now. Then it
    /// has applied the transaction a second time.
    pub is_repeated: bool,
}

/// A stream of events. It ends when the connection breaks; an error is always its last item.
pub type LedgerEventStream = BoxStream<'static, BatchResult<LedgerEvent>>;
