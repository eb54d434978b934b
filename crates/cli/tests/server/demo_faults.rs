//! The demonstration with each fault of a simulated ledger, and with all faults at once.

use std::time::Duration;

use grid_batch_core::queue::StrategyKind;
use grid_batch_core::{Clock, SystemClock};
use grid_batch_demo::{DemoOptions, DemoReport, FaultLevel, SimulatedLedger, demonstrate};
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::TestDatabase;

/// Longer than the demonstration's server waits for an answer.
const LATE: Duration = Duration::from_millis(500);

/// Whether the report shows that the fault happened.
type Check = fn(&DemoReport) -> bool;

const SOME_INVALID: Check = |report| report.invalid > 0;
const SOME_RETRIED: Check = |report| report.retried > 0;
const SOME_IN_DOUBT: Check = |report| report.in_doubt > 0;
/// A repeated query or a reconnect hides the fault.
const NO_CHECK: Check = |_| true;

/// One test for each ledger of `name, fault, on ledgers: how often => check of the report;`.
macro_rules! single_faults {
    ($($name:ident, $fault:expr, on $($ledger:ident)+: $when:expr => $check:expr;)+) => {$(
        mod $name {
            use super::*;
            $(
                #[test]
                fn $ledger() {
                    assert_clean_run(super::$ledger($fault, $when), $check);
                }
            )+
        }
    )+};
}

single_faults! {
    busy, Fault::Busy, on sawtooth scabbard: When::Next(4) => SOME_RETRIED;
    timed_out, Fault::TimedOut, on sawtooth: When::Next(4) => SOME_IN_DOUBT;
    late_answer, Fault::LateAnswer(LATE), on sawtooth scabbard: When::Next(3) => SOME_IN_DOUBT;
    reset_before, Fault::ResetBefore, on sawtooth scabbard: When::Next(3) => SOME_IN_DOUBT;
    reset_after, Fault::ResetAfter, on sawtooth scabbard: When::Next(4) => SOME_IN_DOUBT;
    invalid, Fault::Invalid, on sawtooth scabbard: When::Next(4) => SOME_INVALID;
    dropped_valid, Fault::DroppedValid, on scabbard: When::Next(2) => SOME_RETRIED;
    unauthorized, Fault::Unauthorized, on scabbard: When::Sometimes(0.3) => SOME_RETRIED;
    statuses_fail, Fault::StatusesFail, on sawtooth scabbard: When::Sometimes(0.5) => NO_CHECK;
    late_statuses, Fault::LateStatuses(LATE), on sawtooth scabbard: When::Next(3) => NO_CHECK;
    statuses_reset, Fault::StatusesReset, on sawtooth scabbard: When::Sometimes(0.5) => NO_CHECK;
    statuses_broken, Fault::StatusesBroken, on sawtooth scabbard: When::Sometimes(0.5) => NO_CHECK;
    statuses_truncated, Fault::StatusesTruncated, on sawtooth scabbard:
        When::Sometimes(0.5) => NO_CHECK;
    statuses_not_json, Fault::StatusesNotJson, on sawtooth scabbard:
        When::Sometimes(0.5) => NO_CHECK;
    statuses_wrong_typed, Fault::StatusesWrongTyped, on sawtooth scabbard:
        When::Sometimes(0.5) => NO_CHECK;
    statuses_huge, Fault::StatusesHuge, on sawtooth scabbard: When::Next(3) => NO_CHECK;
    statuses_of_others, Fault::StatusesOfOthers, on sawtooth scabbard:
        When::Sometimes(0.5) => NO_CHECK;
    events_broken, Fault::EventsBroken, on sawtooth scabbard: When::Sometimes(0.5) => NO_CHECK;
    late_events, Fault::LateEvents(LATE / 5), on sawtooth scabbard: When::Sometimes(0.5) => NO_CHECK;
    events_end_with_client, Fault::EventsEndWithClient, on sawtooth: When::Always => NO_CHECK;
}

fn sawtooth(fault: Fault, when: When) -> DemoOptions {
    let faults = FaultLevel::These(vec![(fault, when)]);
    DemoOptions { batches: 15, faults, ..DemoOptions::new(SimulatedLedger::Sawtooth) }
}

fn scabbard(fault: Fault, when: When) -> DemoOptions {
    let faults = FaultLevel::These(vec![(fault, when)]);
    DemoOptions { services: 4, batches: 30, faults, ..DemoOptions::new(SimulatedLedger::Scabbard) }
}

fn harsh(ledger: SimulatedLedger) -> DemoOptions {
    let (services, batches) = match ledger {
        SimulatedLedger::Sawtooth => (1, 40),
        SimulatedLedger::Scabbard => (10, 100),
    };
    DemoOptions { services, batches, faults: FaultLevel::Harsh, ..DemoOptions::new(ledger) }
}

fn harsh_on_postgres(ledger: SimulatedLedger) {
    let database = TestDatabase::create();
    let database = Some(database.url().parse().unwrap());
    assert_clean_run(DemoOptions { database, ..harsh(ledger) }, NO_CHECK);
}

#[test]
fn all_faults_at_once_on_sawtooth_and_sqlite() {
    assert_clean_run(harsh(SimulatedLedger::Sawtooth), NO_CHECK);
}

#[test]
fn all_faults_at_once_on_serial_sawtooth() {
    let options = harsh(SimulatedLedger::Sawtooth);
    assert_clean_run(DemoOptions { strategy: StrategyKind::Serial, ..options }, |report| {
        report.most_at_ledger == Some(1)
    });
}

#[test]
fn parallel_demo_has_several_batches_at_the_ledger() {
    let options = DemoOptions { batches: 100, ..DemoOptions::new(SimulatedLedger::Sawtooth) };
    assert_eq!(options.strategy, StrategyKind::Parallel);
    assert_clean_run(options, |report| report.most_at_ledger > Some(1));
}

/// The first batch of each service waits until the events of its node were replayed.
#[test]
fn demo_without_faults_sends_nothing_again() {
    let faults = FaultLevel::None;
    let options =
        DemoOptions { services: 10, batches: 30, faults, ..harsh(SimulatedLedger::Scabbard) };
    assert_clean_run(options, |report| report.retried == 0);
}

#[test]
fn all_faults_at_once_on_scabbard_and_sqlite() {
    assert_clean_run(harsh(SimulatedLedger::Scabbard), NO_CHECK);
}

#[test]
fn all_faults_at_once_on_sawtooth_and_postgres() {
    harsh_on_postgres(SimulatedLedger::Sawtooth);
}

#[test]
fn all_faults_at_once_on_scabbard_and_postgres() {
    harsh_on_postgres(SimulatedLedger::Scabbard);
}

#[track_caller]
fn assert_clean_run(options: DemoOptions, check: Check) {
    let seed = SystemClock.now().as_micros().unsigned_abs();
    println!("seed {seed}");
    let options = DemoOptions { seed: Some(seed), ..options };
    let mut last = None;
    let report = demonstrate(&options, |progress| last = Some(*progress)).unwrap();
    println!("{report:?}, {last:?}");
    let DemoReport { lost, duplicated, out_of_order, wrong_state, misreported, .. } = report;
    let wrong_state = wrong_state.unwrap_or_default();
    assert_eq!([lost, duplicated, out_of_order, wrong_state, misreported], [0; 5]);
    assert_eq!(report.accepted, options.batches);
    assert_eq!(report.committed + report.invalid, options.batches);
    assert!(check(&report), "the report does not show the fault");
    assert_eq!(last.unwrap().ended, options.batches as u64);
}
