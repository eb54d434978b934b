//! The adapter of grid-batch for a ledger whose accounts have sequence numbers, and whose transactions expire at a
//! height. A service is an account, and a batch is one transaction of it.

use std::{error::Error, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{
    BatchFormat, Deadline, FormatError, LedgerPosition, LedgerStatus, NewBatch, Receipt,
    StatusReport,
};
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{
    Ledger, LedgerFacts, Outcome, SecondArrival, Submission, SubmissionAnswer,
};
use grid_batch_core::{BatchError, BatchResult, Excerpt, ItemIdError, ScopeIdError, ServiceId};
use grid_batch_http::{HttpClient, HttpError, HttpResponse, join, submission_answer};
use grid_batch_service::{LedgerContext, LedgerType, StatusUrlResolver, settings};
use serde::{Deserialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

/// What `ledger.kind = "sequence"` means.
pub const SEQUENCE: LedgerType =
    LedgerType::new("sequence", |_| Ok(facts()), open).with_settings(&[SequenceSettings::SETTINGS]);

settings! {
    /// The section `[ledger.sequence]` of the configuration.
    struct SequenceSettings in "ledger.sequence." {
        /// Number of blocks that must be left for a transaction; it is not sent if fewer are.
        height_margin: u32 = number("2"),
    }
}

/// What the ledger does with transactions.
pub const fn facts() -> LedgerFacts {
    LedgerFacts {
        // Its sequence number was used. The node refuses it, and still reports that it was applied.
        second_arrival: SecondArrival::AppliedOnce,
        // Its height has passed, or its sequence number was used for another transaction.
        proves_absence: true,
        // The same holds for an attempt that arrives late.
        late_arrival_limit: Duration::ZERO,
        // They are in blocks. Only transactions that wait for a block are in memory.
        statuses_survive_restart: true,
        // A transaction that has failed has used its sequence number, so it fails once.
        reports_earlier_invalid: false,
        // Sequence numbers set the order, whatever the order of arrival.
        keeps_order: false,
        batches_expire: true,
        tells_identity: true,
        ..LedgerFacts::weakest(Duration::ZERO)
    }
}

/// Makes the adapter.
fn open(context: &LedgerContext<'_>) -> Result<Arc<dyn Ledger>, Box<dyn Error + Send + Sync>> {
    Ok(Arc::new(SequenceLedger {
        client: HttpClient::new(&context.http())?,
        nodes: context.nodes(),
        height_margin: SequenceSettings::read(context.settings())?.height_margin.into(),
    }))
}

struct SequenceLedger {
    client: HttpClient,
    nodes: Arc<dyn StatusUrlResolver>,
    height_margin: u64,
}

/// What a node tells of itself.
#[derive(Deserialize)]
struct NodeStatus {
    network: String,
    height: u64,
}

/// What a node tells of a transaction. All of it is of one moment.
#[derive(Deserialize)]
struct Record {
    /// The latest block of the node.
    height: u64,
    /// The sequence number that the account has not used yet.
    next_sequence: u64,
    state: State,
    /// Why the transaction has failed.
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Unknown,
    Waiting,
    Applied,
    Failed,
}

impl Ledger for SequenceLedger {
    fn facts(&self) -> LedgerFacts {
        facts()
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        Arc::new(TransactionFormat)
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(async move { Ok(format!("network {}", self.node_status(node).await?.network)) })
    }

    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(async move {
            let result = self.post(node, submission.serialized_batch().to_vec()).await;
            submission_answer(result, outcome)
        })
    }

    fn statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(async move {
            let mut reports = Vec::with_capacity(batch_ids.len());
            for id in batch_ids {
                reports.push(self.record(service_id, id).await?.status(id));
            }
            Ok(reports)
        })
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(async move {
            let id = batch.batch_id.to_string();
            let record = self.record(batch.service_id.as_str(), &id).await?;
            Ok(record.evidence(&id, batch.deadline))
        })
    }

    fn position<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        Box::pin(async move {
            Ok(LedgerPosition {
                height: Some(self.node_status(node).await?.height),
                height_margin: self.height_margin,
                ..LedgerPosition::default()
            })
        })
    }

    fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
        let name = service_id.as_str();
        if name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(());
        }
        let expected = "the name of an account: at most 32 letters and digits";
        Err(ScopeIdError::Format { value: Excerpt::of(name), expected })
    }
}

impl SequenceLedger {
    async fn node_status(&self, node: &str) -> BatchResult<NodeStatus> {
        self.get(node, "status").await
    }

