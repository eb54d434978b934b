//! The check with nodes and a database that tests control, while tokio's clock is paused.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::future::join;
use grid_batch_core::batches::{BatchFormat, StatusReport};
use grid_batch_core::evidence::{EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{
    Ledger, LedgerConfirmation, LedgerFacts, LedgerIdentity, Outcome, RecordedLedger, Submission,
    SubmissionAnswer,
};
use grid_batch_core::{BatchError, BatchResult, Clock, ManualClock, ServiceId, Timestamp};
use grid_batch_nodes::{NodePool, NodePoolOptions, UrlResolver};
use grid_batch_support::Jobs;
use log::{Log, Metadata, Record};
use tokio::{runtime::Handle, time::sleep};

use crate::{LedgerCheck, watch::Watcher};

/// The nodes by URL, each of which reports its ledger or is down, and the database.
#[derive(Default)]
struct TestLedgers {
    nodes: Mutex<HashMap<String, Result<String, BatchError>>>,
    recorded: Mutex<Option<LedgerIdentity>>,
    asked: AtomicUsize,
    /// How long a node takes to report its ledger.
    delay: Mutex<Duration>,
}

impl TestLedgers {
    fn set(&self, url: &str, id: Option<&str>) {
        let down = || BatchError::Unavailable("refused".to_owned());
        let answer = id.map(str::to_owned).ok_or_else(down);
        self.nodes.lock().unwrap().insert(url.to_owned(), answer);
    }

    fn record(&self, id: &str) {
        let identity = LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("sawtooth") };
        *self.recorded.lock().unwrap() = Some(identity);
    }
}

impl Ledger for TestLedgers {
    fn facts(&self) -> LedgerFacts {
        unreachable!("no test needs them")
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        unreachable!("no test reads batches")
    }

    fn send<'a>(
        &'a self,
        _: &'a str,
        _: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        unreachable!("no test sends batches")
    }

    fn statuses<'a>(
        &'a self,
        _: &'a str,
        _: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        unreachable!("no test reads statuses")
    }

    fn find_evidence<'a>(
        &'a self,
        _: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        unreachable!("no test looks for evidence")
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        self.asked.fetch_add(1, Relaxed);
        let answer = self.nodes.lock().unwrap()[node].clone();
        let delay = *self.delay.lock().unwrap();
        Box::pin(async move {
            sleep(delay).await;
            answer
        })
    }

    fn probe<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

impl TestLedgers {
    fn confirm_ledger(&self, ledger: &LedgerIdentity) -> BatchResult<LedgerConfirmation> {
        let mut recorded = self.recorded.lock().unwrap();
        let identity = recorded.get_or_insert_with(|| ledger.clone()).clone();
        Ok(if identity == *ledger {
            LedgerConfirmation::Confirmed
        } else {
            LedgerConfirmation::Other(RecordedLedger {
                identity,
                recorded_at: Timestamp::default(),
            })
        })
    }
}

/// A running check of the nodes `a` and `b`.
struct TestCheck {
    ledgers: Arc<TestLedgers>,
    clock: Arc<ManualClock>,
    check: LedgerCheck,
}

impl TestCheck {
    /// Starts the check of nodes that report these ids, or are down if there is none.
    async fn start(a: Option<&str>, b: Option<&str>) -> Self {
        let ledgers = Arc::new(TestLedgers::default());
        ledgers.set("a", a);
        ledgers.set("b", b);
        Self::start_with(ledgers).await
    }

    async fn start_with(ledgers: Arc<TestLedgers>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let pool = NodePool::with_options(NodePoolOptions {
            urls: vec!["a".to_owned(), "b".to_owned()],
            clock: Arc::<ManualClock>::clone(&clock),
            ..NodePoolOptions::default()
        });
        let configured = LedgerIdentity::new("sawtooth");
        let check = LedgerCheck::new(configured, pool, Duration::from_secs(1));
        let was_bound = ledgers.recorded.lock().unwrap().is_some();
        let database = Arc::<TestLedgers>::clone(&ledgers);
        let confirm = Arc::new(move |ledger: &LedgerIdentity| database.confirm_ledger(ledger));
        let blocking = Jobs::on_runtime(Handle::current()).blocking().clone();
        let (check, ledger) = (check, ledgers.clone());
        let watcher = Watcher { check: check.clone(), ledger, confirm, blocking, was_bound };
        tokio::spawn(watcher.run());
        let test = Self { ledgers, clock, check };
        test.wait_until(|check| check.is_complete()).await;
        test
    }

