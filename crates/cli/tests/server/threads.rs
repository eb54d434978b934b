//! A server has few threads.

use std::{fs, thread, time::Duration};

use grid_batch_test_support::wait::wait_until;

use crate::harness::{BatchHarness, BatchServer};

/// The most threads of a server without work: these, and one for I/O for each core, at least four.
fn most_threads() -> usize {
    11 + thread::available_parallelism().unwrap().get().max(4)
}

/// How many more there may be for a moment, while jobs run that may block.
const IN_POOL: usize = 4;

/// The names of the server's threads.
fn threads(server: &BatchServer) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.process.id())).unwrap();
    // A thread may end meanwhile.
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    let mut names: Vec<String> = tasks.filter_map(|task| name(task.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn idle_server_has_at_most_15_threads_on_four_cores() {
    let limit = most_threads();
    for harness in [BatchHarness::scabbard(3), BatchHarness::sawtooth()] {
        let server = harness.serve();
        wait_until("all parts work", || server.get("/health")["status"] == "ok");
        wait_until("the threads that the start has needed have ended", || {
            threads(&server).len() <= limit
        });
        // The measured interval, not a wait for a condition: while jobs run, they use threads of the pool.
        let mut samples: Vec<Vec<String>> = (0..200)
            .map(|_| {
                thread::sleep(Duration::from_millis(20));
                threads(&server)
            })
            .collect();
        samples.sort_by_key(Vec::len);
        let usual = &samples[samples.len() / 2];
        assert!(usual.len() <= limit, "{} threads: {usual:?}", usual.len());
        let most = &samples[samples.len() - 1];
        assert!(most.len() <= limit + IN_POOL, "{} threads: {most:?}", most.len());
        server.stop();
    }
}
