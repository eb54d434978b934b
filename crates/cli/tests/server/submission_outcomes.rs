//! Ledgers that do not take a batch: busy, frozen, away, or with a refusal. What waits is tried again
//! without harm to others, its reason is seen, and an operator can end it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use grid_batch_core::batches::{BatchState, Hold, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{ServiceScopeId, Timestamp};
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch, signed_batches},
    process::ProcessOutput,
    wait::{wait_for, wait_until},
};

use crate::harness::{BatchHarness, BatchServer, LONG_LEDGER_TIMEOUTS, count_in_state};

/// The service at a node of its own.
const HEALTHY: &str = "test-00000::h000";

/// The places of the submitter, and several times as many services of one node.
const PLACES: usize = 8;
const SERVICES: usize = 5 * PLACES;

/// A node with many services, and another one with a single service.
struct TwoNodes {
    harness: BatchHarness,
    healthy: LedgerSim,
    server: BatchServer,
    store: Store,
    sent: usize,
}

impl TwoNodes {
    fn serve(flags: &[(&str, &str)]) -> Self {
        let harness = BatchHarness::scabbard(SERVICES);
        let step = Duration::from_millis(5);
        let healthy = LedgerSim::scabbard([HEALTHY.parse::<ServiceScopeId>().unwrap()]);
        let healthy = healthy.pending_for(step).valid_for(step).start().unwrap();
        let services = format!("{HEALTHY}={}", healthy.url());
        let places = PLACES.to_string();
        let own = [("--services-node", services.as_str()), ("--submit-concurrency", &places)];
        let flags = [flags, &own].concat();
        let server = harness.serve_with(&flags);
        let store = harness.store();
        Self { harness, healthy, server, store, sent: 0 }
    }

    /// How long batches of the healthy service take, one after the other.
    fn measure(&mut self) -> Duration {
        let started = Instant::now();
        for _ in 0..5 {
            let batch = signed_batch(HEALTHY, 10_000 + self.sent);
            self.sent += 1;
            self.server.submit(std::slice::from_ref(&batch));
            wait_until("the batch of the healthy service is committed", || {
                self.state(&batch) == BatchState::Committed
            });
        }
        assert_eq!(self.healthy.record().len(), self.sent);
        started.elapsed()
    }

    fn state(&self, batch: &SignedBatch) -> BatchState {
        self.store.find(&batch.batch_id).unwrap().remove(0).progress.state
    }

    /// The healthy service takes about as long as without the other node's trouble.
    fn assert_not_slowed(&mut self, alone: Duration) {
        let beside = self.measure();
        eprintln!("five batches: {alone:?} alone, {beside:?} beside the node in trouble");
        assert!(beside < alone * 10, "{beside:?}, but {alone:?} alone");
    }
}

#[test]
fn busy_node_does_not_slow_other_nodes() {
    let mut nodes = TwoNodes::serve(&[]);
    let alone = nodes.measure();
    nodes.harness.ledger.inject(Fault::Busy, When::Always);
    let batches = signed_batches(&nodes.harness.services, 1);
    nodes.server.submit(&batches);
    wait_until("all batches were tried at the busy node", || {
        batches.iter().all(|batch| nodes.harness.ledger.times_received(&batch.batch_id) > 0)
    });
    nodes.assert_not_slowed(alone);
    nodes.harness.ledger.heal();
    nodes.server.stop();
}

#[test]
fn frozen_node_does_not_slow_other_nodes() {
    let mut nodes = TwoNodes::serve(LONG_LEDGER_TIMEOUTS);
    let alone = nodes.measure();
    nodes.harness.ledger.freeze();
    nodes.server.submit(&signed_batches(&nodes.harness.services, 1));
    wait_until("the frozen node has its share of the places", || {
        count_in_state(&nodes.store, BatchState::Submitting) >= PLACES / 2
    });
    nodes.assert_not_slowed(alone);
    nodes.harness.ledger.thaw();
    nodes.server.process.kill();
}

/// A server with one service, whose ledger does not take its batch.
struct Waiting {
    harness: BatchHarness,
    server: BatchServer,
    store: Store,
    batch: SignedBatch,
}

impl Waiting {
    fn submit(harness: BatchHarness, fault: Fault, flags: &[(&str, &str)]) -> Self {
        harness.ledger.inject(fault, When::Always);
        let batch = signed_batch(&harness.services[0], 1);
        Self::submit_batch(harness, batch, flags)
    }

