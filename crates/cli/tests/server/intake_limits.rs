//! What a client can make the server store: allow-lists and limits.

use std::{
    iter,
    ops::Range,
    slice,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_protocol::{BatchBuilder, SigningKey, TransactionBuilder};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch, signed_batches},
    http::{Response, request, send},
    process::run,
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_all, count_in_state};

const OCTETS: &str = "content-type: application/octet-stream";

/// The key that signs the batches of tests.
const SIGNER_SEED: u64 = 7;

fn signer(seed: u64) -> String {
    SigningKey::from_seed(seed).public_key().to_string()
}

/// Posts the same list for a service, whatever the list was made for.
fn post_for(server: &BatchServer, service: &str, list: &[u8]) -> Response {
    let path = format!("/batches?service_id={service}");
    send(server.address, &request("POST", &path, &[OCTETS], list)).unwrap()
}

#[track_caller]
fn assert_refused(response: &Response, status: u16, code: u64) {
    assert_eq!((response.status, &response.json()["error"]["code"]), (status, &code.into()));
}

/// Posts one signed batch for made-up services, and returns how many were accepted. The ledger, which would
/// refuse such services, does not answer.
fn flood(
    harness: &BatchHarness,
    server: &BatchServer,
    services: Range<usize>,
    list: &[u8],
) -> usize {
    const CLIENTS: usize = 16;
    harness.ledger.freeze();
    let post = &|first: usize| {
        let numbers = services.clone().skip(first).step_by(CLIENTS);
        numbers.filter(|number| is_accepted(server, *number, list)).count()
    };
    let accepted = thread::scope(|scope| {
        let spawn = |first| scope.spawn(move || post(first));
        let clients: Vec<_> = (0..CLIENTS).map(spawn).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    harness.ledger.thaw();
    accepted
}

/// Posts the list for a made-up service. If it is refused, then because of the limit.
fn is_accepted(server: &BatchServer, number: usize, list: &[u8]) -> bool {
    let service = format!("made-up{:03}::{:03}", number / 500, number % 500);
    let response = post_for(server, &service, list);
    if response.status == 202 {
        return true;
    }
    assert_refused(&response, 429, 1019);
    false
}

#[test]
fn services_outside_of_the_list_are_refused() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve_with(&[("--intake-services", "test-00000::s0000, other-*")]);
    let [allowed, other] = [0, 1].map(|service| signed_batch(&harness.services[service], 1));
    let list = encode_batch_list(slice::from_ref(&other));
    for number in 0..100 {
        let response = post_for(&server, &format!("made-up000::{number:04}"), &list);
        assert_refused(&response, 403, 1016);
    }
    assert_refused(&server.post(slice::from_ref(&other)).unwrap(), 403, 1016);
    server.submit(slice::from_ref(&allowed));
    harness.wait_until_all_committed(slice::from_ref(&allowed));
    assert_eq!(count_all(&harness.store()), 1);
    server.stop();
    let server = harness.serve();
    server.submit(slice::from_ref(&other));
    harness.wait_until_all_committed(&[allowed, other]);
    server.stop();
}

#[test]
fn signers_outside_of_the_list_are_refused() {
    let harness = BatchHarness::scabbard(1);
    let batch = signed_batch(&harness.services[0], 1);
    let server = harness.serve_with(&[("--intake-signers", &signer(SIGNER_SEED + 1))]);
    let response = server.post(slice::from_ref(&batch)).unwrap();
    assert_refused(&response, 403, 1017);
    assert!(response.body.contains(&signer(SIGNER_SEED)), "{}", response.body);
    assert_eq!(count_all(&harness.store()), 0);
    server.stop();
    let both = format!("{}, {}*", signer(SIGNER_SEED + 1), &signer(SIGNER_SEED)[..10]);
    let server = harness.serve_with(&[("--intake-signers", &both)]);
    server.submit(slice::from_ref(&batch));
    harness.wait_until_all_committed(&[batch]);
    server.stop();
}

#[test]
fn invalid_patterns_are_refused_at_start() {
    let harness = BatchHarness::scabbard(1);
    for (flag, value, expected) in [
        ("--intake-services", "two words", "matches no service id"),
        ("--intake-signers", "02AB*", "66 lower-case hex digits"),
        ("--intake-signers", "02ab", "66 lower-case hex digits"),
        ("--intake-open-batches", "0", "it must be a number from 1"),
        ("--testing-new-services", "0", "it must be a number from 1"),
    ] {
        let output = run(harness.command(&[(flag, value)]));
        let message = output.error_message();
        assert!(message.contains(expected) && message.contains(value), "{message}");
    }
}

fn assert_made_up_services_are_limited(harness: &BatchHarness) {
    let flags = [("--testing-new-services-per-signer", "20")];
    let mut server = harness.serve_with(&flags);
    let known = signed_batches(&harness.services, 1);
    server.submit(&known);
    harness.wait_until_all_committed(&known);
    let list = encode_batch_list(&known[..1]);
    assert_eq!(flood(harness, &server, 0..60, &list), 20);

    server.stop();
    server = harness.serve_with(&flags);
    assert_eq!(flood(harness, &server, 60..120, &list), 0, "they are counted in the database");
    let more = signed_batches(&harness.services, 3)[known.len()..].to_vec();
    server.submit(&more);
    let committed = known.len() + more.len();
    let store = harness.store();
    wait_until("services with history go on", || {
        count_in_state(&store, BatchState::Committed) == committed
    });
    assert_eq!(count_all(&store), committed + 20);
    server.stop();
}

#[test]
fn made_up_services_are_limited_on_sqlite() {
    assert_made_up_services_are_limited(&BatchHarness::scabbard(2));
}

#[test]
fn made_up_services_are_limited_on_postgres() {
    let database = TestDatabase::create();
    assert_made_up_services_are_limited(&BatchHarness::scabbard(2).with_database(database.url()));
}

#[test]
fn made_up_services_are_limited_by_default() {
    let harness = BatchHarness::scabbard(1);
    let server =
        harness.serve_with(&[("--testing-first-delay", "1h"), ("--testing-longest-delay", "1h")]);
    let list = encode_batch_list(&[signed_batch(&harness.services[0], 1)]);
    assert_eq!(flood(&harness, &server, 0..1_100, &list), 1_000);
    server.stop();
}

#[test]
fn queue_of_a_service_is_limited_until_it_drains() {
    let harness = BatchHarness::scabbard_with(2, |ledger| ledger.fault(Fault::Busy, When::Always));
    let server = harness.serve_with(&[("--intake-open-batches", "5")]);
    let batches: Vec<_> = (0..6).map(|number| signed_batch(&harness.services[0], number)).collect();
    for batch in &batches[..5] {
        assert_eq!(server.post(slice::from_ref(batch)).unwrap().status, 202);
    }
    let full = server.post(&batches[5..]).unwrap();
    assert_refused(&full, 429, 1018);
    assert!(full.body.contains("5 open batches"), "{}", full.body);
    assert_eq!(server.post(&batches[4..5]).unwrap().status, 202, "it is stored already");
    let other = signed_batch(&harness.services[1], 1);
    assert_eq!(server.post(slice::from_ref(&other)).unwrap().status, 202);

    harness.ledger.inject(Fault::Busy, When::Never);
    server.submit(&batches[5..]);
    harness.wait_until_all_committed(&[batches, vec![other]].concat());
    server.stop();
}

/// A batch of a signer that writes this many addresses of its own, and reads as many others.
fn batch_with_addresses(signer: u64, number: usize, addresses: usize) -> SignedBatch {
    let key = SigningKey::from_seed(signer);
    let address = |kind: u8, it| format!("7e57{kind:02x}{signer:08x}{number:08x}{it:048x}");
    let all = |kind| (0..addresses).map(|it| address(kind, it)).collect::<Vec<_>>();
    let transaction = TransactionBuilder::new("test", "1.0")
        .inputs(all(0))
        .outputs(all(1))
        .nonce(number.to_string())
        .payload("set all")
        .sign(&key, &key.public_key());
    SignedBatch::new("global", BatchBuilder::new().transaction(transaction).sign(&key))
}

/// The median time until usual batches of a signer are accepted, one after the other.
fn median_answer(server: &BatchServer, signer: u64) -> Duration {
    let mut times: Vec<Duration> = (0..40)
        .map(|number| {
            let batch = batch_with_addresses(signer, number, 1);
            let started = Instant::now();
            assert_eq!(server.post(slice::from_ref(&batch)).unwrap().status, 202);
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn flood_of_declared_addresses_is_limited() {
    const CLIENTS: usize = 4;
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let flood: Vec<SignedBatch> = (0..60).map(|n| batch_with_addresses(100, n, 256)).collect();
    let alone = median_answer(&server, 1);
    let (started, next) = (Instant::now(), AtomicUsize::new(0));
    let client = || {
        let answers = iter::from_fn(|| flood.get(next.fetch_add(1, Ordering::Relaxed)))
            .map(|batch| server.post(slice::from_ref(batch)).unwrap());
        let refused =
            |answer: &Response| answer.status == 429 && answer.json()["error"]["code"] == 1101;
        answers.filter(refused).count()
    };
    let (refused, beside) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let beside = median_answer(&server, 2);
        let refused = clients.into_iter().map(|client| client.join().unwrap()).sum::<usize>();
        (refused, beside)
    });
    let accepted = flood.len() - refused;
    println!(
        "a usual batch is accepted after {alone:?}, and after {beside:?} during a flood, of which {accepted} of {} \
         batches were accepted in {:?}",
        flood.len(),
        started.elapsed()
    );
    // The burst of a second, the rate of each later second, and the requests that are checked at the same moment.
    let most = 2_000.0 / 480.0 * (1.0 + started.elapsed().as_secs_f64()) + 1.0 + CLIENTS as f64;
    assert!((accepted as f64) < most, "{accepted} of at most {most:.0} were accepted");
    server.stop();
}
