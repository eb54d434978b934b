//! Instances that are configured with another ledger. They must take nothing.

use std::time::Duration;

use crate::{harness::ChaosHarness, seeded_random::SeededRandom};

/// Starts stray instances one after another. Each may refuse to serve; one that serves is killed.
pub fn run(harness: &ChaosHarness, mut random: SeededRandom) {
    // The first instance on a database binds it to its ledger.
    while harness.ledger.record().is_empty() {
        if !harness.stop_faults.sleep(Duration::from_millis(50)) {
            return;
        }
    }
    while harness.stop_faults.sleep(random.millis(500..3_000)) {
        match harness.stray_slot.start(harness.stray_command()) {
            None => harness.events.count("stray instances that ended at once"),
            Some(mut instance) => {
                harness.stop_faults.sleep(Duration::from_secs(4));
                match instance.exit_status() {
                    None => harness.events.count("stray instances that served until killed"),
                    Some(_) => harness.events.count("stray instances that ended later"),
                }
            }
        }
    }
}
