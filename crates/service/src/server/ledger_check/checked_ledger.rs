use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::StreamExt;
use grid_batch_core::{
    AccessScope, BatchError, BatchFormat, BatchResult, Evidence, EvidenceReport, ForwardedRequest,
    ForwardedResponse, ForwardedSocket, ItemId, KeyRefusal, Ledger, LedgerEventStream, LedgerFacts,
    LedgerKey, LedgerPosition, Outcome, PassThroughError, ScopeIdError, ServiceId, SocketMessages,
    StatusReport, StatusUrlResolver, Submission, SubmissionAnswer, TransactionAnswers,
    UnresolvedBatch,
};

use super::LedgerCheck;

/// A wrapper of a ledger. It uses only nodes that have confirmed that they belong to the ledger, and only services that
/// the ledger can have.
///
/// - A batch is sent only to a node that has confirmed its ledger within the last seconds.
/// - Absence and expiry count only if every node confirms its ledger again after it was asked.
/// - A node is asked again when a connection to it ends, because then it may have been replaced.
struct CheckedLedger {
    ledger: Arc<dyn Ledger>,
    check: LedgerCheck,
}

impl LedgerCheck {
    /// The same ledger, kept away from nodes that have not confirmed it.
    pub(in crate::server) fn checked(&self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        Arc::new(CheckedLedger { ledger, check: self.clone() })
    }
}

impl CheckedLedger {
    async fn send_checked(
        &self,
        url: &str,
        submission: &Submission<ServiceId>,
    ) -> SubmissionAnswer {
        if let Err(reason) = self.check.confirm_now(url).await {
            return not_sent(reason);
        }
        self.check.pool().expect_of(submission.scope_id().as_str());
        let answer = self.ledger.send(url, submission).await;
        let has_failed = answer.status.is_none()
            && matches!(answer.outcome, Outcome::NotSent | Outcome::Ambiguous);
        if has_failed {
            self.check.connection_failed(url);
        }
        answer
    }

    async fn statuses_checked(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<StatusReport>> {
        self.check_service(service_id)?;
        let Some(first) = batch_ids.first() else { return Ok(Vec::new()) };
        let nodes = self.check.pool().status_urls(service_id, first);
        if let Err(error) = self.check_any_confirmed(&nodes) {
            self.check.0.waiting.add(service_id);
            return Err(error);
        }
        self.check.pool().expect_of(service_id);
        let result = self.ledger.statuses(service_id, batch_ids).await;
        if let Err(BatchError::Unavailable(_)) = &result {
            self.check.0.waiting.add(service_id);
            nodes.iter().for_each(|node| self.check.connection_failed(node));
        }
        result
    }

    /// The batches are of one service, and its nodes are asked about all.
    async fn evidence_checked(
        &self,
        batches: &[UnresolvedBatch],
    ) -> Vec<BatchResult<EvidenceReport>> {
        let Some(first) = batches.first() else { return Vec::new() };
        let service = first.service_id.as_str();
        let nodes = self.check.pool().status_urls(service, &first.batch_id.to_string());
        let usable = self.check_service(service).and_then(|()| self.check_any_confirmed(&nodes));
        if let Err(error) = usable {
            return batches.iter().map(|_| Err(error.clone())).collect();
        }
        let mut reports = self.ledger.find_evidence_of_all(batches).await;
        if reports.iter().any(|report| matches!(report, Err(BatchError::Unavailable(_)))) {
            nodes.iter().for_each(|node| self.check.connection_failed(node));
        }
        if reports.iter().any(needs_all_nodes) && !self.are_all_confirmed_now(&nodes).await {
            let detail = "a node does not confirm that it belongs to the ledger any more";
            for report in reports.iter_mut().filter(|report| needs_all_nodes(report)) {
                *report = Ok(EvidenceReport::with_detail(Evidence::Inconclusive, detail));
            }
        }
        reports
    }

    async fn events_checked(&self, service_id: &str) -> BatchResult<LedgerEventStream> {
        let events = self.ledger.events(service_id).await?;
        let check = self.check.clone();
        // An error is always the last item of a stream.
        let events = events.inspect(move |event| {
            if event.is_err() {
                check.any_connection_failed();
            }
        });
        Ok(events.boxed())
    }

    /// An error if the ledger cannot have this service, so that its nodes are not asked about it.
    fn check_service(&self, service_id: &str) -> BatchResult<()> {
        let service: Result<ServiceId, _> = service_id.parse();
        let checked = service.map_err(|error| error.to_string()).and_then(|service| {
            self.ledger.check_service_id(&service).map_err(|error| error.to_string())
        });
        checked.map_err(|error| {
            let message = format!("the ledger is not asked about this service: {error}");
            BatchError::InternalError(message)
        })
    }

    /// An error if none of these nodes can be asked. Without nodes, the ledger itself has the error.
    fn check_any_confirmed(&self, nodes: &[String]) -> BatchResult<()> {
        if nodes.is_empty() || nodes.iter().any(|node| self.check.pool().is_confirmed(node)) {
            return Ok(());
        }
        let reason = "no node has confirmed that it belongs to the ledger of the database";
        Err(match self.check.unusable(nodes) {
            Some(problems) => BatchError::InvalidAnswer(format!("{reason} ({problems})")),
            None => BatchError::Unavailable(reason.to_owned()),
        })
    }

    async fn are_all_confirmed_now(&self, nodes: &[String]) -> bool {
        for node in nodes {
            self.check.connection_failed(node);
            if self.check.confirm_now(node).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// A node of another ledger would give this evidence, too.
fn needs_all_nodes(report: &BatchResult<EvidenceReport>) -> bool {
    report
        .as_ref()
        .is_ok_and(|report| report.evidence.is_absence() || report.evidence == Evidence::Expired)
}

fn not_sent(reason: String) -> SubmissionAnswer {
    SubmissionAnswer {
        outcome: Outcome::NotSent,
        status: None,
        message: Some(reason),
        retry_after: None,
    }
}

impl Ledger for CheckedLedger {
    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(self.send_checked(node, submission))
    }

    fn statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(self.statuses_checked(service_id, batch_ids))
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(async move {
            let reports = self.evidence_checked(std::slice::from_ref(batch)).await;
            reports.into_iter().next().unwrap_or(Ok(Evidence::Inconclusive.into()))
        })
    }

    fn find_evidence_of_all<'a>(
        &'a self,
        batches: &'a [UnresolvedBatch],
    ) -> BoxFuture<'a, Vec<BatchResult<EvidenceReport>>> {
        Box::pin(self.evidence_checked(batches))
    }

