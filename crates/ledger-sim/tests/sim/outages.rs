//! A Sawtooth validator that crashes behind its REST API, or that a batch stops.

use std::{io, thread, thread::JoinHandle, time::Duration};

use grid_batch_ledger_sim::{Fault, When};

use crate::{
    batches::{batch, id, list},
    client::{Request, Response, eventually},
    fixtures::check,
    ledgers::{Ledger, sawtooth},
};

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(300);

fn send_in_background(ledger: &Ledger, request: Request) -> JoinHandle<io::Result<Response>> {
    let address = ledger.address();
    thread::spawn(move || request.send(address))
}

#[test]
fn crash_loses_what_is_queued_and_nothing_else() {
    let ledger = sawtooth(|b| b.pending_for(60 * SECOND));
    ledger.submit(&[batch(1)]);
    ledger.advance(60);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    ledger.submit(&[batch(2)]);
    assert_eq!(ledger.status(&batch(2)), "PENDING");
    ledger.crash_validator(TIMEOUT);
    ledger.start_validator();
    assert_eq!(["COMMITTED", "UNKNOWN"], [1, 2].map(|n| ledger.status(&batch(n))));
}

#[test]
fn crash_answers_what_is_in_flight_as_disconnected() {
    let ledger = sawtooth(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Next(1)));
    let client = send_in_background(&ledger, ledger.post(list(&[batch(1)])));
    eventually("it is received", || ledger.times_received(&id(&batch(1))) == 1);
    ledger.crash_validator(TIMEOUT);
    check("sawtooth/disconnected_18.http", &client.join().unwrap().unwrap(), &[]);
}

#[test]
fn interface_of_a_crashed_validator_times_out() {
    let ledger = sawtooth(|b| b);
    ledger.crash_validator(TIMEOUT);
    let (response, duration) = ledger.send_and_wait(ledger.status_request(&[id(&batch(1))]));
    check("sawtooth/timed_out_17.http", &response, &[]);
    assert!(duration >= TIMEOUT, "{duration:?}");
}

#[test]
fn request_that_waits_for_the_validator_is_handled_later() {
    let ledger = sawtooth(|b| b);
    ledger.crash_validator(TIMEOUT);
    let post = ledger.post(list(&[batch(1)])).timeout(Duration::from_millis(50));
    assert!(post.send(ledger.address()).is_err(), "the client gives up");
    assert_eq!(ledger.times_received(&id(&batch(1))), 0);
    ledger.start_validator();
    eventually("the batch is committed", || ledger.applied() == [id(&batch(1))]);
}

#[test]
fn batch_without_a_processor_stops_the_node() {
    let ledger = sawtooth(|b| b.fault(Fault::NoProcessor, When::Next(1)));
    assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
    for request in [ledger.post(list(&[batch(2)])), ledger.status_request(&[id(&batch(1))])] {
        let short = request.timeout(Duration::from_millis(20));
        assert!(short.send(ledger.address()).is_err());
    }
    ledger.advance(3_600);
    assert!(ledger.record().is_empty());
}

#[test]
fn restart_ends_the_stop_and_loses_the_batch() {
    let ledger = sawtooth(|b| b.fault(Fault::NoProcessor, When::Next(2)));
    for restart in
        [(|ledger: &Ledger| ledger.restart()) as fn(&Ledger), |ledger| ledger.start_validator()]
    {
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
        restart(&ledger);
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
    }
    assert_eq!(ledger.submit(&[batch(2)]).status(), 202);
    assert_eq!(ledger.status(&batch(2)), "COMMITTED");
}

#[test]
fn request_of_a_stopped_node_ends_with_its_validator() {
    let ledger = sawtooth(|b| b.fault(Fault::NoProcessor, When::Next(1)));
    ledger.submit(&[batch(1)]);
    let client = send_in_background(&ledger, ledger.status_request(&[id(&batch(1))]));
    eventually("it waits, and is answered", || {
        ledger.start_validator();
        client.is_finished()
    });
    let response = client.join().unwrap().unwrap();
    // A request that arrives after the start is answered by the new validator.
    assert!(matches!(response.status(), 503 | 200), "{response:?}");
}
