use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use grid_batch_client::{Client, ClientError, ClientOptions};
use grid_batch_core::ItemId;
use grid_batch_core::ledger::LedgerFacts;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    BatchKind, CHECK_INTERVAL, Harness, LIMIT, NotPossible, ServerProcess, TestBatch,
    configuration, operator::Operator,
};

/// A batch may be held for at most this long, after which evidence must have released it.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// The run of a case: its servers, and what they have accepted.
pub(crate) struct CaseRun<'a> {
    pub(crate) harness: &'a mut dyn Harness,
    pub(crate) facts: LedgerFacts,
    service: Option<String>,
    database: String,
    /// The settings of the case, besides those of the suite and of the harness.
    pub(crate) settings: String,
    servers: Vec<TestServer>,
    accepted: Vec<AcceptedBatch>,
    /// The batches that another client has sent.
    foreign: Vec<ItemId>,
    directory: TempDir,
}

struct TestServer {
    process: ServerProcess,
    client: Client,
}

/// A batch that a server has accepted.
struct AcceptedBatch {
    batch: TestBatch,
    /// Its id at the server.
    id: String,
    /// Whether it must end as invalid.
    is_invalid: bool,
}

impl<'a> CaseRun<'a> {
    pub(crate) fn new(harness: &'a mut dyn Harness) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", directory.path().join("batches.db").display());
        let (servers, accepted, foreign) = (Vec::new(), Vec::new(), Vec::new());
        let (facts, service, settings) = (harness.facts(), harness.service(), String::new());
        Self { harness, facts, service, database, settings, servers, accepted, foreign, directory }
    }

    /// Uses a database that several instances can share.
    pub(crate) fn use_postgres(&mut self) -> Result<(), NotPossible> {
        self.database = self.harness.postgres()?;
        Ok(())
    }

    /// Starts a process with the present configuration.
    pub(crate) fn spawn(&self) -> ServerProcess {
        let file = self.directory.path().join(format!("server-{}.toml", self.servers.len()));
        let settings = [&*self.harness.configuration(), &*self.settings];
        fs::write(&file, configuration::text(&self.database, &settings)).unwrap();
        ServerProcess::start(self.harness.server(&file))
    }

    /// Starts another server. Requests go to it from now on.
    pub(crate) fn start(&mut self) {
        let mut process = self.spawn();
        let options = ClientOptions { url: process.url(), ..ClientOptions::default() };
        let client = Client::new(options).unwrap();
        self.servers.push(TestServer { process, client });
    }

    /// Kills the server that was started first.
    pub(crate) fn kill(&mut self) {
        self.servers.remove(0).process.kill();
    }

    fn client(&self) -> &Client {
        &self.servers.last().unwrap().client
    }

    /// Posts a valid batch.
    pub(crate) fn post_valid(&mut self) -> Result<TestBatch, NotPossible> {
        let batch = self.harness.batch(BatchKind::Valid)?;
        self.post(&batch);
        Ok(batch)
    }

    /// Posts a batch that must be committed.
    pub(crate) fn post(&mut self, batch: &TestBatch) {
        self.post_as(batch, false);
    }

    /// Posts a batch that must end as invalid, or be refused because the server already knows that it is invalid.
    pub(crate) fn post_invalid(&mut self, batch: &TestBatch) {
        self.post_as(batch, true);
    }

    fn post_as(&mut self, batch: &TestBatch, is_invalid: bool) {
        let started = Instant::now();
        let client = &self.servers.last().unwrap().client;
        let id = loop {
            match self.harness.submit(client, batch) {
                Ok(id) => break id,
                Err(ClientError::Busy { .. }) if started.elapsed() < LIMIT => sleep(CHECK_INTERVAL),
                Err(ClientError::Refused { .. }) if is_invalid => return,
                Err(error) => panic!("the server does not accept the batch {}: {error}", batch.id),
            }
        };
        self.accepted.push(AcceptedBatch { batch: batch.clone(), id, is_invalid });
    }

    /// Posts bytes that are not a batch, and returns the server's answer.
    pub(crate) fn post_bytes(&self, bytes: &[u8]) -> Result<(), ClientError> {
        self.client().submit(bytes, self.service.as_deref(), None, true).map(drop)
    }

    /// Makes another client send a batch to the ledger.
    pub(crate) fn deliver(&mut self, batch: &TestBatch) -> Result<(), NotPossible> {
        self.foreign.push(batch.id);
        self.harness.deliver(batch)
    }