    fn events<'a>(&'a self, service_id: &'a str) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(self.events_checked(service_id))
    }

    fn facts(&self) -> LedgerFacts {
        self.ledger.facts()
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        self.ledger.format()
    }

    fn position<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        Box::pin(async move {
            self.check.confirm_now(node).await.map_err(BatchError::Unavailable)?;
            self.ledger.position(node).await
        })
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        self.ledger.identity(node)
    }

    fn needs_evidence(&self, service_id: &str, batch_id: &str) -> bool {
        self.ledger.needs_evidence(service_id, batch_id)
    }

    fn connections(&self) -> usize {
        self.ledger.connections()
    }

    fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
        self.ledger.check_service_id(service_id)
    }

    fn probe<'a>(&'a self, node: &'a str) -> BoxFuture<'a, ()> {
        self.ledger.probe(node)
    }

    fn event_node(&self, service_id: &str) -> Option<String> {
        self.ledger.event_node(service_id)
    }

    fn ask_ahead<'a>(
        &'a self,
        service_id: &'a ServiceId,
        batch_ids: &'a [ItemId],
    ) -> BoxFuture<'a, ()> {
        self.ledger.ask_ahead(service_id, batch_ids)
    }

    fn look_up_transactions<'a>(
        &'a self,
        transaction_ids: &'a [ItemId],
    ) -> BoxFuture<'a, BatchResult<TransactionAnswers>> {
        self.ledger.look_up_transactions(transaction_ids)
    }

    fn check_node<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.ledger.check_node(node, submission)
    }

    fn has_service<'a>(&'a self, service_id: &'a ServiceId) -> BoxFuture<'a, Result<bool, String>> {
        self.ledger.has_service(service_id)
    }

    fn check_history<'a>(
        &'a self,
        service_id: &'a ServiceId,
        is_new: bool,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.ledger.check_history(service_id, is_new)
    }

    fn check_key<'a>(
        &'a self,
        service_id: &'a ServiceId,
        key: LedgerKey<'a>,
        scope: AccessScope,
    ) -> BoxFuture<'a, Result<(), KeyRefusal>> {
        self.ledger.check_key(service_id, key, scope)
    }

    fn compare_states<'a>(
        &'a self,
        paused: &'a [ServiceId],
    ) -> BoxFuture<'a, Vec<(ServiceId, bool)>> {
        self.ledger.compare_states(paused)
    }

    fn serves(&self, is_post: bool, path: &str) -> bool {
        self.ledger.serves(is_post, path)
    }

    fn forward(
        &self,
        request: ForwardedRequest,
    ) -> BoxFuture<'_, Result<ForwardedResponse, PassThroughError>> {
        self.ledger.forward(request)
    }

    fn serves_socket(&self, path: &str) -> bool {
        self.ledger.serves_socket(path)
    }

    fn open_socket(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        self.ledger.open_socket(request, sent)
    }
}
