//! Many at once, where the system gives few file descriptors.

use std::time::Duration;

use grid_batch_ledger_sim::{Fault, When};

use crate::{
    batches::batches,
    bench::{Bench, PATIENT, Serving},
    program::after,
};

#[test]
fn three_thousand_batches_pass_a_slow_ledger_with_a_thousand_file_descriptors() {
    let bench = Bench::scabbard_with(1_000, |ledger| {
        ledger.fault(Fault::LateAnswer(Duration::from_millis(200)), When::Always)
    });
    let serving = Serving::start(after("ulimit -n 1024", bench.command(PATIENT)));
    let all = batches(&bench.services, 3);
    serving.hand_in(&all);
    bench.until_all_committed(&all);
    assert!(all.iter().all(|made| bench.ledger.times_received(&made.batch_id) == 1));
    serving.stop();
}
