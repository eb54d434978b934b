//! The requests of clients of the ledgers, at a ledger and at a server in front of one: what they get must
//! have the same form. The results are the tables of docs/drop-in.md.

mod form;
mod genuine_clients;
mod requests;
mod sockets;
mod table;

use std::net::SocketAddr;

use grid_batch_ledger_sim::StateOperation;
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, CylinderToken, Message, SigningKey, TransactionBuilder,
};
use grid_batch_test_support::http::{Response, request, send};

use crate::harness::BatchHarness;
use form::Difference;
use requests::{Body, Recorded, SAWTOOTH, SCABBARD};

/// An address of state.
const ADDRESS: &str = "1cf12600000000000000000000000000000000000000000000000000000000000000a7";

/// What the requests are about.
struct Subject {
    committed: Batch,
    invalid: Batch,
    token: CylinderToken,
    /// Circuit and service of a path.
    service: String,
}

impl Subject {
    fn new(service_id: &str) -> Self {
        let key = SigningKey::from_seed(7);
        let sign = |transaction: TransactionBuilder| {
            let transaction = transaction.sign(&key, &key.public_key());
            BatchBuilder::new().transaction(transaction).sign(&key)
        };
        let operation = StateOperation::Set { address: ADDRESS.to_owned(), number: 7 };
        let written = StateOperation::transaction(&[operation]);
        let failing = StateOperation::transaction(&[StateOperation::Fail]);
        Self {
            committed: sign(written.inputs([ADDRESS]).outputs([ADDRESS])),
            invalid: sign(failing.nonce("2")),
            token: CylinderToken::new(&key),
            service: service_id.replace("::", "/"),
        }
    }

    /// Replaces the names of what the requests are about.
    fn fill(&self, text: &str) -> String {
        [
            ("{committed}", &*self.committed.header_signature),
            ("{invalid}", &self.invalid.header_signature),
            ("{transaction}", &self.committed.transactions[0].header_signature),
            ("{unknown}", &"b".repeat(128)),
            ("{address}", ADDRESS),
            ("{no-address}", &ADDRESS.replace('a', "b")),
            ("{service}", &self.service),
            ("{service-id}", &self.service.replace('/', "::")),
            ("{token}", self.token.as_str()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn send(&self, address: SocketAddr, recorded: &Recorded) -> Response {
        let list = |batch: &Batch| BatchList { batches: vec![batch.clone()] }.encode_to_vec();
        let body = match recorded.body {
            Body::None => Vec::new(),
            Body::Committed => list(&self.committed),
            Body::Invalid => list(&self.invalid),
            Body::Text(text) => self.fill(text).into_bytes(),
        };
        let headers: Vec<String> = recorded.headers.iter().map(|it| self.fill(it)).collect();
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let path = self.fill(recorded.path);
        send(address, &request(recorded.method, &path, &headers, &body)).unwrap()
    }
}

/// Sends the requests to both, in order, and returns the rows of the table.
fn compare(
    [ledger, server]: [&BatchHarness; 2],
    requests: &[Recorded],
    service_id: &str,
) -> Vec<table::Row> {
    let running = server.serve_with(&[("--access-mode", "")]);
    let subject = Subject::new(service_id);
    let rows = requests
        .iter()
        .map(|recorded| {
            let theirs = subject.send(ledger.ledger.address(), recorded);
            let ours = subject.send(running.address, recorded);
            let difference = Difference::between(&theirs, &ours);
            table::Row::new(recorded, &theirs, &ours, difference)
        })
        .collect();
    running.stop();
    rows
}

fn check(rows: &[table::Row], section: &str) {
    let unlike: Vec<_> = rows.iter().filter(|row| !row.is_as_expected()).collect();
    assert!(unlike.is_empty(), "{unlike:#?}");
    table::check(section, rows);
}

#[test]
fn clients_of_sawtooth_get_what_a_ledger_says() {
    let harnesses = [BatchHarness::sawtooth(), BatchHarness::sawtooth()];
    check(&compare(harnesses.each_ref(), SAWTOOTH, "global"), "sawtooth");
}

#[test]
fn clients_of_scabbard_get_what_a_node_says() {
    let harnesses = [BatchHarness::scabbard(1), BatchHarness::scabbard(1)];
    let service_id = harnesses[0].services[0].clone();
    check(&compare(harnesses.each_ref(), SCABBARD, &service_id), "scabbard");
}
