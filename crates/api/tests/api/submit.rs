use std::{
    future::ready,
    pin::Pin,
    sync::{Arc, mpsc},
    thread,
};

use grid_batch_api::{ApiBuilder, ApiOptions};
use grid_batch_core::batches::{BatchFormat, BatchState, Deadline, FormatError, NewBatch};
use grid_batch_core::ledger::{KeyRefusal, Ledger, LedgerKey};
use grid_batch_core::queries::{BatchFilter, BatchQueryStore};
use grid_batch_core::tokens::AccessScope;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_protocol::{BatchList, Limits, Message, SigningKey, TransactFormat};
use grid_batch_store::{IntakeLimits, Store, StoreOptions};
use serde_json::{Value, json};

use crate::test_server::{
    BlockedWriter, TestServer, batch, body, id, same_id_other_bytes, service,
};

#[test]
fn accepted_batches_are_stored_and_linked() {
    let server = TestServer::new();
    let [one, two] = [1, 2].map(batch);
    let link = server.post("/batches", &body([one.clone(), two.clone()])).link();
    assert_eq!(link, format!("http://grid.test/batch_statuses?id={},{}", id(&one), id(&two)));
    assert_eq!(server.get(&link["http://grid.test".len()..]).statuses(), ["PENDING", "PENDING"]);

    let stored = server.store.list(&BatchFilter::default(), None, 9).unwrap();
    let ids: Vec<_> = stored.iter().map(|batch| batch.batch_id).collect();
    assert_eq!(ids, [id(&one), id(&two)]);
    assert_eq!(stored[0].progress.state, BatchState::New);
    let bytes = server.store.serialized_batch(&service("global"), &id(&one)).unwrap();
    assert_eq!(bytes, Some(one.encode_to_vec()));
}

#[test]
fn trace_of_a_request_is_stored_with_its_batches() {
    let server = TestServer::with(|builder, store| builder.with_events(store.clone()));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let post = |path: &str, trace: &str, number| {
        let headers = ["content-type: application/octet-stream", trace];
        let response = server.client().request("POST", path, &headers, &body([batch(number)]));
        assert_eq!(response.status, 202, "{}", response.json());
    };
    post("/batches", &format!("traceparent: {parent}"), 1);
    post("/v1/batches", &format!("traceparent: {parent}"), 2);
    post("/v1/batches", "traceparent: invalid", 3);
    let events = server.get("/v1/events").json()["data"].clone();
    let traces = [0, 1, 2].map(|number| events[number]["traceparent"].clone());
    assert_eq!(traces, [parent.into(), parent.into(), Value::Null]);
}

#[test]
fn accepted_batches_are_durable() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)])).link();
    let other = Store::open(&server.url(), StoreOptions::default()).unwrap();
    assert_eq!(other.find(&id(&batch(1))).unwrap().len(), 1);
}

#[test]
fn repeated_list_is_accepted_and_stored_once() {
    let server = TestServer::new();
    let list = body([batch(1)]);
    let first = server.post("/batches", &list).link();
    assert_eq!(server.post("/batches", &list).link(), first);
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 1);
}

#[test]
fn conflict_stores_nothing_of_its_list() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)])).link();
    let response = server.post("/batches", &body([batch(2), same_id_other_bytes(1)]));
    assert_eq!(response.error(), (409, 1011));
    assert!(response.message().contains(&id(&batch(1)).to_string()), "{}", response.message());
    assert!(!server.is_stored(&id(&batch(2))));
}

#[test]
fn same_batch_for_two_services_is_stored_twice() {
    let server = TestServer::new();
    server.post("/batches?service_id=a::b", &body([batch(1)])).link();
    server.post("/batches?service_id=a::c", &body([batch(1)])).link();
    assert_eq!(server.store.find(&id(&batch(1))).unwrap().len(), 2);
}

