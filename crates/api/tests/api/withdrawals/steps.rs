use std::{sync::mpsc, thread};

use grid_batch_withdrawals::WithdrawalId;

use super::chain::{ADMIN, chain, chain_with};
use crate::{
    client::Answer,
    fixture::{Served, service},
};

fn step(served: &Served, id: &WithdrawalId, which: &str) -> Answer {
    served.client().ask("POST", &format!("/withdrawals/{id}/{which}"), &[], b"")
}

#[test]
fn one_that_failed_is_tried_anew() {
    let (tell, told) = mpsc::channel();
    let served = chain_with(|builder| {
        builder.with_stored(move |services| tell.send(services.to_vec()).unwrap())
    });
    let id = served.withdraw("5");
    served.fail("NOT_OWNER");
    told.try_recv().unwrap();
    let answer = step(&served, &id, "retry");
    let json = answer.json();
    assert_eq!(answer.status, 200, "{json}");
    assert_eq!((&json["state"], &json["generation"]), (&"scheduled".into(), &2.into()));
    assert!(json.get("fail_reason").is_none(), "{json}");
    assert_eq!(told.try_recv().unwrap(), [service(ADMIN)]);
    served.make("7");
    assert_eq!(served.withdrawal(&id)["withdrawal_id"], "7");
}

#[test]
fn one_that_has_not_failed_is_not_tried_anew() {
    let served = chain();
    let id = served.withdraw("5");
    let answer = step(&served, &id, "retry");
    assert_eq!(answer.error(), (409, 1028));
    assert!(answer.message().contains("is scheduled"), "{}", answer.message());
    served.make("7");
    let answer = step(&served, &id, "retry");
    assert_eq!(answer.error(), (409, 1028));
    assert!(answer.message().contains("is withdrawn"), "{}", answer.message());
}

#[test]
fn of_many_who_retry_at_once_one_does() {
    let served = chain();
    let id = served.withdraw("5");
    served.fail("NOT_OWNER");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let asking: Vec<_> =
            (0..16).map(|_| scope.spawn(|| step(&served, &id, "retry").status)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(served.withdrawal(&id)["generation"], 2);
}

#[test]
fn a_cancellation_is_noted_as_often_as_it_is_asked_for() {
    let served = chain();
    let id = served.withdraw("5");
    for _ in 0..2 {
        let answer = step(&served, &id, "cancel");
        assert_eq!(answer.status, 202);
        assert_eq!(answer.json()["state"], "scheduled");
        assert!(answer.json()["cancelled_at"].is_string(), "{}", answer.json());
    }
}

#[test]
fn what_has_ended_cannot_be_cancelled() {
    let served = chain();
    let [made, failed] = ["1", "2"].map(|amount| served.withdraw(amount));
    served.make("7");
    served.fail("NOT_OWNER");
    for (id, state) in [(made, "withdrawn"), (failed, "failed")] {
        let answer = step(&served, &id, "cancel");
        assert_eq!(answer.error(), (409, 1028));
        assert!(answer.message().contains(state), "{}", answer.message());
    }
}

#[test]
fn steps_need_a_withdrawal_and_no_body() {
    let served = chain();
    let id = served.withdraw("5");
    let nothing = WithdrawalId::from_bytes([0; 16]);
    for which in ["retry", "cancel"] {
        assert_eq!(step(&served, &nothing, which).error(), (404, 1025));
        let path = format!("/withdrawals/{id}/{which}");
        let say = |body: &[u8]| served.client().ask("POST", &path, &[], body);
        assert_eq!(say(b"rubbish").error(), (400, 1022));
        assert_eq!(say(b"{\"force\":true}").error(), (400, 1022));
        assert!([202, 409].contains(&say(b"{}").status));
        let bad = served.client().ask("POST", &format!("/withdrawals/zz/{which}"), &[], b"");
        assert_eq!(bad.error(), (400, 60));
    }
}
