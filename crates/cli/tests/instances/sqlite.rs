use crate::{bench::Bench, program::Ended};

#[test]
fn a_second_process_on_the_same_file_is_refused() {
    let bench = Bench::scabbard(1);
    let first = bench.serve();
    let ended = Ended::of(bench.command(&[("--log", "error")]));
    let failure = ended.failure();
    assert!(failure.contains("another process works on "), "{failure}");
    assert!(failure.contains(&bench.database_file().display().to_string()), "{failure}");
    first.stop();
}
