//! The trace of a request: at nodes, at webhooks, and as spans at a collector that the test runs.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write, copy},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batches},
    http::{request, send},
    wait::{wait_for, wait_until},
    webhook_receiver::WebhookReceiver,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value as AnyValue,
    trace::v1::Span,
};
use prost::Message;
use serde_json::{Value, json};

use crate::harness::{BatchHarness, BatchServer};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const NOT_SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b7-00";
const SECRET: &str = "secret-of-the-collector";

/// A collector that accepts spans, or refuses them while it is down.
#[derive(Clone)]
struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    is_down: bool,
    heads: Vec<String>,
    accepted: Vec<ExportTraceServiceRequest>,
    refused: Vec<ExportTraceServiceRequest>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let collector = Self { address, received: Arc::default() };
        let served = collector.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                served.answer(stream.unwrap());
            }
        });
        collector
    }

    /// A connection that ends early had no request.
    fn answer(&self, mut stream: TcpStream) {
        let Some((head, body)) = read_request(&stream) else { return };
        let spans = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        let mut received = self.received.lock().unwrap();
        received.heads.push(head);
        let status = if received.is_down {
            received.refused.push(spans);
            "503 Service Unavailable"
        } else {
            received.accepted.push(spans);
            "200 OK"
        };
        drop(received);
        let _ =
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }

    fn set_down(&self, is_down: bool) {
        self.received.lock().unwrap().is_down = is_down;
    }

    fn accepted(&self) -> Vec<Span> {
        spans_of(&self.received.lock().unwrap().accepted)
    }

    fn refused(&self) -> Vec<Span> {
        spans_of(&self.received.lock().unwrap().refused)
    }

    fn serve(&self, harness: &BatchHarness, flags: &[(&str, &str)]) -> BatchServer {
        BatchServer::start(self.configure(harness.command(flags)))
    }

    fn configure(&self, mut command: Command) -> Command {
        command
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", self.address))
            .env("OTEL_EXPORTER_OTLP_HEADERS", format!("x-api-key={SECRET}"))
            .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
        command
    }
}

fn read_request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn spans_of(requests: &[ExportTraceServiceRequest]) -> Vec<Span> {
    let resources = requests.iter().flat_map(|request| &request.resource_spans);
    let scopes = resources.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.iter().cloned()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

fn ids(spans: &[Span]) -> BTreeSet<(String, String)> {
    spans.iter().map(|span| (span.name.clone(), hex(&span.span_id))).collect()
}

fn text_of(span: &Span, name: &str) -> Option<String> {
    let value = span.attributes.iter().find(|attribute| attribute.key == name)?.value.clone()?;
    let Some(AnyValue::StringValue(text)) = value.value else { return None };
    Some(text)
}

/// Forwards connections to a node, and records what is sent to it.
struct Tunnel {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Tunnel {
    fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
        let record = Arc::clone(&sent);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, node) = (client.unwrap(), TcpStream::connect(node).unwrap());
                let (from, to) = (client.try_clone().unwrap(), node.try_clone().unwrap());
                let record = Arc::clone(&record);
                thread::spawn(move || forward(from, to, Some(&record)));
                thread::spawn(move || forward(node, client, None));
            }
        });
        Self { address, sent }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The heads of the requests that begin so.
    fn heads(&self, start: &str) -> Vec<String> {
        let sent = String::from_utf8_lossy(&self.sent.lock().unwrap()).into_owned();
        let begins = sent.match_indices(start).map(|(begin, _)| begin);
        begins.map(|begin| sent[begin..].split("\r\n\r\n").next().unwrap().to_owned()).collect()
    }
}

