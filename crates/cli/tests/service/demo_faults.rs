//! Every fault that a ledger can have, alone and all together: what was promised is kept.

use std::time::Duration;

use grid_batch_core::{Clock, SystemClock};
use grid_batch_demo::{DemoOptions, DemoReport, FaultLevel, SimulatedLedger, demonstrate};
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::TestDatabase;

/// Longer than the demonstration's service waits for an answer.
const LATE: Duration = Duration::from_millis(500);

/// Whether the report shows that a fault struck.
type Shows = fn(&DemoReport) -> bool;

const IS_INVALID: Shows = |report| report.invalid > 0;
const WAS_SENT_AGAIN: Shows = |report| report.retried > 0;
const WAS_IN_DOUBT: Shows = |report| report.in_doubt > 0;
/// Whoever asks or listens again hides it.
const NOTHING: Shows = |_| true;

/// `fault on ledgers: how often => what the report shows;` each a test by itself.
macro_rules! faults_alone {
    ($($name:ident, $fault:expr, on $($ledger:ident)+: $when:expr => $shows:expr;)+) => {$(
        mod $name {
            use super::*;
            $(
                #[test]
                fn $ledger() {
                    ends_clean(super::$ledger($fault, $when), $shows);
                }
            )+
        }
    )+};
}

faults_alone! {
    busy, Fault::Busy, on sawtooth scabbard: When::Next(4) => WAS_SENT_AGAIN;
    timed_out, Fault::TimedOut, on sawtooth: When::Next(4) => WAS_IN_DOUBT;
    late_answer, Fault::LateAnswer(LATE), on sawtooth scabbard: When::Next(3) => WAS_IN_DOUBT;
    reset_before, Fault::ResetBefore, on sawtooth scabbard: When::Next(3) => WAS_IN_DOUBT;
    reset_after, Fault::ResetAfter, on sawtooth scabbard: When::Next(4) => WAS_IN_DOUBT;
    invalid, Fault::Invalid, on sawtooth scabbard: When::Next(4) => IS_INVALID;
    dropped_valid, Fault::DroppedValid, on scabbard: When::Next(2) => WAS_SENT_AGAIN;
    unauthorized, Fault::Unauthorized, on scabbard: When::Sometimes(0.3) => WAS_SENT_AGAIN;
    statuses_fail, Fault::StatusesFail, on sawtooth scabbard: When::Sometimes(0.5) => NOTHING;
    late_statuses, Fault::LateStatuses(LATE), on sawtooth scabbard: When::Next(3) => NOTHING;
    statuses_reset, Fault::StatusesReset, on sawtooth scabbard: When::Sometimes(0.5) => NOTHING;
    statuses_broken, Fault::StatusesBroken, on sawtooth scabbard: When::Sometimes(0.5) => NOTHING;
    statuses_truncated, Fault::StatusesTruncated, on sawtooth scabbard:
        When::Sometimes(0.5) => NOTHING;
    statuses_not_json, Fault::StatusesNotJson, on sawtooth scabbard:
        When::Sometimes(0.5) => NOTHING;
    statuses_wrong_typed, Fault::StatusesWrongTyped, on sawtooth scabbard:
        When::Sometimes(0.5) => NOTHING;
    statuses_huge, Fault::StatusesHuge, on sawtooth scabbard: When::Next(3) => NOTHING;
    statuses_of_others, Fault::StatusesOfOthers, on sawtooth scabbard:
        When::Sometimes(0.5) => NOTHING;
    events_broken, Fault::EventsBroken, on sawtooth scabbard: When::Sometimes(0.5) => NOTHING;
    late_events, Fault::LateEvents(LATE / 5), on sawtooth scabbard: When::Sometimes(0.5) => NOTHING;
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
    ends_clean(DemoOptions { database, ..harsh(ledger) }, NOTHING);
}

#[test]
fn everything_at_once_on_sawtooth_and_sqlite() {
    ends_clean(harsh(SimulatedLedger::Sawtooth), NOTHING);
}

#[test]
fn everything_at_once_on_scabbard_and_sqlite() {
    ends_clean(harsh(SimulatedLedger::Scabbard), NOTHING);
}

#[test]
fn everything_at_once_on_sawtooth_and_postgres() {
    harsh_on_postgres(SimulatedLedger::Sawtooth);
}

#[test]
fn everything_at_once_on_scabbard_and_postgres() {
    harsh_on_postgres(SimulatedLedger::Scabbard);
}

#[track_caller]
fn ends_clean(options: DemoOptions, shows: Shows) {
    let seed = SystemClock.now().as_micros().unsigned_abs();
    println!("seed {seed}");
    let options = DemoOptions { seed: Some(seed), ..options };
    let mut last = None;
    let report = demonstrate(&options, |progress| last = Some(*progress)).unwrap();
    println!("{report:?}, {last:?}");
    let DemoReport { lost, duplicated, out_of_order, misreported, .. } = report;
    assert_eq!([lost, duplicated, out_of_order, misreported], [0; 4]);
    assert_eq!(report.accepted, options.batches);
    assert_eq!(report.committed + report.invalid, options.batches);
    assert!(shows(&report), "the fault did not strike");
    assert_eq!(last.unwrap().ended, options.batches as u64);
}