    pub(crate) fn times_applied(&self, batch: &TestBatch) -> usize {
        self.harness.applied().iter().filter(|id| **id == batch.id).count()
    }

    /// Waits until the condition holds.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        let started = Instant::now();
        while !condition(self) {
            assert!(
                started.elapsed() < LIMIT,
                "waited {LIMIT:?} until {what}\n{}",
                self.open_text()
            );
            sleep(CHECK_INTERVAL);
        }
    }

    #[track_caller]
    pub(crate) fn wait_until_applied(&self, batch: &TestBatch) {
        let what = format!("the ledger applies the batch {:.16}", batch.id.to_string());
        self.wait_until(&what, |run| run.times_applied(batch) > 0);
    }

    /// Waits until a submission has arrived after the first `earlier`.
    #[track_caller]
    pub(crate) fn wait_for_arrival_after(&self, earlier: usize) {
        self.wait_until("a submission arrives at the node", |run| run.harness.arrivals() > earlier);
    }

    /// Waits until the server has made this many attempts to send its first batch.
    #[track_caller]
    pub(crate) fn wait_for_attempts(&self, attempts: u64) {
        self.wait_until("the server tries again to send the batch", |run| {
            let details = run.accepted.first().and_then(|first| run.details(first));
            details.is_some_and(|it| it["attempts"].as_u64() >= Some(attempts))
        });
    }

    /// Waits until the server has asked the ledger this many times about the first batch, or has sent it again.
    #[track_caller]
    pub(crate) fn wait_for_polls_or_second_arrival(&self, polls: usize) {
        let seen = RefCell::new(BTreeSet::new());
        self.wait_until("the server has asked the ledger about the batch", |run| {
            seen.borrow_mut().insert(run.latest()["checked_at"].to_string());
            seen.borrow().len() > polls || run.harness.arrivals() > 1
        });
    }

    /// Waits until the condition holds for what the server reports about the latest batch.
    #[track_caller]
    pub(crate) fn wait_until_latest(&self, what: &str, condition: impl Fn(&Value) -> bool) {
        self.wait_until(what, |run| condition(&run.latest()));
    }

    /// Whether the latest batch has this status of the ledger.
    pub(crate) fn latest_is(&self, status: &str) -> bool {
        self.latest()["dlt_status"] == status
    }

    pub(crate) fn latest_is_held(&self) -> bool {
        !self.latest()["held"].is_null()
    }

    /// Whether the latest batch has not been tried yet, or is with a submitter.
    pub(crate) fn latest_is_with_submitter(&self) -> bool {
        self.latest()["dlt_status"].is_null()
    }

    fn latest(&self) -> Value {
        self.accepted.last().and_then(|latest| self.details(latest)).unwrap_or_default()
    }

    /// The server's report about a batch.
    fn details(&self, batch: &AcceptedBatch) -> Option<Value> {
        let path = format!("/v1/batches/{}", batch.id);
        self.client().get(&path, &self.service_parameter()).ok()
    }

    /// The batches that have not ended, for messages.
    fn open_text(&self) -> String {
        if self.servers.is_empty() {
            return String::new();
        }
        let text = |batch: &AcceptedBatch| {
            let details = self.details(batch)?;
            let [state, error, held] = ["state", "last_error", "held"].map(|name| &details[name]);
            let id = batch.batch.id.to_string();
            (!has_ended(&details)).then(|| format!("{id:.16} is {state}, {error}, held: {held}\n"))
        };
        self.accepted.iter().filter_map(text).collect()
    }

    /// Waits until all batches have ended, and checks every promise. Faults must be over, so that the ledger can apply
    /// what it has accepted.
    #[track_caller]
    pub(crate) fn finish(&mut self, operator: Operator) {
        let decisions = self.wait_for_ends(operator);
        assert!(
            operator != Operator::MustDecide || decisions > 0,
            "no batch was held, but the facts say that nothing proves how it ended"
        );
        // A batch that was sent twice may still be waiting at the ledger. A later batch is applied after it.
        if self.post_valid().is_ok() {
            self.wait_for_ends(operator);
        }
        self.check_promises();
    }

    /// Commits one batch after another until the condition holds.
    #[track_caller]
    pub(crate) fn commit_until(
        &mut self,
        what: &str,
        condition: impl Fn(&Self) -> bool,
    ) -> Result<(), NotPossible> {
        let started = Instant::now();
        while !condition(self) {
            assert!(started.elapsed() < LIMIT, "committed batches for {LIMIT:?} until {what}");
            self.post_valid()?;
            self.finish(Operator::Absent);
        }
        Ok(())
    }

    /// Whether the server has noticed that the events do not report commits.
    pub(crate) fn has_silent_events(&self) -> bool {
        let health = self.client().get("/health", &[]).unwrap_or_default();
        health["silent_event_streams"].as_f64() >= Some(1.0)
    }

    /// Waits until all batches have ended. Returns how many decisions the operator made.
    #[track_caller]
    fn wait_for_ends(&self, operator: Operator) -> usize {
        let decisions = Cell::new(0);
        let holds = RefCell::new(HashMap::new());
        self.wait_until("all accepted batches have ended", |run| {
            let mut all = true;
            for batch in &run.accepted {
                let details = run.details(batch).unwrap_or_default();
                all &= has_ended(&details);
                if details["held"].is_null() || has_ended(&details) {
                    holds.borrow_mut().remove(&batch.batch.id);
                } else if operator == Operator::Absent {
                    let since =
                        *holds.borrow_mut().entry(batch.batch.id).or_insert_with(Instant::now);
                    run.check_hold(batch, since, &details["held"]);
                } else {
                    decisions.set(decisions.get() + usize::from(run.decide(batch, &details)));
                }
            }
            all
        });
        decisions.get()
    }

    /// Fails if a batch has been held for long although no operator may be needed.
    #[track_caller]
    fn check_hold(
        &self,
        AcceptedBatch { batch, .. }: &AcceptedBatch,
        since: Instant,
        held: &Value,
    ) {
        let why = match self.times_applied(batch) {
            0 => "the facts say that its end can be proved",
            _ => "the ledger has applied it, so the adapter must find it",
        };
        assert!(
            since.elapsed() < LONGEST_HOLD,
            "the batch {} is held, but {why}: {held}",
            batch.id
        );
    }

    /// Decides as an operator who looks at the ledger. Returns whether the server accepted the decision.
    fn decide(&self, batch: &AcceptedBatch, details: &Value) -> bool {
        let (verb, end) = match (self.times_applied(&batch.batch), batch.is_invalid) {
            (0, false) => ("resubmit", None),
            (0, true) => ("end", Some("invalid")),
            _ => ("end", Some("committed")),
        };
        let mut body = json!({"attempt": details["attempts"], "reason": "seen at the ledger"});
        if let Some(end) = end {
            body["as"] = end.into();
        }
        let path = format!("/v1/batches/{}/{verb}", batch.id);
        // It is refused if the batch has changed since.
        self.client().post(&path, &self.service_parameter(), &body).is_ok()
    }

    fn service_parameter(&self) -> Vec<(&str, &str)> {
        self.service.iter().map(|service| ("service_id", &**service)).collect()
    }

    /// Checks that each committed batch was applied once and in order, and that nothing else was applied.
    #[track_caller]
    fn check_promises(&self) {
        let applied = self.harness.applied();
        let mut committed = Vec::new();
        for AcceptedBatch { batch, is_invalid, .. } in &self.accepted {
            let times = self.times_applied(batch);
            let id = &batch.id;
            if *is_invalid {
                assert_eq!(times, 0, "the invalid batch {id} was applied {times} times");
            } else {
                assert_eq!(times, 1, "the batch {id} was applied {times} times");
            }
            committed.extend((!is_invalid).then_some(*id));
        }
        for accepted in &self.accepted {
            let status = self.details(accepted).unwrap_or_default()["dlt_status"].clone();
            let expected = if accepted.is_invalid { "INVALID" } else { "COMMITTED" };
            assert_eq!(status, expected, "the status of the batch {}", accepted.batch.id);
        }
        let is_known = |id: &&ItemId| committed.contains(id) || self.foreign.contains(id);
        let stray = applied.iter().find(|id| !is_known(id));
        assert_eq!(stray, None, "the ledger has applied what was not accepted");
        let own: Vec<_> = applied.into_iter().filter(|id| committed.contains(id)).collect();
        if !own.iter().any(|id| self.foreign.contains(id)) {
            assert_eq!(own, committed, "the order of the ledger is not the order of acceptance");
        }
    }
}

pub(crate) fn has_ended(details: &Value) -> bool {
    !details["ended_at"].is_null()
}
