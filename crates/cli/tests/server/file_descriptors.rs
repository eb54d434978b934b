//! Many batches under a low limit of file descriptors.

use std::time::Duration;

use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_support::{batches::signed_batches, process::with_shell_setup};

use crate::harness::{BatchHarness, BatchServer, LONG_LEDGER_TIMEOUTS};

#[test]
fn two_thousand_batches_pass_with_1024_file_descriptors() {
    let harness = BatchHarness::scabbard_with(1_000, |ledger| {
        ledger.fault(Fault::LateAnswer(Duration::from_millis(200)), When::Always)
    });
    let command = harness.command(LONG_LEDGER_TIMEOUTS);
    let server = BatchServer::start(with_shell_setup("ulimit -n 1024", command));
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    assert!(batches.iter().all(|batch| harness.ledger.times_received(&batch.batch_id) == 1));
    server.stop();
}