    async fn wait_until(&self, condition: impl Fn(&LedgerCheck) -> bool) {
        while !condition(&self.check) {
            tokio::task::yield_now().await;
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Lets time elapse on both clocks.
    async fn pass(&self, seconds: u64) {
        let time = Duration::from_secs(seconds);
        self.clock.advance(time);
        sleep(time).await;
    }

    fn confirmed_nodes(&self) -> String {
        self.check.pool().confirmed().status_urls("service", "batch").concat()
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_is_enough_to_claim() {
    let test = TestCheck::start(Some("x"), None).await;
    assert!(test.check.may_claim());
    assert_eq!(test.check.problem(), None);
    assert_eq!(test.confirmed_nodes(), "a");
    assert_eq!(test.check.pool().confirm("a").await, Ok(()));
    let error = test.check.pool().confirm("b").await.unwrap_err();
    assert!(error.contains("cannot be used now") && error.contains("refused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_nothing_is_claimed_until_one_comes() {
    let test = TestCheck::start(None, None).await;
    assert!(!test.check.may_claim());
    let problem = test.check.problem().unwrap();
    assert!(problem.contains("a: ") && problem.contains("refused"), "{problem}");
    assert_eq!(test.confirmed_nodes(), "");
    test.ledgers.set("b", Some("x"));
    test.wait_until(LedgerCheck::may_claim).await;
    assert_eq!(test.confirmed_nodes(), "b");
}

#[tokio::test(start_paused = true)]
async fn nodes_of_two_ledgers_end_everything_in_a_new_database() {
    let test = TestCheck::start(Some("x"), Some("y")).await;
    test.wait_until(|check| check.mismatch().is_some()).await;
    assert!(!test.check.may_claim());
    assert_eq!(test.confirmed_nodes(), "");
    for node in ["a", "b"] {
        assert!(test.check.pool().confirm(node).await.is_err());
    }
    let message = test.check.problem().unwrap();
    assert!(message.contains("(sawtooth, x)") && message.contains("(sawtooth, y)"), "{message}");
    let called = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&called);
    test.check.on_mismatch(move || {
        count.fetch_add(1, Relaxed);
    });
    assert_eq!(called.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn node_of_another_ledger_is_not_used() {
    let ledgers = Arc::new(TestLedgers::default());
    ledgers.record("x");
    ledgers.set("a", Some("y"));
    ledgers.set("b", Some("x"));
    let test = TestCheck::start_with(ledgers).await;
    test.wait_until(LedgerCheck::may_claim).await;
    assert_eq!(test.confirmed_nodes(), "b");
    assert!(test.check.pool().confirm("a").await.unwrap_err().contains("another ledger"));
    assert_eq!(test.check.pool().confirm("b").await, Ok(()));
    let [other] = &test.check.pool().other_ledgers()[..] else { panic!() };
    assert!(other.contains("node a") && other.contains("(sawtooth, y)"), "{other}");
    test.ledgers.set("a", Some("x"));
    test.pass(2).await;
    assert_eq!(
        (test.confirmed_nodes(), test.check.pool().other_ledgers().len()),
        ("ab".to_owned(), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_that_all_have_another_ledger_end_everything() {
    let ledgers = Arc::new(TestLedgers::default());
    ledgers.record("x");
    ledgers.set("a", Some("y"));
    ledgers.set("b", None);
    let test = TestCheck::start_with(ledgers).await;
    test.pass(2).await;
    assert!(test.check.mismatch().is_none(), "one node may be right");
    test.ledgers.set("b", Some("z"));
    test.wait_until(|check| check.mismatch().is_some()).await;
    assert!(!test.check.may_claim());
}

#[tokio::test(start_paused = true)]
async fn node_that_was_replaced_is_found_before_the_next_batch() {
    let test = TestCheck::start(Some("x"), Some("x")).await;
    test.pass(6).await;
    test.ledgers.set("a", Some("y"));
    assert!(test.check.pool().confirm("a").await.is_err());
    assert_eq!((test.confirmed_nodes(), test.check.mismatch()), ("b".to_owned(), None));
}

#[tokio::test(start_paused = true)]
async fn node_that_was_replaced_is_found_without_a_batch() {
    let test = TestCheck::start(Some("x"), Some("x")).await;
    test.ledgers.set("b", Some("y"));
    test.pass(31).await;
    test.wait_until(|check| !check.pool().is_confirmed("b")).await;
    assert!(test.check.may_claim());
}

#[tokio::test(start_paused = true)]
async fn node_is_asked_again_after_a_failed_connection() {
    let test = TestCheck::start(Some("x"), Some("x")).await;
    let asked = test.ledgers.asked.load(Relaxed);
    assert_eq!(test.check.pool().confirm("a").await, Ok(()));
    assert_eq!(test.ledgers.asked.load(Relaxed), asked, "it was asked a moment ago");
    test.check.pool().failed("a", "reset");
    test.ledgers.set("a", Some("y"));
    assert!(test.check.pool().confirm("a").await.is_err());
    test.wait_until(|check| !check.pool().is_confirmed("a")).await;
}

#[tokio::test(start_paused = true)]
async fn node_is_asked_again_if_a_connection_fails_meanwhile() {
    let test = TestCheck::start(None, None).await;
    test.ledgers.set("a", Some("x"));
    *test.ledgers.delay.lock().unwrap() = Duration::from_millis(300);
    let fails = async {
        sleep(Duration::from_millis(200)).await;
        assert!(!test.check.pool().is_confirmed("a"), "it has not answered yet");
        test.check.pool().failed("a", "reset");
    };
    let (confirmed, ()) = join(test.check.pool().confirm("a"), fails).await;
    assert_eq!(confirmed, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn node_that_is_down_is_not_asked_in_a_loop() {
    let test = TestCheck::start(None, None).await;
    let asked = test.ledgers.asked.load(Relaxed);
    for _ in 0..100 {
        test.check.pool().failed("a", "refused");
        sleep(Duration::from_millis(10)).await;
    }
    assert!(test.ledgers.asked.load(Relaxed) - asked <= 4, "two nodes, each once a second");
}

#[tokio::test(start_paused = true)]
async fn jump_of_the_time_of_day_trusts_no_node_longer() {
    let test = TestCheck::start(Some("x"), Some("x")).await;
    test.clock.set(Timestamp::from_micros(-3_600_000_000));
    let before = test.clock.now();
    test.clock.advance(Duration::from_secs(6));
    assert!(test.clock.now() > before);
    let asked = test.ledgers.asked.load(Relaxed);
    assert_eq!(test.check.pool().confirm("a").await, Ok(()));
    assert!(test.ledgers.asked.load(Relaxed) > asked);
}

#[tokio::test(start_paused = true)]
async fn database_that_was_bound_to_another_ledger_is_noticed() {
    let test = TestCheck::start(Some("x"), Some("x")).await;
    test.ledgers.record("y");
    test.pass(31).await;
    test.wait_until(|check| check.mismatch().is_some()).await;
    assert!(!test.check.may_claim());
}

#[tokio::test(start_paused = true)]
async fn node_must_confirm_its_ledger_after_a_failed_submission() {
    for outcome in [Outcome::NotSent, Outcome::Ambiguous] {
        let test = TestCheck::start(Some("x"), None).await;
        let resolver = test.check.pool().resolver::<ServiceId>();
        for other in ["b", "elsewhere"] {
            assert!(resolver.confirm(other).await.is_err());
        }
        assert_eq!(resolver.confirm("a").await, Ok(()));
        test.ledgers.set("a", Some("y"));
        assert_eq!(resolver.confirm("a").await, Ok(()), "it was asked a moment ago");
        resolver.report("1", "a", outcome);
        assert!(resolver.confirm("a").await.is_err(), "{outcome}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_nodes_must_confirm_their_ledger_again() {
    let test = TestCheck::start(Some("x"), None).await;
    let both = ["a", "b"].map(str::to_owned);
    assert!(!test.check.pool().confirm_again(&both).await);
    test.ledgers.set("b", Some("x"));
    test.wait_until(|check| check.pool().is_confirmed("b")).await;
    assert!(test.check.pool().confirm_again(&both).await);
    test.ledgers.set("a", Some("y"));
    assert!(!test.check.pool().confirm_again(&both).await);
    assert!(!test.check.pool().is_confirmed("a"));
}

#[tokio::test(start_paused = true)]
async fn return_of_a_node_is_announced() {
    let test = TestCheck::start(None, None).await;
    let mut returns = test.check.pool().returns();
    test.pass(5).await;
    assert!(!returns.has_changed().unwrap(), "no node is back");
    test.ledgers.set("a", Some("x"));
    test.wait_until(LedgerCheck::may_claim).await;
    returns.changed().await.unwrap();
    test.pass(5).await;
    assert!(!returns.has_changed().unwrap());
}

/// Records whether the node `a` was confirmed when the mismatch was logged.
struct MismatchLog {
    pool: OnceLock<NodePool>,
    was_confirmed: OnceLock<bool>,
}

impl Log for MismatchLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let is_mismatch = record.args().to_string().starts_with("nothing is claimed or sent");
        if let Some(pool) = self.pool.get().filter(|_| is_mismatch) {
            self.was_confirmed.get_or_init(|| pool.is_confirmed("a"));
        }
    }

    fn flush(&self) {}
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_a_mismatch_is_logged() {
    static LOG: MismatchLog = MismatchLog { pool: OnceLock::new(), was_confirmed: OnceLock::new() };
    let test = TestCheck::start(Some("x"), None).await;
    LOG.pool.get_or_init(|| test.check.pool().clone());
    assert!(test.check.pool().is_confirmed("a"));
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Error);
    test.ledgers.set("b", Some("y"));
    test.wait_until(|check| check.mismatch().is_some()).await;
    assert_eq!(LOG.was_confirmed.get(), Some(&false));
}
