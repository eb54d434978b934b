use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use grid_batch_ledger_sim::{Fault, LedgerSim, When};

use crate::{FaultLevel, SimulatedLedger, settings};

/// The faults of a level, each with its probability.
pub(crate) fn fault_probabilities(
    level: &FaultLevel,
    ledger: SimulatedLedger,
) -> Vec<(Fault, When)> {
    if let FaultLevel::These(faults) = level {
        return faults.clone();
    }
    let late = settings::REQUEST_TIMEOUT + settings::REQUEST_TIMEOUT / 4;
    // Each fault with its probabilities at the levels `Some` and `Harsh`.
    let common = [
        (Fault::Busy, 0.03, 0.15),
        (Fault::ResetBefore, 0.005, 0.02),
        (Fault::ResetAfter, 0.005, 0.02),
        (Fault::LateAnswer(late), 0.002, 0.01),
        (Fault::Invalid, 0.01, 0.02),
        (Fault::StatusesFail, 0.01, 0.05),
        (Fault::LateStatuses(late), 0.0, 0.01),
        (Fault::StatusesReset, 0.005, 0.03),
        (Fault::StatusesBroken, 0.0, 0.02),
        (Fault::StatusesTruncated, 0.0, 0.02),
        (Fault::StatusesNotJson, 0.005, 0.02),
        (Fault::StatusesWrongTyped, 0.0, 0.02),
        (Fault::StatusesHuge, 0.0, 0.002),
        (Fault::StatusesOfOthers, 0.0, 0.02),
        (Fault::EventsBroken, 0.0, 0.02),
        (Fault::LateEvents(Duration::from_millis(50)), 0.0, 0.05),
    ];
    let specific: &[_] = match ledger {
        SimulatedLedger::Sawtooth => &[(Fault::TimedOut, 0.005, 0.02)],
        SimulatedLedger::Scabbard => {
            &[(Fault::DroppedValid, 0.0, 0.01), (Fault::Unauthorized, 0.0, 0.01)]
        }
    };
    let all = common.iter().chain(specific);
    let probabilities = all.map(|(fault, some, harsh)| match level {
        FaultLevel::None | FaultLevel::These(_) => (*fault, 0.0),
        FaultLevel::Some => (*fault, *some),
        FaultLevel::Harsh => (*fault, *harsh),
    });
    probabilities.filter(|(_, p)| *p > 0.0).map(|(fault, p)| (fault, When::Sometimes(p))).collect()
}

/// Restarts the ledger periodically until the sender of `end` is dropped, and returns how often. A
/// restarted ledger forgets what it has not committed.
pub(crate) fn restart_until(ledger: &LedgerSim, end: &Receiver<()>) -> u64 {
    let mut restarts = 0;
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(settings::RESTART_INTERVAL) {
        ledger.restart();
        restarts += 1;
    }
    restarts
}
