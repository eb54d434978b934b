//! Each fault alone.

use std::{
    io::{self, ErrorKind},
    thread::{self, JoinHandle},
    time::Duration,
};

use grid_batch_ledger_sim::{Fault, When};
use grid_batch_protocol::Batch;

use crate::{
    batches::{batch, id, list},
    client::{Answer, Request, eventually},
    fixtures::check,
    ledgers::{Ledger, both, sawtooth, scabbard},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_busy_ledger_accepts_nothing_until_it_is_not() {
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
fn busy_is_said_in_each_ledgers_own_words() {
    let [sawtooth, scabbard] = both(|b| b.fault(Fault::Busy, When::Always));
    check("sawtooth/queue_full_31.http", &sawtooth.submit(&[batch(1)]), &[]);
    check("scabbard/busy_429.http", &scabbard.submit(&[batch(1)]), &[]);
}

#[test]
fn a_submission_that_timed_out_was_accepted() {
    let ledger = sawtooth(|b| b.fault(Fault::TimedOut, When::Next(1)));
    check("sawtooth/timed_out_17.http", &ledger.submit(&[batch(1)]), &[]);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    let ledger = scabbard(|b| b.fault(Fault::TimedOut, When::Always));
    assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
}

#[test]
fn a_late_answer_comes_when_its_time_has_come_and_the_batch_is_there_before() {
    for ledger in both(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Next(1))) {
        let client = send_aside(&ledger, ledger.post(list(&[batch(1)])));
        eventually("the batch is committed", || ledger.status(&batch(1)) == "COMMITTED");
        ledger.advance(59);
        assert_eq!(ledger.submit(&[batch(2)]).status(), 202);
        assert!(!client.is_finished());
        ledger.advance(1);
        assert_eq!(client.join().unwrap().unwrap().status(), 202);
    }
}

#[test]
fn a_batch_whose_sender_has_given_up_is_accepted_all_the_same() {
    for ledger in both(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Next(1))) {
        let impatient = ledger.post(list(&[batch(1)])).patience(Duration::from_millis(20));
        assert!(impatient.send(ledger.address()).is_err());
        eventually("the batch is committed", || ledger.status(&batch(1)) == "COMMITTED");
    }
}

