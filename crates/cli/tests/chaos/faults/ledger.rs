//! A ledger with all the faults that ledgers have.

use std::time::Duration;

use grid_batch_ledger_sim::{Fault, When};

use crate::{
    harness::ChaosHarness,
    seeded_random::{SeededRandom, ShuffledItems},
    settings::{LATE, LATE_ARRIVAL},
};

#[derive(Debug, Clone, Copy)]
enum LedgerFault {
    Restart,
    Freeze,
    /// Only of Sawtooth's validator.
    Crash,
    Busy,
    ForgetBatches,
    NoFaults,
}

/// Faults that are active all the time, and their probabilities.
const CONSTANT_FAULTS: &[(Fault, f64)] = &[
    (Fault::Busy, 0.05),
    (Fault::TimedOut, 0.01),
    (Fault::ResetBefore, 0.01),
    (Fault::ResetAfter, 0.01),
    (Fault::LateAnswer(LATE), 0.01),
    (Fault::DroppedValid, 0.005),
    (Fault::Unauthorized, 0.005),
    (Fault::StatusesFail, 0.03),
    (Fault::LateStatuses(LATE), 0.01),
    (Fault::StatusesReset, 0.02),
    (Fault::StatusesBroken, 0.01),
    (Fault::StatusesTruncated, 0.01),
    (Fault::StatusesNotJson, 0.01),
    (Fault::StatusesWrongTyped, 0.01),
    (Fault::StatusesOfOthers, 0.01),
    (Fault::EventsBroken, 0.01),
    (Fault::LateEvents(Duration::from_millis(50)), 0.03),
    (Fault::EventsEndWithClient, 0.2),
    (Fault::LateReplay(Duration::from_millis(50)), 0.1),
];

pub fn run(harness: &ChaosHarness, mut random: SeededRandom) {
    let all = [
        LedgerFault::ForgetBatches,
        LedgerFault::Busy,
        LedgerFault::Freeze,
        LedgerFault::Restart,
        LedgerFault::Crash,
        LedgerFault::ForgetBatches,
        LedgerFault::NoFaults,
    ];
    let mut faults = ShuffledItems::new(&all);
    inject_constant_faults(harness);
    while harness.stop_faults.sleep(random.millis(500..3_000)) {
        let duration = random.millis(200..1_500);
        match faults.next(&mut random) {
            LedgerFault::Restart => {
                harness.events.count("ledger restarted");
                harness.events.outage(|| harness.ledger.restart());
            }
            LedgerFault::Freeze => freeze(harness, duration),
            LedgerFault::Crash if harness.is_sawtooth() => crash(harness, duration),
            LedgerFault::Crash => {}
            LedgerFault::Busy => {
                harness.events.count("ledger busy for a while");
                harness.events.outage(|| inject_always(harness, Fault::Busy, duration));
            }
            LedgerFault::ForgetBatches => {
                harness.events.count("ledger resets connections, then forgets batches");
                harness.events.outage(|| {
                    inject_always(harness, Fault::ResetAfter, duration);
                    harness.ledger.restart();
                });
            }
            LedgerFault::NoFaults => {
                harness.events.count("ledger without faults for a while");
                harness.ledger.heal();
                harness.stop_faults.sleep(duration);
                inject_constant_faults(harness);
            }
        }
    }
    harness.ledger.heal();
}

/// Sawtooth applies a batch once, however late it receives it again.
const SAWTOOTH_FAULTS: &[(Fault, f64)] = &[(Fault::LateArrival(LATE_ARRIVAL), 0.01)];

fn inject_constant_faults(harness: &ChaosHarness) {
    let of_kind = if harness.is_sawtooth() { SAWTOOTH_FAULTS } else { &[] };
    CONSTANT_FAULTS
        .iter()
        .chain(of_kind)
        .for_each(|(fault, p)| harness.ledger.inject(*fault, When::Sometimes(*p)));
}

fn inject_always(harness: &ChaosHarness, fault: Fault, duration: Duration) {
    harness.ledger.inject(fault, When::Always);
    harness.stop_faults.sleep(duration);
    inject_constant_faults(harness);
}

/// The ledger handles the requests of this time afterwards.
fn freeze(harness: &ChaosHarness, duration: Duration) {
    harness.events.count("ledger frozen for a while");
    harness.events.pause(|| {
        harness.events.outage(|| {
            harness.ledger.freeze();
            harness.stop_faults.sleep(duration);
            harness.ledger.thaw();
        });
    });
}

/// The REST API keeps the requests of this time, and the validator handles them afterwards.
fn crash(harness: &ChaosHarness, duration: Duration) {
    harness.events.count("validator crashed for a while");
    harness.events.pause(|| {
        harness.events.outage(|| {
            harness.ledger.crash_validator(2 * duration);
            harness.stop_faults.sleep(duration);
            harness.ledger.start_validator();
        });
    });
}