/// A connection that one side has closed is closed at the other.
fn forward(mut from: TcpStream, mut to: TcpStream, record: Option<&Mutex<Vec<u8>>>) {
    match record {
        None => drop(copy(&mut from, &mut to)),
        Some(record) => {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                record.lock().unwrap().extend_from_slice(&bytes[..count]);
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn post(server: &BatchServer, batch: &SignedBatch, parent: &str) {
    let trace = format!("traceparent: {parent}");
    let headers = ["content-type: application/octet-stream", &trace, "tracestate: vendor=1"];
    let body = encode_batch_list(std::slice::from_ref(batch));
    let response = send(server.address, &request("POST", "/v1/batches", &headers, &body)).unwrap();
    assert_eq!(response.status, 202, "{response:?}");
}

fn run(harness: &BatchHarness, arguments: &[&str]) -> String {
    let output = harness.run_command(arguments);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    output.stdout
}

fn first_webhook(harness: &BatchHarness) -> Value {
    let list = run(harness, &["webhooks", "list", "--json"]);
    serde_json::from_str::<Value>(&list).unwrap()["webhooks"][0].clone()
}

#[test]
fn trace_of_a_request_reaches_nodes_webhooks_and_the_collector() {
    let harness = BatchHarness::sawtooth();
    let (tunnel, collector) = (Tunnel::to(harness.ledger.address()), Collector::start());
    let receiver = WebhookReceiver::start(&[]);
    let url = tunnel.url();
    // A request about several batches has no trace.
    let flags = [
        ("--requests-options", "webhooks=private:127.0.0.1"),
        ("--ledger-urls", &url),
        ("--services-strategy", "serial"),
    ];
    let server = collector.serve(&harness, &flags);
    let webhook = json!({ "url": receiver.url(), "reason": "a test" });
    assert_eq!(server.post_json("/v1/webhooks", &webhook).status, 201);
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches[..1]);
    post(&server, &batches[1], NOT_SAMPLED);
    post(&server, &batches[2], PARENT);
    let spans = wait_for("the spans arrive", || {
        Some(collector.accepted()).filter(|spans| !spans.is_empty())
    });

    assert_eq!(names(&spans), ["batch", "queue", "submit", "confirm"]);
    let batch = &spans[0];
    assert_eq!(hex(&batch.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(text_of(batch, "grid_batch.batch_id"), Some(batches[2].batch_id.to_string()));
    assert_eq!(text_of(batch, "grid_batch.state").as_deref(), Some("committed"));
    for span in &spans {
        assert_eq!(
            (hex(&span.trace_id).as_str(), span.trace_state.as_str()),
            (TRACE_ID, "vendor=1")
        );
        assert!(span.name == "batch" || span.parent_span_id == batch.span_id, "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    }
    let received = collector.received.lock().unwrap();
    let head = received.heads[0].to_lowercase();
    assert!(head.starts_with("post /v1/traces ") && head.contains(SECRET), "{head}");
    let resource = received.accepted[0].resource_spans[0].resource.clone().unwrap();
    let attributes = format!("{:?}", resource.attributes);
    assert!(
        attributes.contains("\"grid-batch\"") && attributes.contains("\"test\""),
        "{attributes}"
    );
    drop(received);

    // The requests of the batch without a trace have none.
    let posts = tunnel.heads("POST /batches ");
    let traces = posts.iter().map(|head| (header(head, "traceparent"), header(head, "tracestate")));
    let (state, traces) = (Some("vendor=1"), BTreeSet::from_iter(traces));
    assert_eq!(traces, [(None, None), (Some(PARENT), state), (Some(NOT_SAMPLED), state)].into());
    let last = batches[2].batch_id.to_string();
    let told = wait_for("the webhook gets the end", || {
        let message = receiver.next();
        Some(message).filter(|it| it.body.contains(&last) && it.body.contains("committed"))
    });
    assert_eq!(told.traceparent.as_deref(), Some(PARENT));
    let output = server.stop_with("TERM");
    assert!(!output.stderr.contains(SECRET) && !output.stdout.contains(SECRET), "{output:?}");
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn spans_come_at_the_end_after_kills_and_an_outage() {
    let harness = BatchHarness::sawtooth();
    let collector = Collector::start();
    let flags = [("--testing-webhooks-timeout", "2s")];
    let server = collector.serve(&harness, &flags);
    let of_service = |verb: &str| run(&harness, &[verb, "global", "--reason", "a test"]);
    let batches = signed_batches(&harness.services, 2);
    // A service can be paused when it has had a batch.
    server.submit(&batches[..1]);
    harness.wait_until_all_committed(&batches[..1]);
    of_service("pause");
    post(&server, &batches[1], PARENT);
    server.process.kill();

    collector.set_down(true);
    let server = collector.serve(&harness, &flags);
    assert_eq!((collector.accepted(), collector.refused()), (Vec::new(), Vec::new()));
    of_service("resume");
    let refused = wait_for("the collector refuses the spans", || {
        Some(collector.refused()).filter(|spans| !spans.is_empty())
    });
    let (id, error) = wait_for("the failure is shown", || {
        let webhook = first_webhook(&harness);
        assert_eq!(webhook["url"], "otlp:");
        Some((webhook["id"].as_str()?.to_owned(), webhook["last_error"].as_str()?.to_owned()))
    });
    assert!(error.contains("503") && error.contains(&collector.address.to_string()), "{error}");
    server.process.wait_for_log("traces are not exported");
    server.process.kill();

    collector.set_down(false);
    let server = collector.serve(&harness, &flags);
    // The next try is seconds away; an operator need not wait for it.
    wait_until("the spans arrive", || {
        run(&harness, &["webhooks", "redeliver", &id, "--reason", "a test"]);
        !collector.accepted().is_empty()
    });
    let accepted = collector.accepted();
    assert_eq!(names(&accepted), ["batch", "queue", "submit", "confirm"]);
    assert_eq!(ids(&accepted), ids(&refused));
    assert!(accepted[0].start_time_unix_nano == accepted[1].start_time_unix_nano, "{accepted:?}");
    server.stop();
}