#[test]
fn link_has_the_service_and_clients_may_append_it_again() {
    let server = TestServer::new();
    let link = server.post("/batches?service_id=abcDE-F0123%3A%3AgsAA", &body([batch(1)])).link();
    let expected = format!(
        "http://grid.test/batch_statuses?id={}&service_id=abcDE-F0123::gsAA",
        id(&batch(1))
    );
    assert_eq!(link, expected);
    let path = &link["http://grid.test".len()..];
    let appended = format!("{path}&wait=1&service_id=abcDE-F0123::gsAA");
    assert_eq!(server.get(&appended).statuses(), ["PENDING"]);
    assert!(
        server.store.find(&id(&batch(1))).unwrap()[0].service_id == service("abcDE-F0123::gsAA")
    );
}

#[test]
fn content_type_of_batches_must_be_given() {
    let server = TestServer::new();
    let list = body([batch(1)]);
    let header = "content-type: Application/Octet-Stream; x=y";
    server.client().request("POST", "/batches", &[header], &list).link();
    for given in ["application/json", "", "application/octet-stream2", "\u{fe}"] {
        let header = format!("content-type: {given}");
        let response = server.client().request("POST", "/batches", &[&header], &list);
        assert_eq!(response.error(), (400, 42), "{given}");
    }
    let send_without_type = |header: &str| {
        let mut client = server.client();
        let length = list.len();
        client.send(format!(
            "POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n{header}\r\n"
        ));
        client.send(&list);
        client.receive()
    };
    let response = send_without_type("");
    assert_eq!(response.error(), (400, 42));
    let curl = "--data-binary";
    assert!(response.message().contains(curl), "{}", response.message());
    send_without_type("GridProtocolVersion: 1\r\n").link();
}

#[test]
fn only_allowed_services_get_batches() {
    let server = TestServer::with(|builder, _| {
        builder.with_allowed_services(vec!["a::*".parse().unwrap(), "b::c".parse().unwrap()])
    });
    let list = body([batch(1)]);
    for allowed in ["a::b", "a::c", "b::c"] {
        server.post(&format!("/batches?service_id={allowed}"), &list).link();
    }
    for other in ["", "?service_id=b::d", "?service_id=xa::b"] {
        let response = server.post(&format!("/batches{other}"), &list);
        assert_eq!(response.error(), (403, 1016), "{other}");
    }
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 3);
}

#[test]
fn only_allowed_signers_hand_in_batches() {
    let list = body([batch(1)]);
    let signer = SigningKey::from_seed(7).public_key().to_string();
    for allowed in [signer.clone(), format!("{}*", &signer[..8])] {
        let server = TestServer::with(|builder, _| {
            builder.with_allowed_signers(vec![allowed.parse().unwrap()])
        });
        server.post("/batches", &list).link();
    }
    let other = SigningKey::from_seed(8).public_key().to_string();
    let server =
        TestServer::with(|builder, _| builder.with_allowed_signers(vec![other.parse().unwrap()]));
    let response = server.post("/batches", &list);
    assert_eq!(response.error(), (403, 1017));
    assert!(response.message().contains(&signer), "{}", response.message());
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 0);
}

#[test]
fn invalid_lists_have_the_codes_of_sawtooth() {
    let server = TestServer::new();
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
        assert_eq!(server.post("/batches", &list).error(), (400, code));
    }
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 0);
}

#[test]
fn service_rule_refuses_services_with_its_reason() {
    let server = TestServer::with(|builder, _| {
        builder.with_service_rule(|service| match service.as_str() {
            "a::b" => Ok(()),
            _ => Err("only a::b".to_owned()),
        })
    });
    let list = body([batch(1)]);
    server.post("/batches?service_id=a::b", &list).link();
    for path in ["/batches", "/batches?service_id=a::c"] {
        let response = server.post(path, &list);
        assert_eq!(response.error(), (400, 1008));
        let message = response.message();
        assert!(message.contains("only a::b"), "{message}");
        assert_eq!(message.contains("service_id is missing"), path == "/batches", "{message}");
    }
}

