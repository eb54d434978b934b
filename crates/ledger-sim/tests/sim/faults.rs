//! Each fault by itself.

use std::{
    io::{self, ErrorKind},
    thread::{self, JoinHandle},
    time::Duration,
};

use grid_batch_ledger_sim::{Fault, When};
use grid_batch_protocol::Batch;

use crate::{
    batches::{batch, id, list, unknown},
    client::{Request, Response, eventually},
    fixtures::check,
    ledgers::{Ledger, both, sawtooth, scabbard},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn busy_ledger_accepts_nothing() {
    for ledger in both(|b| b.fault(Fault::Busy, When::Next(2))) {
        for _ in 0..2 {
            assert_eq!(ledger.submit(&[batch(1)]).status(), 429);
            assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
        }
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
        ledger.inject(Fault::Busy, When::Always);
        assert_eq!(ledger.submit(&[batch(2)]).status(), 429);
        ledger.inject(Fault::Busy, When::Never);
        assert_eq!(ledger.submit(&[batch(2)]).status(), 202);
        assert_eq!(ledger.times_received(&id(&batch(1))), 3);
    }
}

#[test]
fn busy_response_is_that_of_the_real_ledger() {
    let [sawtooth, scabbard] = both(|b| b.fault(Fault::Busy, When::Always));
    check("sawtooth/queue_full_31.http", &sawtooth.submit(&[batch(1)]), &[]);
    check("scabbard/busy_429.http", &scabbard.submit(&[batch(1)]), &[]);
}

#[test]
fn another_server_answers_with_its_pages() {
    for ledger in both(|b| b.fault(Fault::OtherServer { status: 404 }, When::Next(1))) {
        let answer = ledger.submit(&[batch(1)]);
        assert_eq!(answer.status(), 404);
        assert!(answer.text().contains("another server"), "{answer:?}");
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
        assert_eq!(ledger.times_received(&id(&batch(1))), 1);
    }
}

#[test]
fn timed_out_submission_is_accepted() {
    let ledger = sawtooth(|b| b.fault(Fault::TimedOut, When::Next(1)));
    check("sawtooth/timed_out_17.http", &ledger.submit(&[batch(1)]), &[]);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    let ledger = scabbard(|b| b.fault(Fault::TimedOut, When::Always));
    assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
}

#[test]
fn late_response_comes_after_the_commit() {
    for ledger in both(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Next(1))) {
        let client = send_in_background(&ledger, ledger.post(list(&[batch(1)])));
        eventually("the batch is committed", || ledger.status(&batch(1)) == "COMMITTED");
        ledger.advance(59);
        assert_eq!(ledger.submit(&[batch(2)]).status(), 202);
        assert!(!client.is_finished());
        ledger.advance(1);
        assert_eq!(client.join().unwrap().unwrap().status(), 202);
    }
}

#[test]
fn late_submission_arrives_after_its_client_gave_up() {
    for ledger in both(|b| b.fault(Fault::LateArrival(60 * SECOND), When::Next(1))) {
        let request = ledger.post(list(&[batch(1)])).timeout(Duration::from_millis(20));
        assert!(request.send(ledger.address()).is_err());
        assert_ne!(ledger.status(&batch(1)), "COMMITTED");
        eventually("the batch is committed", || {
            ledger.advance(60);
            ledger.status(&batch(1)) == "COMMITTED"
        });
    }
}

#[test]
fn batch_is_accepted_after_its_client_disconnected() {
    for ledger in both(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Next(1))) {
        let request = ledger.post(list(&[batch(1)])).timeout(Duration::from_millis(20));
        assert!(request.send(ledger.address()).is_err());
        eventually("the batch is committed", || ledger.status(&batch(1)) == "COMMITTED");
    }
}

