//! The submitter alone: its queue is a list, and its observer counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::ledger::{GroupObserver, Outcome, Submission, SubmissionOutcome};
use grid_batch_core::{BatchResult, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::{HttpClient, HttpOptions};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_nodes::NodePool;
use grid_batch_protocol::{CylinderToken, Message, SigningKey, list_of_one};
use grid_batch_scabbard::{Scabbard, ScabbardOptions};
use grid_batch_submitter::{
    LedgerSender, RunnableSubmitter, RunningSubmitter, SubmitterBuilder, SubmitterOptions,
};

use crate::batches::{batch, service};

const CONCURRENCY: u32 = 100;
const SERVICES: usize = 100;

/// The batches per second of the submitter, and of the plain loop.
pub fn measure(count: usize) -> (f64, f64) {
    let submissions = (0..count).map(submission).collect();
    let submitter_seconds = run_submitter(&ledger(), submissions);
    let plain_seconds = run_plain_loop(&ledger(), (0..count).map(submission).collect());
    (count as f64 / submitter_seconds, count as f64 / plain_seconds)
}

fn ledger() -> LedgerSim {
    let scopes = (0..SERVICES).map(|number| service(number).parse().unwrap());
    LedgerSim::scabbard(scopes).without_back_pressure().start().unwrap()
}

fn submission(number: usize) -> Submission<ServiceId> {
    let batch = batch(number);
    let scope = service(number % SERVICES).parse().unwrap();
    Submission::new(batch.header_signature.clone(), scope, batch.encode_to_vec())
}

/// Counts accepted batches.
#[derive(Default)]
struct AcceptedCounter(AtomicUsize);

impl GroupObserver for AcceptedCounter {
    type Id = ServiceId;

    fn notify_group(&self, outcomes: &[SubmissionOutcome<ServiceId>]) -> BatchResult<()> {
        assert!(outcomes.iter().all(|o| o.answer.outcome == Outcome::Accepted), "{outcomes:?}");
        self.0.fetch_add(outcomes.len(), SeqCst);
        Ok(())
    }
}

fn run_submitter(ledger: &LedgerSim, submissions: Vec<Submission<ServiceId>>) -> f64 {
    let count = submissions.len();
    let nodes = NodePool::new([ledger.url()]);
    let token = CylinderToken::new(&SigningKey::from_seed(1));
    let resolver = Arc::new(nodes.clone());
    let scabbard = Scabbard::new(&token, resolver, ScabbardOptions::default()).unwrap();
    let accepted = Arc::new(AcceptedCounter::default());
    let runnable = SubmitterBuilder::new()
        .with_queue(submissions)
        .with_sender(Arc::new(LedgerSender(Arc::new(scabbard))))
        .with_url_resolver(nodes.resolver())
        .with_group_observer(accepted.clone())
        .with_options(SubmitterOptions { concurrency: CONCURRENCY, ..SubmitterOptions::default() })
        .build()
        .unwrap();
    let started = Instant::now();
    let running = runnable.run().unwrap();
    while accepted.0.load(SeqCst) < count {
        thread::sleep(Duration::from_millis(1));
    }
    let seconds = started.elapsed().as_secs_f64();
    running.stop().unwrap();
    seconds
}

/// As many tasks as the submitter has submissions in flight. Each posts one batch after the other.
fn run_plain_loop(ledger: &LedgerSim, submissions: Vec<Submission<ServiceId>>) -> f64 {
    let token = CylinderToken::new(&SigningKey::from_seed(1));
    let authorization = format!("Bearer Cylinder:{}", token.as_str());
    let http = HttpClient::new(&HttpOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(SubmitterOptions::default().worker_threads)
        .enable_all()
        .build()
        .unwrap();
    let submissions = Arc::new(submissions);
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let tasks: Vec<_> = (0..CONCURRENCY)
        .map(|_| {
            let (http, next) = (http.clone(), Arc::clone(&next));
            let (submissions, url) = (Arc::clone(&submissions), ledger.url());
            let authorization = authorization.clone();
            runtime.spawn(async move {
                while let Some(submission) = submissions.get(next.fetch_add(1, SeqCst)) {
                    let scope = ServiceScopeId::from_service_id(submission.scope_id()).unwrap();
                    let (circuit, service) = (scope.circuit(), scope.service());
                    let url = format!("{url}/scabbard/{circuit}/{service}/batches");
                    let headers = [("authorization", authorization.as_str())];
                    let body = list_of_one(submission.serialized_batch());
                    let answer = http.post(&url, &headers, body).await.unwrap();
                    assert_eq!(answer.status, 202, "{}", answer.text());
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    started.elapsed().as_secs_f64()
}
