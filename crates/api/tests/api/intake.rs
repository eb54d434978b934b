use std::{sync::mpsc, thread};

use grid_batch_api::ApiOptions;
use grid_batch_core::{BatchFilter, BatchState};
use grid_batch_protocol::{BatchList, Limits, Message};
use grid_batch_store::{Store, StoreOptions};

use crate::fixture::{Held, Served, batch, body, id, same_id_other_bytes, service};

#[test]
fn what_is_accepted_is_stored_and_the_link_leads_to_it() {
    let served = Served::new();
    let [one, two] = [1, 2].map(batch);
    let link = served.post("/batches", &body([one.clone(), two.clone()])).link();
    assert_eq!(link, format!("http://grid.test/batch_statuses?id={},{}", id(&one), id(&two)));
    assert_eq!(served.get(&link["http://grid.test".len()..]).statuses(), ["PENDING", "PENDING"]);

    let stored = served.store.list(&BatchFilter::default(), None, 9).unwrap();
    let ids: Vec<_> = stored.iter().map(|batch| batch.batch_id).collect();
    assert_eq!(ids, [id(&one), id(&two)]);
    assert_eq!(stored[0].progress.state, BatchState::New);
    let bytes = served.store.serialized_batch(&service("global"), &id(&one)).unwrap();
    assert_eq!(bytes, Some(one.encode_to_vec()));
}

#[test]
fn what_is_accepted_is_there_for_another_who_opens_the_store() {
    let served = Served::new();
    served.post("/batches", &body([batch(1)])).link();
    let other = Store::open(&served.url(), StoreOptions::default()).unwrap();
    assert_eq!(other.find(&id(&batch(1))).unwrap().len(), 1);
}

#[test]
fn the_same_batches_again_are_the_same_answer_and_are_stored_once() {
    let served = Served::new();
    let list = body([batch(1)]);
    let first = served.post("/batches", &list).link();
    assert_eq!(served.post("/batches", &list).link(), first);
    assert_eq!(served.store.count(&BatchFilter::default()).unwrap(), 1);
}

#[test]
fn the_same_id_with_other_bytes_is_a_conflict_and_nothing_of_its_list_is_stored() {
    let served = Served::new();
    served.post("/batches", &body([batch(1)])).link();
    let answer = served.post("/batches", &body([batch(2), same_id_other_bytes(1)]));
    assert_eq!(answer.error(), (409, 1011));
    assert!(answer.message().contains(&id(&batch(1)).to_string()), "{}", answer.message());
    assert!(!served.is_stored(&id(&batch(2))));
}

#[test]
fn the_same_batch_for_another_service_is_another_batch() {
    let served = Served::new();
    served.post("/batches?service_id=a::b", &body([batch(1)])).link();
    served.post("/batches?service_id=a::c", &body([batch(1)])).link();
    assert_eq!(served.store.find(&id(&batch(1))).unwrap().len(), 2);
}

#[test]
fn the_service_is_in_the_link_once_it_is_named_and_clients_may_append_it_again() {
    let served = Served::new();
    let link = served.post("/batches?service_id=abcDE-F0123%3A%3AgsAA", &body([batch(1)])).link();
    let expected = format!(
        "http://grid.test/batch_statuses?id={}&service_id=abcDE-F0123::gsAA",
        id(&batch(1))
    );
    assert_eq!(link, expected);
    let path = &link["http://grid.test".len()..];
    let appended = format!("{path}&wait=1&service_id=abcDE-F0123::gsAA");
    assert_eq!(served.get(&appended).statuses(), ["PENDING"]);
    assert!(
        served.store.find(&id(&batch(1))).unwrap()[0].service_id == service("abcDE-F0123::gsAA")
    );
}

#[test]
fn a_content_type_is_the_right_one_or_none() {
    let served = Served::new();
    let list = body([batch(1)]);
    for header in ["content-type: Application/Octet-Stream; x=y", "x-none: 1"] {
        served.client().ask("POST", "/batches", &[header], &list).link();
    }
    for given in ["application/json", "", "application/octet-stream2", "\u{fe}"] {
        let header = format!("content-type: {given}");
        let answer = served.client().ask("POST", "/batches", &[&header], &list);
        assert_eq!(answer.error(), (400, 42), "{given}");
    }
}

