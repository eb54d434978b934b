use grid_batch_test_support::process::run;

use crate::harness::BatchHarness;

#[test]
fn second_process_on_the_same_file_is_rejected() {
    let harness = BatchHarness::scabbard(1);
    let first = harness.serve();
    let output = run(harness.command(&[("--log", "error")]));
    let message = output.error_message();
    assert!(message.contains("another process uses "), "{message}");
    assert!(message.contains(&harness.database_file().display().to_string()), "{message}");
    first.stop();
}