    fn submit_batch(harness: BatchHarness, batch: SignedBatch, flags: &[(&str, &str)]) -> Self {
        let server = harness.serve_with(flags);
        let store = harness.store();
        server.submit(std::slice::from_ref(&batch));
        Self { harness, server, store, batch }
    }

    fn stored(&self) -> StoredBatch {
        self.store.find(&self.batch.batch_id).unwrap().remove(0)
    }

    fn times_received(&self) -> usize {
        self.harness.ledger.times_received(&self.batch.batch_id)
    }

    /// Runs a command about the batch.
    fn run(&self, command: &str, arguments: &[&str]) -> ProcessOutput {
        let SignedBatch { service_id, batch_id, .. } = &self.batch;
        let (service, id) = (service_id.to_string(), batch_id.to_string());
        let arguments = [&[command, service.as_str(), id.as_str()][..], arguments].concat();
        let output = self.harness.run_command(&arguments);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        output
    }

    fn wait_until_committed(&self) {
        self.harness.wait_until_all_committed(std::slice::from_ref(&self.batch));
    }

    fn wait_until_held(&self) -> Hold {
        wait_for("the batch is held", || self.stored().held)
    }
}

const YEAR: Duration = Duration::from_secs(31_536_000);

#[test]
fn retry_ends_a_delay_of_a_year() {
    for harness in [BatchHarness::sawtooth(), BatchHarness::scabbard(1)] {
        let waiting = Waiting::submit(harness, Fault::BusyFor(YEAR), &[]);
        let until = wait_for("the ledger asks for a delay", || {
            let stored = waiting.stored();
            let error = stored.last_error.unwrap_or_default();
            stored.next_try_at.filter(|_| error.contains("the ledger asked to wait 31536000 s"))
        });
        let delay = until.since(waiting.stored().since.unwrap());
        let (limit, slack) = (Duration::from_mins(5), Duration::from_mins(1));
        assert!(limit - slack < delay && delay < limit + slack, "{delay:?}");
        let shown = waiting.run("show", &[]).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = "the ledger asked to wait 31536000 s, which is cut to 300 s";
        assert!(shown.contains("next try") && shown.contains(text), "{shown}");
        waiting.server.process.wait_for_log("the ledger asks to wait longer");

        waiting.harness.ledger.heal();
        let Waiting { harness, server, store, batch } = waiting;
        // The delay outlives the server that began it.
        server.stop();
        let server = harness.serve();
        assert_eq!(store.find(&batch.batch_id).unwrap()[0].next_try_at, Some(until));
        let service = batch.service_id.to_string();
        let ended = harness.run_command(&["retry", &service, "--reason", "a test"]);
        assert!(ended.stdout.contains("the delays of 1 batches are ended"), "{ended:?}");
        harness.wait_until_all_committed(&[batch]);
        let ended = harness.run_command(&["retry", "--all", "--reason", "a test"]);
        assert_eq!(ended.stdout, "nothing is delayed\n");
        server.stop();
    }
}

#[test]
fn short_limit_ends_a_delay_of_a_year_by_itself() {
    let flags = [("--testing-retry-after-limit", "1s")];
    let waiting = Waiting::submit(BatchHarness::scabbard(1), Fault::BusyFor(YEAR), &flags);
    wait_until("the batch was tried again", || waiting.times_received() > 1);
    waiting.harness.ledger.heal();
    waiting.wait_until_committed();
    waiting.server.stop();
}

/// A ledger that is busy for a while, and how long its services need after it.
#[test]
fn services_wait_longer_and_longer_and_then_continue() {
    let harness = BatchHarness::scabbard(SERVICES);
    harness.ledger.inject(Fault::Busy, When::Always);
    let flags = [("--testing-first-delay", "250ms"), ("--testing-longest-delay", "4s")];
    let server = harness.serve_with(&flags);
    let store = harness.store();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let received =
        || batches.iter().map(|b| harness.ledger.times_received(&b.batch_id)).sum::<usize>();
    wait_until("each batch was tried six times", || received() >= 6 * SERVICES);
    wait_until("the first one is delayed", || {
        store.find(&batches[0].batch_id).unwrap()[0].progress.state == BatchState::Delayed
    });

    // The next tries are apart, and none is later than the longest delay.
    let next: BTreeSet<Timestamp> = batches
        .iter()
        .filter_map(|batch| store.find(&batch.batch_id).unwrap().remove(0).next_try_at)
        .collect();
    let (first, last) = (next.first().unwrap(), next.last().unwrap());
    let spread = last.since(*first);
    assert!(spread > Duration::from_millis(400) && spread < Duration::from_secs(5), "{spread:?}");

    harness.ledger.heal();
    let healed = Instant::now();
    harness.wait_until_all_committed(&batches);
    eprintln!("{} attempts, {:?} until all were committed", received(), healed.elapsed());
    server.stop();
}

