//! What a client can make the server store: allow-lists and limits.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use grid_batch_test_support::{
    batches::{encode_batch_list, signed_batch},
    http::{Response, request, send},
};

use crate::harness::{BatchHarness, BatchServer};

const OCTETS: &str = "content-type: application/octet-stream";

/// Posts the same list for a service, whatever the list was made for.
fn post_for(server: &BatchServer, service: &str, list: &[u8]) -> Response {
    let path = format!("/batches?service_id={service}");
    send(server.address, &request("POST", &path, &[OCTETS], list)).unwrap()
}

#[test]
#[ignore]
fn measure_flood() {
    let harness = BatchHarness::scabbard(1);
    let flags = [("--queue-delay", "15s"), ("--poll-hold-after", "2m")];
    let server = harness.serve_with(&flags);
    let list = encode_batch_list(&[signed_batch(&harness.services[0], 1)]);
    let mut accepted = 0;
    for number in 0..5_000 {
        accepted += usize::from(
            post_for(&server, &format!("inven-ted00::{number:04}"), &list).status == 202,
        );
    }
    println!("accepted {accepted}");
    thread::sleep(Duration::from_secs(20));
    let pid = server.process.id();
    let cpu = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let (cpu_before, log_before, started) = (cpu(), server.process.stderr().len(), Instant::now());
    thread::sleep(Duration::from_secs(45));
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "log {:.1} kB/s, cpu {:.1} % of a core",
        (server.process.stderr().len() - log_before) as f64 / seconds / 1000.0,
        (cpu() - cpu_before) as f64 / seconds
    );
    let log = server.process.stderr();
    for line in log.lines().rev().take(5) {
        println!("{line}");
    }
}