#[test]
fn reset_before_accepting_accepts_nothing() {
    for ledger in both(|b| b.fault(Fault::ResetBefore, When::Next(1))) {
        assert_reset(ledger.post(list(&[batch(1)])).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
        assert_eq!(ledger.times_received(&id(&batch(1))), 0);
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
    }
}

#[test]
fn reset_after_accepting_accepts_the_batch() {
    for ledger in both(|b| b.fault(Fault::ResetAfter, When::Next(1))) {
        assert_reset(ledger.post(list(&[batch(1)])).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
}

#[test]
fn batches_are_invalid_as_often_as_set() {
    for ledger in both(|b| b.fault(Fault::Invalid, When::Next(2))) {
        ledger.submit(&[1, 2, 3].map(batch));
        let statuses = [1, 2, 3].map(|number| ledger.status(&batch(number)));
        assert_eq!(statuses, ["INVALID", "INVALID", "COMMITTED"]);
    }
}

#[test]
fn stuck_batch_stays_pending_and_later_ones_continue() {
    let ledger = sawtooth(|b| b.fault(Fault::StaysPending, When::Next(1)));
    ledger.submit(&[1, 2].map(batch));
    let statuses = || [1, 2].map(|number| ledger.status(&batch(number)));
    assert_eq!(statuses(), ["PENDING", "COMMITTED"]);
    ledger.advance(3_600);
    ledger.submit(&[batch(1)]);
    assert_eq!(statuses(), ["PENDING", "COMMITTED"]);
}

#[test]
fn same_seed_makes_the_same_faults() {
    let invalid = |ledger: Ledger| -> Vec<_> {
        let batches: Vec<_> = (0..60).map(batch).collect();
        ledger.submit(&batches);
        let is_invalid = |batch: &Batch| ledger.status(batch) == "INVALID";
        batches.iter().map(is_invalid).collect()
    };
    let some =
        |seed| invalid(sawtooth(|b| b.seed(seed).fault(Fault::Invalid, When::Sometimes(0.5))));
    assert_eq!(some(1), some(1));
    assert_ne!(some(1), some(2));
    let count = some(1).into_iter().filter(|is_invalid| *is_invalid).count();
    assert!((15..45).contains(&count), "{count}");
}

#[test]
fn seed_is_readable() {
    let ledger = sawtooth(|b| b.seed(77));
    assert_eq!(ledger.seed(), 77);
    assert!(format!("{:?}", ledger.sim).contains("77"));
}

#[test]
fn unauthorized_fault_refuses_requests() {
    let ledger = scabbard(|b| b.fault(Fault::Unauthorized, When::Next(2)));
    check("scabbard/unauthorized_401.http", &ledger.submit(&[batch(1)]), &[]);
    let status_request = ledger.status_request(&[id(&batch(1))]);
    check("scabbard/unauthorized_401.http", &ledger.send(&status_request), &[]);
    assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
}

#[test]
fn failed_statuses_report_a_temporary_error() {
    let [sawtooth, scabbard] = both(|b| b.fault(Fault::StatusesFail, When::Next(1)));
    let status_request = |ledger: &Ledger| ledger.send(&ledger.status_request(&[id(&batch(1))]));
    check("sawtooth/timed_out_17.http", &status_request(&sawtooth), &[]);
    check("scabbard/signature_not_hex_500.http", &status_request(&scabbard), &[]);
    assert_eq!(
        [status_request(&sawtooth).status(), status_request(&scabbard).status()],
        [200, 200]
    );
}

#[test]
fn late_statuses_are_delayed() {
    for ledger in both(|b| b.fault(Fault::LateStatuses(9 * SECOND), When::Next(1))) {
        let (response, took) = ledger.send_and_wait(ledger.status_request(&[id(&batch(1))]));
        assert_eq!(response.status(), 200);
        assert!(took >= 9 * SECOND, "{took:?}");
    }
}

#[test]
fn statuses_reset_resets_the_connection() {
    for ledger in both(|b| b.fault(Fault::StatusesReset, When::Next(1))) {
        assert_reset(ledger.status_request(&[id(&batch(1))]).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
    }
}

#[test]
fn statuses_broken_breaks_the_body() {
    for ledger in both(|b| b.fault(Fault::StatusesBroken, When::Next(1))) {
        assert_reset(ledger.status_request(&[id(&batch(1))]).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
    }
}

#[test]
fn statuses_truncated_is_half_of_the_json() {
    for (response, intact) in corrupted(Fault::StatusesTruncated) {
        assert_eq!(response.status(), 200);
        assert_eq!(response.body, intact.body[..intact.body.len() / 2]);
        assert!(serde_json::from_slice::<serde_json::Value>(&response.body).is_err());
    }
}

#[test]
fn statuses_not_json_is_an_html_page() {
    for (response, _) in corrupted(Fault::StatusesNotJson) {
        assert_eq!(response.status(), 200);
        assert!(response.text().starts_with("<html>"));
    }
}

#[test]
fn statuses_wrong_typed_is_other_json() {
    let [sawtooth, scabbard] =
        corrupted(Fault::StatusesWrongTyped).map(|(response, _)| response.json());
    assert!(sawtooth["data"].is_object());
    assert!(scabbard[0]["status"].is_string());
}

#[test]
fn statuses_huge_is_a_huge_body() {
    for (response, intact) in corrupted(Fault::StatusesHuge) {
        assert_eq!(response.body.len(), Fault::HUGE);
        assert_eq!(response.text().trim_end(), intact.text());
    }
}

#[test]
fn statuses_of_others_has_other_ids() {
    for (response, intact) in corrupted(Fault::StatusesOfOthers) {
        assert_eq!(response.body.len(), intact.body.len());
        assert!(!response.text().contains(&batch(1).header_signature));
        assert!(response.json().is_array() || response.json()["data"].is_array());
    }
}

#[test]
fn restart_resets_open_connections() {
    for ledger in both(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Always)) {
        let client = send_in_background(&ledger, ledger.post(list(&[batch(1)])));
        eventually("it is received", || ledger.times_received(&id(&batch(1))) == 1);
        ledger.restart();
        assert_reset(client.join().unwrap());
        ledger.heal();
        assert_eq!(ledger.submit(&[batch(2)]).status(), 202);
    }
}

#[test]
fn frozen_ledger_responds_after_thawing() {
    for ledger in both(|b| b) {
        ledger.freeze();
        let request = ledger.post(list(&[batch(1)])).timeout(Duration::from_millis(20));
        let error = request.send(ledger.address()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        assert!(ledger.record().is_empty());
        ledger.thaw();
        eventually("the batch is committed", || ledger.applied() == [id(&batch(1))]);
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
}

#[test]
fn restart_loses_requests_of_a_frozen_ledger() {
    for ledger in both(|b| b) {
        ledger.freeze();
        let client = send_in_background(&ledger, ledger.post(list(&[batch(1)])));
        eventually("it connects, and is reset", || {
            ledger.restart();
            client.is_finished()
        });
        assert!(client.join().unwrap().is_err());
        ledger.thaw();
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
    }
}

#[test]
fn heal_ends_every_fault() {
    let busy = |b: grid_batch_ledger_sim::LedgerSimBuilder| {
        b.fault(Fault::Busy, When::Always).fault(Fault::StatusesReset, When::Always)
    };
    for ledger in both(busy) {
        ledger.heal();
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
}

fn send_in_background(ledger: &Ledger, request: Request) -> JoinHandle<io::Result<Response>> {
    let address = ledger.address();
    thread::spawn(move || request.send(address))
}

fn assert_reset(response: io::Result<Response>) {
    let error = response.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

/// For each ledger, a status response with this fault and one without.
fn corrupted(fault: Fault) -> [(Response, Response); 2] {
    both(|b| b.fault(fault, When::Next(1))).map(|ledger| {
        ledger.submit(&[batch(1)]);
        let status_request = || ledger.send(&ledger.status_request(&[id(&batch(1))]));
        (status_request(), status_request())
    })
}

#[test]
fn killed_ledger_refuses_connections_until_it_starts_again() {
    for ledger in both(|b| b.pending_for(SECOND)) {
        ledger.submit_one(&batch(1));
        ledger.advance(1);
        ledger.submit_one(&batch(2));
        let mut kept = std::net::TcpStream::connect(ledger.address()).unwrap();
        ledger.kill();
        ledger.advance(1);
        let refused = ledger.status_request(&[unknown()]).send(ledger.address()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert!(!matches!(std::io::Read::read(&mut kept, &mut [0]), Ok(1)));
        assert_eq!(ledger.applied(), [id(&batch(1))]);

        ledger.start_again();
        assert_eq!(ledger.status(&batch(2)), "UNKNOWN");
        ledger.submit_one(&batch(2));
        ledger.advance(1);
        assert_eq!(ledger.applied(), [1, 2].map(|number| id(&batch(number))));
    }
}