    /// The record of the first node that answers. A node that lags behind the others shows less, and nothing wrong.
    async fn record(&self, account: &str, id: &str) -> BatchResult<Record> {
        let mut result = Err(BatchError::Unavailable("no node is known".to_owned()));
        for node in self.nodes.status_urls(account, id) {
            result = self.get(&node, &format!("accounts/{account}/transactions/{id}")).await;
            if result.is_ok() {
                break;
            }
        }
        result
    }

    async fn get<T: DeserializeOwned>(&self, node: &str, path: &str) -> BatchResult<T> {
        let response = self.client.get(&join(node, path)?, &[]).await?;
        let body = response.successful_body(HttpResponse::text).map_err(|error| error.at(node))?;
        serde_json::from_slice(&body)
            .map_err(|error| BatchError::InvalidAnswer(format!("{node}: {error}")))
    }

    async fn post(&self, node: &str, body: Vec<u8>) -> Result<HttpResponse, HttpError> {
        let headers = [("content-type", "application/json")];
        self.client.post(&join(node, "transactions")?, &headers, body).await
    }
}

/// How a node has answered a transaction.
fn outcome(response: &HttpResponse) -> Outcome {
    match response.status {
        202 => Outcome::Accepted,
        // No node will ever accept it.
        400 => Outcome::Rejected,
        // Its sequence number was used, or its height has passed. Perhaps it was applied itself: evidence is looked for.
        409 => Outcome::Ambiguous,
        // A transaction before it is missing. It may arrive until the deadline.
        425 => Outcome::RefusedBatch,
        429 | 503 => Outcome::Busy,
        401 | 403 | 404 => Outcome::Refused,
        _ => Outcome::Ambiguous,
    }
}

impl Record {
    fn status(self, id: &str) -> StatusReport {
        let status = match self.state {
            State::Unknown => LedgerStatus::NotReported,
            State::Waiting => LedgerStatus::Pending,
            State::Applied => LedgerStatus::Committed,
            State::Failed => LedgerStatus::Invalid,
        };
        let receipt = |error_message| Receipt {
            transaction_id: id.parse().ok(),
            error_message,
            error_data: Vec::new(),
        };
        let receipts = self.error.map(receipt).into_iter().collect();
        StatusReport { batch_id: id.to_owned(), status, receipts }
    }

    /// A sequence number is used once, and blocks come in order: so each of these is true for ever, whatever arrives
    /// later and whatever other nodes show. *Repeatable* alone may change.
    fn evidence(self, id: &str, deadline: Option<Deadline>) -> EvidenceReport {
        let last_height = match deadline {
            Some(Deadline::Height(height)) => height,
            _ => u64::MAX,
        };
        match self.state {
            State::Applied => Evidence::Committed.into(),
            State::Failed => {
                let error = self.error.unwrap_or_else(|| "the transaction has failed".to_owned());
                EvidenceReport::with_detail(Evidence::NeverApplicable, error)
            }
            State::Waiting => Evidence::Present.into(),
            State::Unknown if sequence_of(id).is_some_and(|it| it < self.next_sequence) => {
                let detail = "its sequence number was used for another transaction";
                EvidenceReport::with_detail(Evidence::NeverApplicable, detail)
            }
            State::Unknown if last_height <= self.height => {
                let detail = format!("a node is at height {} and has not applied it", self.height);
                EvidenceReport::with_detail(Evidence::Expired, detail)
            }
            State::Unknown => Evidence::Repeatable.into(),
        }
    }
}

/// What the adapter reads of a transaction. A real one has a signature, too, which the format verifies.
#[derive(Deserialize)]
struct Transaction {
    account: String,
    sequence: u64,
    /// The last block that can have it.
    last_height: u64,
}

/// The body of a request is one transaction in JSON.
struct TransactionFormat;

impl BatchFormat for TransactionFormat {
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
        let transaction: Transaction = serde_json::from_slice(bytes)
            .map_err(|error| FormatError::Undecodable(format!("no transaction: {error}")))?;
        let Transaction { account, sequence, last_height } = transaction;
        if account != service_id.as_str() {
            let text = format!("the account of the transaction is {account:?}, not {service_id}");
            return Err(FormatError::Invalid(text));
        }
        let id = id_of(&account, sequence, bytes).parse();
        let id = id.map_err(|error: ItemIdError| FormatError::Id(error.to_string()))?;
        Ok(vec![NewBatch {
            deadline: Some(Deadline::Height(last_height)),
            ..NewBatch::new(service_id.clone(), id, bytes.to_vec())
        }])
    }
}

/// The id that the ledger gives a transaction: `ACCOUNT-SEQUENCE-HASH`.
fn id_of(account: &str, sequence: u64, bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{account}-{sequence}-{hash}")
}

/// The sequence number in an id.
fn sequence_of(id: &str) -> Option<u64> {
    id.split('-').nth(1)?.parse().ok()
}