#[test]
fn invalid_service_ids_are_refused() {
    let server = TestServer::new();
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
        assert_eq!(server.post(path, &body([batch(1)])).error(), (400, code), "{path}");
    }
}

#[test]
fn list_has_at_most_a_thousand_batches() {
    let server = TestServer::new();
    let list = BatchList { batches: (0..1_001).map(batch).collect() };
    assert_eq!(server.post("/batches", &list.encode_to_vec()).error(), (413, 1004));
    let list = body(list.batches.into_iter().take(1_000));
    let link = server.post("/batches", &list).link();
    assert_eq!(link.matches(',').count(), 999);
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 1_000);
}

#[test]
fn list_limits_are_configurable() {
    let limits = Limits { transactions: 1, ..Limits::default() };
    let format = Arc::new(TransactFormat { limits });
    let server = TestServer::with(|builder, _| builder.with_format(format));
    assert_eq!(server.post("/batches", &body([batch(1), batch(2)])).error(), (413, 1004));
    server.post("/batches", &body([batch(1)])).link();
}

/// A format whose payload is opaque: each line of the body is a batch.
struct Lines;

impl BatchFormat for Lines {
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
        let batch = |line: &[u8]| NewBatch {
            service_id: service_id.clone(),
            batch_id: str::from_utf8(line).unwrap().parse().unwrap(),
            signer: None,
            transaction_ids: Vec::new(),
            declared_access: None,
            serialized_batch: line.to_vec(),
            label: None,
            client: None,
            declared_new: false,
            deadline: Some(Deadline::Height(7)),
            trace: None,
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        if lines.clone().any(<[u8]>::is_empty) {
            Err(FormatError::Invalid("a line is empty".to_owned()))
        } else {
            Ok(lines.map(batch).collect())
        }
    }
}

#[test]
fn batches_of_another_format_are_stored() {
    let server = TestServer::with(|builder, _| builder.with_format(Arc::new(Lines)));
    server.post("/batches?label=own", b"one\nsecond.batch-2").link();
    let second: ItemId = "second.batch-2".parse().unwrap();
    let bytes = server.store.serialized_batch(&service("global"), &second).unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"second.batch-2"[..]));
    let details = server.get(&format!("/v1/batches/{second}")).json();
    assert_eq!(details["deadline"], json!({ "time": null, "height": 7 }));
    let explained = server.get(&format!("/v1/batches/{second}/explain")).json();
    let text = explained["text"].as_str().unwrap();
    assert!(text.contains("Its ledger cannot apply it after height 7."), "{text}");
    assert_eq!(server.post("/batches", b"third\n").error(), (400, 30));
}

#[test]
fn list_of_signers_refuses_batches_without_a_signer() {
    let format = |builder: ApiBuilder| builder.with_format(Arc::new(Lines));
    let signers = vec!["02*".parse().unwrap()];
    let server = TestServer::with(|builder, _| format(builder).with_allowed_signers(signers));
    let refused = server.post("/batches", b"one");
    assert_eq!(refused.error(), (403, 1017));
    assert!(refused.message().contains("without a signer"), "{}", refused.message());
}

#[test]
fn callback_runs_before_the_response() {
    let (sender, notified) = mpsc::channel();
    let server = TestServer::with(|builder, _| {
        builder.with_stored_callback(move |services| sender.send(services.to_vec()).unwrap())
    });
    let list = body([batch(1), batch(2)]);
    server.post("/batches?service_id=a::b", &list).link();
    assert_eq!(notified.try_recv().unwrap(), [service("a::b")]);
    server.post("/batches?service_id=a::b", &list).link();
    assert!(notified.try_recv().is_err(), "no batch is new");
}