#[test]
fn a_reset_before_accepting_accepts_nothing() {
    for ledger in both(|b| b.fault(Fault::ResetBefore, When::Next(1))) {
        assert_reset(ledger.post(list(&[batch(1)])).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
        assert_eq!(ledger.times_received(&id(&batch(1))), 0);
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
    }
}

#[test]
fn a_reset_after_accepting_accepts_the_batch() {
    for ledger in both(|b| b.fault(Fault::ResetAfter, When::Next(1))) {
        assert_reset(ledger.post(list(&[batch(1)])).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
}

#[test]
fn batches_turn_out_invalid_as_often_as_they_are_told() {
    for ledger in both(|b| b.fault(Fault::Invalid, When::Next(2))) {
        ledger.submit(&[1, 2, 3].map(batch));
        let statuses = [1, 2, 3].map(|number| ledger.status(&batch(number)));
        assert_eq!(statuses, ["INVALID", "INVALID", "COMMITTED"]);
    }
}

#[test]
fn chance_decides_the_same_for_the_same_seed() {
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
fn the_seed_is_told() {
    let ledger = sawtooth(|b| b.seed(77));
    assert_eq!(ledger.seed(), 77);
    assert!(format!("{:?}", ledger.sim).contains("77"));
}

#[test]
fn authorization_can_be_refused() {
    let ledger = scabbard(|b| b.fault(Fault::Unauthorized, When::Next(2)));
    check("scabbard/unauthorized_401.http", &ledger.submit(&[batch(1)]), &[]);
    let ask = ledger.ask(&[id(&batch(1))]);
    check("scabbard/unauthorized_401.http", &ledger.send(&ask), &[]);
    assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
}

#[test]
fn statuses_that_fail_say_to_try_again() {
    let [sawtooth, scabbard] = both(|b| b.fault(Fault::StatusesFail, When::Next(1)));
    let ask = |ledger: &Ledger| ledger.send(&ledger.ask(&[id(&batch(1))]));
    check("sawtooth/timed_out_17.http", &ask(&sawtooth), &[]);
    check("scabbard/signature_not_hex_500.http", &ask(&scabbard), &[]);
    assert_eq!([ask(&sawtooth).status(), ask(&scabbard).status()], [200, 200]);
}

#[test]
fn late_statuses_come_when_their_time_has_come() {
    for ledger in both(|b| b.fault(Fault::LateStatuses(9 * SECOND), When::Next(1))) {
        let (answer, took) = ledger.send_and_wait(ledger.ask(&[id(&batch(1))]));
        assert_eq!(answer.status(), 200);
        assert!(took >= 9 * SECOND, "{took:?}");
    }
}

#[test]
fn a_question_for_statuses_can_be_reset() {
    for ledger in both(|b| b.fault(Fault::StatusesReset, When::Next(1))) {
        assert_reset(ledger.ask(&[id(&batch(1))]).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
    }
}

#[test]
fn an_answer_can_break_off_in_the_middle() {
    for ledger in both(|b| b.fault(Fault::StatusesBroken, When::Next(1))) {
        assert_reset(ledger.ask(&[id(&batch(1))]).send(ledger.address()));
        assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
    }
}

#[test]
fn half_of_an_answer_is_no_json() {
    for (answer, whole) in spoilt(Fault::StatusesTruncated) {
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.body, whole.body[..whole.body.len() / 2]);
        assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).is_err());
    }
}

#[test]
fn an_answer_can_be_a_page_of_html() {
    for (answer, _) in spoilt(Fault::StatusesNotJson) {
        assert_eq!(answer.status(), 200);
        assert!(answer.text().starts_with("<html>"));
    }
}

#[test]
fn an_answer_can_be_json_of_another_shape() {
    let [sawtooth, scabbard] = spoilt(Fault::StatusesWrongTyped).map(|(answer, _)| answer.json());
    assert!(sawtooth["data"].is_object());
    assert!(scabbard[0]["status"].is_string());
}

#[test]
fn an_answer_can_be_huge() {
    for (answer, whole) in spoilt(Fault::StatusesHuge) {
        assert_eq!(answer.body.len(), Fault::HUGE);
        assert_eq!(answer.text().trim_end(), whole.text());
    }
}

#[test]
fn an_answer_can_be_about_other_batches() {
    for (answer, whole) in spoilt(Fault::StatusesOfOthers) {
        assert_eq!(answer.body.len(), whole.body.len());
        assert!(!answer.text().contains(&batch(1).header_signature));
        assert!(answer.json().is_array() || answer.json()["data"].is_array());
    }
}

#[test]
fn a_restart_resets_the_connections_that_are_open() {
    for ledger in both(|b| b.fault(Fault::LateAnswer(60 * SECOND), When::Always)) {
        let client = send_aside(&ledger, ledger.post(list(&[batch(1)])));
        eventually("it is received", || ledger.times_received(&id(&batch(1))) == 1);
        ledger.restart();
        assert_reset(client.join().unwrap());
        ledger.heal();
        assert_eq!(ledger.submit(&[batch(2)]).status(), 202);
    }
}

#[test]
fn a_frozen_ledger_answers_nothing_and_deals_with_it_later() {
    for ledger in both(|b| b) {
        ledger.freeze();
        let impatient = ledger.post(list(&[batch(1)])).patience(Duration::from_millis(20));
        let error = impatient.send(ledger.address()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        assert!(ledger.record().is_empty());
        ledger.thaw();
        eventually("the batch is committed", || ledger.applied() == [id(&batch(1))]);
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
}

#[test]
fn a_restart_loses_what_a_frozen_ledger_has_read() {
    for ledger in both(|b| b) {
        ledger.freeze();
        let client = send_aside(&ledger, ledger.post(list(&[batch(1)])));
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
fn healing_ends_every_fault() {
    let busy = |b: grid_batch_ledger_sim::LedgerSimBuilder| {
        b.fault(Fault::Busy, When::Always).fault(Fault::StatusesReset, When::Always)
    };
    for ledger in both(busy) {
        ledger.heal();
        assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
}

fn send_aside(ledger: &Ledger, request: Request) -> JoinHandle<io::Result<Answer>> {
    let address = ledger.address();
    thread::spawn(move || request.send(address))
}

fn assert_reset(answer: io::Result<Answer>) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

/// An answer with this fault and one without, for the same question to each ledger.
fn spoilt(fault: Fault) -> [(Answer, Answer); 2] {
    both(|b| b.fault(fault, When::Next(1))).map(|ledger| {
        ledger.submit(&[batch(1)]);
        let ask = || ledger.send(&ledger.ask(&[id(&batch(1))]));
        (ask(), ask())
    })
}