#[test]
fn lists_that_ledgers_would_refuse_are_refused_as_sawtooth_does() {
    let served = Served::new();
    let mut tampered = batch(1);
    tampered.transactions[0].payload = b"set a to 2".to_vec();
    let mut unsigned = batch(2);
    unsigned.header_signature = "00".repeat(64);
    let whole = body([batch(3)]);
    for (list, code) in [
        (vec![], 34),
        (vec![0x12, 0x00], 34),
        (b"garbage!!".to_vec(), 35),
        (whole[..whole.len() - 1].to_vec(), 35),
        (body([batch(4), tampered]), 30),
        (body([batch(4), unsigned]), 30),
        (body([batch(4), batch(4)]), 30),
    ] {
        assert_eq!(served.post("/batches", &list).error(), (400, code));
    }
    assert_eq!(served.store.count(&BatchFilter::default()).unwrap(), 0);
}

#[test]
fn a_service_that_the_rule_refuses_is_refused_and_the_rule_named() {
    let served = Served::with(|builder| {
        builder.with_service_rule(|service| match service.as_str() {
            "a::b" => Ok(()),
            _ => Err("only a::b".to_owned()),
        })
    });
    let list = body([batch(1)]);
    served.post("/batches?service_id=a::b", &list).link();
    for path in ["/batches", "/batches?service_id=a::c"] {
        let answer = served.post(path, &list);
        assert_eq!(answer.error(), (400, 1008));
        assert!(answer.message().contains("only a::b"), "{}", answer.message());
    }
}

#[test]
fn what_is_no_service_id_is_refused() {
    let served = Served::new();
    let long = format!("/batches?service_id={}", "x".repeat(129));
    for (path, code) in [
        ("/batches?service_id=", 1008),
        ("/batches?service_id", 1008),
        ("/batches?service_id=two+words", 1008),
        ("/batches?service_id=a%00", 1008),
        (&long, 1008),
        ("/batches?service_id=%ff", 1007),
        ("/batches?service_id=%", 1007),
        ("/batches?service_id=a&service_id=b", 1007),
    ] {
        assert_eq!(served.post(path, &body([batch(1)])).error(), (400, code), "{path}");
    }
}

#[test]
fn a_thousand_batches_fit_into_one_list_and_one_more_does_not() {
    let served = Served::new();
    let list = BatchList { batches: (0..1_001).map(batch).collect() };
    assert_eq!(served.post("/batches", &list.encode_to_vec()).error(), (413, 1004));
    let list = body(list.batches.into_iter().take(1_000));
    let link = served.post("/batches", &list).link();
    assert_eq!(link.matches(',').count(), 999);
    assert_eq!(served.store.count(&BatchFilter::default()).unwrap(), 1_000);
}

#[test]
fn the_limits_of_a_list_are_options() {
    let limits = Limits { transactions: 1, ..Limits::default() };
    let served = Served::with_options(ApiOptions { limits, ..ApiOptions::default() });
    assert_eq!(served.post("/batches", &body([batch(1), batch(2)])).error(), (413, 1004));
    served.post("/batches", &body([batch(1)])).link();
}

#[test]
fn the_composer_is_told_of_new_batches_before_the_sender_is_answered() {
    let (tell, told) = mpsc::channel();
    let served = Served::with(|builder| {
        builder.with_stored(move |services| tell.send(services.to_vec()).unwrap())
    });
    let list = body([batch(1), batch(2)]);
    served.post("/batches?service_id=a::b", &list).link();
    assert_eq!(told.try_recv().unwrap(), [service("a::b")]);
    served.post("/batches?service_id=a::b", &list).link();
    assert!(told.try_recv().is_err(), "nothing is new");
}

#[test]
fn requests_that_come_together_share_commits() {
    let held = Held::new(ApiOptions { queue_limit: 30, ..ApiOptions::default() });
    let mut clients = held.fill();
    let Held { mut first, release, commits, .. } = held;
    drop(release);
    first.hear().link();
    let accepted =
        clients.iter_mut().filter_map(|client| (client.hear().status == 202).then_some(()));
    let accepted = accepted.count();
    let commits = commits.try_iter().count();
    assert!(accepted >= 30 && commits <= accepted / 2, "{accepted} requests, {commits} commits");
}

#[test]
fn many_clients_at_once_all_find_what_they_were_answered() {
    let served = Served::new();
    let send = &|client: u64| {
        let mut connection = served.client();
        for number in 0..20 {
            let batch = batch(client * 100 + number);
            connection.ask("POST", "/batches", &[], &body([batch.clone()])).link();
            assert!(served.is_stored(&id(&batch)));
        }
    };
    thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || send(client));
        }
    });
    assert_eq!(served.store.count(&BatchFilter::default()).unwrap(), 160);
}