const FEW_REFUSALS: &[(&str, &str)] = &[("--testing-refusals-before-hold", "4")];

#[test]
fn refused_batch_is_held_and_sent_after_its_release() {
    let waiting = Waiting::submit(BatchHarness::scabbard(1), Fault::Unauthorized, FEW_REFUSALS);
    let hold = waiting.wait_until_held();
    assert!(hold.until_decision);
    assert!(hold.reason.starts_with("refused by the ledger 4 times: "), "{}", hold.reason);
    assert!(hold.reason.contains("401"), "{}", hold.reason);
    let log = waiting.server.process.stderr();
    assert_eq!(log.matches("batch held").count(), 1, "{log}");
    assert_eq!(log.matches("submission ended").count(), 1, "{log}");
    let listed = waiting.harness.run_command(&["held"]).stdout;
    assert!(listed.contains("refused by the ledger 4 times"), "{listed}");

    waiting.harness.ledger.heal();
    waiting.run("release", &["--reason", "a test"]);
    waiting.wait_until_committed();
    waiting.server.stop();
}

#[test]
fn refused_batch_can_be_ended_by_an_operator() {
    let batch = signed_batch("test-00000::zzzzz", 1);
    let harness = BatchHarness::scabbard(1);
    // Otherwise the batch is refused before it is stored.
    harness.ledger.freeze();
    let waiting = Waiting::submit_batch(harness, batch, FEW_REFUSALS);
    waiting.harness.ledger.thaw();
    let hold = waiting.wait_until_held();
    assert!(hold.reason.contains("does not have the service"), "{}", hold.reason);
    let attempt = waiting.stored().progress.attempts.to_string();
    waiting.run("decide", &["invalid", "--attempt", &attempt, "--reason", "no such service"]);
    assert_eq!(waiting.stored().progress.state, BatchState::Invalid);
    waiting.server.stop();
}

#[test]
fn retry_releases_what_the_ledger_refused() {
    let waiting = Waiting::submit(BatchHarness::scabbard(1), Fault::Unauthorized, FEW_REFUSALS);
    waiting.wait_until_held();
    waiting.harness.ledger.heal();
    let ended = waiting.harness.run_command(&["retry", "--all", "--reason", "a test"]);
    assert!(ended.stdout.contains("the delays of 1 batches are ended"), "{ended:?}");
    waiting.wait_until_committed();
    waiting.server.stop();
}

/// Attempts that did not reach the ledger do not count as attempts that it lost.
#[test]
fn outage_holds_nothing_and_is_warned_of_once() {
    let harness = BatchHarness::scabbard(1);
    let flags =
        [FEW_REFUSALS, &[("--testing-warn-after", "2s"), ("--testing-max-attempts", "2")]].concat();
    let server = harness.serve_with(&flags);
    harness.ledger.kill();
    let store = harness.store();
    let batch = signed_batch(&harness.services[0], 1);
    server.submit(std::slice::from_ref(&batch));
    let stored = || store.find(&batch.batch_id).unwrap().remove(0);
    let warning = "the ledger does not accept the batch of a service";
    server.process.wait_for_log(warning);
    wait_until("the batch was tried often", || stored().progress.attempts > 8);
    assert_eq!(server.process.stderr().matches(warning).count(), 1);
    assert!(stored().held.is_none());

    // The first attempt that reaches the ledger is lost.
    harness.ledger.inject(Fault::ResetBefore, When::Next(1));
    harness.ledger.start_again();
    server.process.wait_for_log("the service goes on");
    wait_until("the batch is committed", || stored().progress.state == BatchState::Committed);
    server.stop();
}