#[test]
fn concurrent_requests_share_commits() {
    let blocked = BlockedWriter::new(ApiOptions { write_queue_limit: 30, ..ApiOptions::default() });
    let mut clients = blocked.fill_queue();
    let BlockedWriter { mut first, release, commits, .. } = blocked;
    drop(release);
    first.receive().link();
    let accepted =
        clients.iter_mut().filter_map(|client| (client.receive().status == 202).then_some(()));
    let accepted = accepted.count();
    let commits = commits.try_iter().count();
    assert!(accepted >= 30 && commits <= accepted / 2, "{accepted} requests, {commits} commits");
}

#[test]
fn concurrent_clients_find_their_batches_stored() {
    let server = TestServer::new();
    let send = &|client: u64| {
        let mut connection = server.client();
        for number in 0..20 {
            let batch = batch(client * 100 + number);
            connection.request("POST", "/batches", &[], &body([batch.clone()])).link();
            assert!(server.is_stored(&id(&batch)));
        }
    };
    thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || send(client));
        }
    });
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 160);
}

/// The ledger has the services of `known`, does not have `a::b`, and has not said anything about others. The
/// history of `a::d` is not known.
struct SomeServices;

impl Ledger for SomeServices {
    grid_batch_core::unused_ledger_methods!();

    fn has_service<'a>(
        &'a self,
        service_id: &'a ServiceId,
    ) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>> {
        Box::pin(ready(match service_id.as_str() {
            "a::b" => Err("no node has it".to_owned()),
            service => Ok(service.starts_with("known::")),
        }))
    }

    fn check_history<'a>(
        &'a self,
        service_id: &'a ServiceId,
        is_new: bool,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        let is_known = service_id.as_str() != "a::d" || is_new;
        Box::pin(ready(if is_known { Ok(()) } else { Err("of the test".to_owned()) }))
    }

    fn check_key<'a>(
        &'a self,
        _: &'a ServiceId,
        _: LedgerKey<'a>,
        _: AccessScope,
    ) -> Pin<Box<dyn Future<Output = Result<(), KeyRefusal>> + Send + 'a>> {
        Box::pin(ready(Ok(())))
    }
}

#[test]
fn batch_of_an_unknown_service_is_not_stored() {
    let server = TestServer::with(|builder, _| builder.with_ledger(Arc::new(SomeServices)));
    let response = server.post("/batches?service_id=a::b", &body([batch(1)]));
    assert_eq!(response.error(), (404, 1015));
    let message = response.message();
    assert!(message.contains("a::b") && message.contains("no node has it"), "{message}");
    assert!(!server.is_stored(&id(&batch(1))));
    server.post("/batches?service_id=a::c", &body([batch(1)])).link();
}

#[test]
fn confirmed_services_do_not_count_as_new() {
    let intake_limits = IntakeLimits { new_services: 1, ..IntakeLimits::default() };
    let options = StoreOptions { intake_limits, ..StoreOptions::default() };
    let server = TestServer::with_store_options(options, |builder, _| {
        builder.with_ledger(Arc::new(SomeServices))
    });
    let post =
        |service: &str| server.post(&format!("/batches?service_id={service}"), &body([batch(1)]));
    for service in ["known::1", "known::2", "made::up"] {
        assert_eq!(post(service).status, 202, "{service}");
    }
    assert_eq!(post("made::up2").error(), (429, 1019));
    assert_eq!(post("known::3").status, 202);
}

#[test]
fn unproved_batch_is_refused_unless_its_client_says_new() {
    let server = TestServer::with(|builder, _| builder.with_ledger(Arc::new(SomeServices)));
    let post =
        |query: &str| server.post(&format!("/batches?service_id=a::d{query}"), &body([batch(1)]));
    for query in ["", "&new=false"] {
        assert_eq!(post(query).error(), (409, 1033));
        assert!(post(query).message().contains("of the test"));
    }
    assert_eq!(post("&new=yes").error(), (400, 1023));
    assert!(!server.is_stored(&id(&batch(1))));
    post("&new=true").link();
    assert!(server.is_stored(&id(&batch(1))));
}
