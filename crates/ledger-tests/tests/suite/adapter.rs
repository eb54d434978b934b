//! The adapter of the small ledger, and the program that has it.

use std::{
    env,
    error::Error,
    iter::empty,
    path::PathBuf,
    sync::Arc,
    thread::{current, park},
    time::Duration,
};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{
    BatchFormat, Deadline, FormatError, LedgerPosition, LedgerStatus, NewBatch, StatusReport,
};
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{Ledger, LedgerFacts, Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchError, BatchResult, ItemId, ServiceId};
use grid_batch_service::{Config, LedgerContext, LedgerType, Server};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::variant::Variant;

/// The variables with the configuration file and with the [`Variant`].
pub const FILE: &str = "SMALL_LEDGER_FILE";
pub const VARIANT: &str = "SMALL_LEDGER_VARIANT";

const SMALL: LedgerType = LedgerType::new("small", |_| Ok(variant().facts()), open);

/// Runs a server until it is killed, or until its nodes belong to another ledger than its database.
pub fn serve() -> Result<(), Box<dyn Error>> {
    let file = env::var(FILE)?;
    let config = Config::load_with_ledgers(&[SMALL], Some(&PathBuf::from(file)), empty(), vec![])?;
    let server = Server::start(&config)?;
    let main = current();
    server.on_ledger_mismatch(move || main.unpark());
    println!("{}/", server.url());
    loop {
        park();
        if let Some(mismatch) = server.ledger_mismatch() {
            return Err(mismatch.clone().into());
        }
    }
}

pub fn variant() -> Variant {
    env::var(VARIANT).unwrap().parse().unwrap()
}

fn open(context: &LedgerContext<'_>) -> Result<Arc<dyn Ledger>, Box<dyn Error + Send + Sync>> {
    let node = context.urls().first().ok_or("ledger.urls has no node")?.clone();
    Ok(Arc::new(SmallLedger { node, variant: variant() }))
}

struct SmallLedger {
    node: String,
    variant: Variant,
}

/// One request to a node. The error is the reason why there is no answer.
async fn ask(node: &str, request: String) -> BatchResult<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(node.trim_start_matches("http://")).await?;
        stream.write_all(format!("{request}\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer.trim_end().to_owned())
    };
    match timeout(Duration::from_secs(1), exchange).await {
        Ok(Ok(answer)) if !answer.is_empty() => Ok(answer),
        Ok(Ok(_)) | Err(_) => Err(BatchError::InvalidAnswer("no answer".to_owned())),
        Ok(Err(error)) => Err(BatchError::InvalidAnswer(error.to_string())),
    }
}

impl SmallLedger {
    async fn status(&self, id: &str) -> BatchResult<LedgerStatus> {
        Ok(match ask(&self.node, format!("status {id}")).await?.as_str() {
            "committed" => LedgerStatus::Committed,
            "invalid" => LedgerStatus::Invalid,
            "pending" => LedgerStatus::Pending,
            _ => LedgerStatus::NotReported,
        })
    }

    /// Its height and its name.
    async fn position(&self, node: &str) -> BatchResult<(u64, String)> {
        let answer = ask(node, "position".to_owned()).await?;
        let parsed =
            answer.split_once(' ').and_then(|(height, name)| Some((height.parse().ok()?, name)));
        let (height, name) = parsed.ok_or_else(|| BatchError::InvalidAnswer(answer.clone()))?;
        Ok((height, name.to_owned()))
    }

    async fn evidence(&self, batch: &UnresolvedBatch) -> BatchResult<Evidence> {
        // The height is read first: a batch that is not applied when this height has passed its deadline never is.
        let (height, _) = self.position(&self.node).await?;
        let has_passed =
            batch.deadline.is_some_and(|it| matches!(it, Deadline::Height(end) if end < height));
        Ok(match self.status(&batch.batch_id.to_string()).await? {
            LedgerStatus::Committed => Evidence::Committed,
            LedgerStatus::Pending => Evidence::Present,
            LedgerStatus::NotReported if self.variant == Variant::Weak => Evidence::Inconclusive,
            LedgerStatus::NotReported if has_passed => Evidence::Expired,
            LedgerStatus::NotReported => Evidence::Absent,
            _ => Evidence::Inconclusive,
        })
    }
}

impl Ledger for SmallLedger {
    fn facts(&self) -> LedgerFacts {
        self.variant.facts()
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        Arc::new(Lines)
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(async move {
            let (_, name) = self.position(node).await?;
            Ok(match self.variant {
                Variant::Weak => String::new(),
                Variant::HidesIdentity => "small".to_owned(),
                _ => name,
            })
        })
    }

    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(async move {
            // If the ledger must not get a batch a second time, it is asked before the batch is sent.
            let id = submission.batch_header();
            let known = self.facts().asks_before_sending();
            let known = if known { self.status(id).await } else { Ok(LedgerStatus::NotReported) };
            let outcome = match known {
                Err(_) => Outcome::NotSent,
                Ok(LedgerStatus::Committed) => Outcome::Committed,
                Ok(_) => {
                    let bytes = String::from_utf8_lossy(submission.serialized_batch()).into_owned();
                    match ask(node, format!("send {bytes}")).await.as_deref() {
                        Ok("accepted") => Outcome::Accepted,
                        Ok("busy") => Outcome::Busy,
                        Ok("refused") => Outcome::Refused,
                        _ if self.variant == Variant::GuessesAnswers => Outcome::Busy,
                        _ => Outcome::Ambiguous,
                    }
                }
            };
            SubmissionAnswer { outcome, status: None, message: None, retry_after: None }
        })
    }

    fn statuses<'a>(
        &'a self,
        _service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(async move {
            let mut reports = Vec::new();
            for id in batch_ids {
                let (batch_id, status) = (id.clone(), self.status(id).await?);
                reports.push(StatusReport { batch_id, status, receipts: Vec::new() });
            }
            Ok(reports)
        })
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(async move { Ok(self.evidence(batch).await?.into()) })
    }

    fn position<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<LedgerPosition>> {
        Box::pin(async move {
            let (height, _) = self.position(node).await?;
            Ok(LedgerPosition { height: Some(height), ..LedgerPosition::default() })
        })
    }
}

/// A batch is a line: its id, and `invalid` or `until` and a height.
struct Lines;

impl BatchFormat for Lines {
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
        let line = String::from_utf8(bytes.to_vec());
        let line = line.map_err(|error| FormatError::Undecodable(error.to_string()))?;
        let words: Vec<&str> = line.split(' ').collect();
        let id: ItemId = self.parse_id(words[0])?;
        let deadline = match words[1..] {
            ["until", height] => height.parse().ok().map(Deadline::Height),
            _ => None,
        };
        Ok(vec![NewBatch {
            service_id: service_id.clone(),
            batch_id: id,
            signer: None,
            transaction_ids: vec![id],
            declared_access: None,
            serialized_batch: line.into_bytes(),
            label: None,
            client: None,
            declared_new: false,
            deadline,
            trace: None,
        }])
    }
}
