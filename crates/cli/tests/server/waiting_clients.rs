//! How soon clients that wait for batches are answered.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use grid_batch_ledger_sim::LedgerSimBuilder;
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{Response, request, send},
};

use crate::{
    harness::{BatchHarness, BatchServer},
    instances::group::InstanceGroup,
};

/// How long the ledger takes for a batch: twice as long as a genuine one, because the server of a test is slower.
const PENDING_FOR: Duration = Duration::from_millis(200);
const VALID_FOR: Duration = Duration::from_millis(600);
const BATCHES: usize = 13;

fn realistic(ledger: LedgerSimBuilder) -> LedgerSimBuilder {
    ledger.pending_for(PENDING_FOR).valid_for(VALID_FOR)
}

/// Submits each batch, waits until it has ended, and goes on, as the ledger's command line does. Returns the time of
/// a batch: that which the fastest quarter takes at most, because other tests keep the machine busy now and then.
fn submit_one_by_one(node: SocketAddr, batches: &[SignedBatch]) -> Duration {
    let mut times: Vec<Duration> =
        batches.iter().map(|batch| submit_and_wait(node, batch)).collect();
    times.sort_unstable();
    println!("times of batches: {times:.1?}");
    times[times.len() / 4]
}

fn submit_and_wait(node: SocketAddr, batch: &SignedBatch) -> Duration {
    let started = Instant::now();
    let (circuit, service) = batch.service_id.as_str().split_once("::").unwrap();
    let path = format!("/scabbard/{circuit}/{service}");
    let list = encode_batch_list(std::slice::from_ref(batch));
    assert_eq!(ask(node, "POST", &format!("{path}/batches"), &list).status, 202);
    let statuses = format!("{path}/batch_statuses?ids={}&wait=20", batch.batch_id);
    let ended = ask(node, "GET", &statuses, b"").json();
    assert_eq!(ended[0]["status"]["statusType"], "Committed", "{ended}");
    started.elapsed()
}

fn ask(node: SocketAddr, method: &str, path: &str, body: &[u8]) -> Response {
    let token = CylinderToken::new(&SigningKey::from_seed(7));
    let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
    send(node, &request(method, path, &[&authorization], body)).unwrap()
}

fn batches_of(service: &str) -> Vec<SignedBatch> {
    (1..=BATCHES).map(|number| signed_batch(service, number)).collect()
}

/// Both clients work at the same time, so that a busy machine delays both.
fn ratio_to_the_node(harness: &BatchHarness, server: &BatchServer) -> f64 {
    let [through_us, at_the_node] = [0, 1].map(|number| batches_of(&harness.services[number]));
    // What the first batch of a service takes, such as opening its event stream, is not compared.
    for (address, batches) in
        [(server.address, &through_us), (harness.ledger.address(), &at_the_node)]
    {
        submit_and_wait(address, &batches[0]);
    }
    let (ours, nodes) = thread::scope(|scope| {
        let ours = scope.spawn(|| submit_one_by_one(server.address, &through_us[1..]));
        let nodes = submit_one_by_one(harness.ledger.address(), &at_the_node[1..]);
        (ours.join().unwrap(), nodes)
    });
    let ratio = ours.as_secs_f64() / nodes.as_secs_f64();
    println!("a batch takes {ours:.1?} through the server, {nodes:.1?} at the node: {ratio:.3}");
    ratio
}

/// The other instance submits the batches. It needs a few notifications for each.
#[test]
fn client_of_another_instance_is_woken_by_it() {
    let group = InstanceGroup::with_ledger(2, realistic);
    let first = group.start("first");
    submit_and_wait(first.address, &signed_batch(&group.harness.services[0], 0));
    group.wait_until_claimed_by("first", 1);
    let second = group.start("second");
    let ratio = ratio_to_the_node(&group.harness, &second);
    assert_eq!(group.claimed_by("first"), 1);
    assert!(ratio <= 1.2, "{ratio:.3}");
    [first, second].into_iter().for_each(BatchServer::stop);
}

#[test]
fn client_waits_little_longer_than_at_the_node() {
    let harness = BatchHarness::scabbard_with(2, realistic);
    let server = harness.serve();
    let ratio = ratio_to_the_node(&harness, &server);
    assert!(ratio <= 1.05, "{ratio:.3}");
    server.stop();
}
