//! The responses of both kinds of ledger, in as few bytes as the server accepts.

use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{
    http::{Request, write_json, write_upgrade},
    state::{State, Status},
};

/// The first block of the simulated Sawtooth ledger, and the state root of every Scabbard service.
const SOME_ID: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\
                       00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OK: &str = "200 OK";
const ACCEPTED: &str = "202 Accepted";
const NOT_FOUND: &str = "404 Not Found";
const BAD_REQUEST: &str = "400 Bad Request";

/// What a connection becomes after a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Request,
    /// A websocket for the events of this service, or of all.
    Events {
        service: String,
        last_seen: Option<String>,
    },
}

/// Opens the websocket, if the request asks for one.
pub(super) fn open_websocket(request: &Request<'_>, service: &str, output: &mut Vec<u8>) -> Next {
    let Some(key) = request.websocket_key else {
        write_json(output, BAD_REQUEST, "{}");
        return Next::Request;
    };
    write_upgrade(output, &derive_accept_key(key.as_bytes()));
    let last_seen = request.parameter("last_seen_event").map(str::to_owned);
    Next::Events { service: service.to_owned(), last_seen }
}

/// The ledger does not take a batch now. The body is Sawtooth's; Scabbard has none.
pub(super) fn busy(output: &mut Vec<u8>) {
    let body = r#"{"error":{"code":31,"message":"","title":"Unable to Accept Batches"}}"#;
    write_json(output, "429 Too Many Requests", body);
}

pub(super) fn scabbard(state: &State, endpoint: &str, request: &Request<'_>, output: &mut Vec<u8>) {
    match endpoint {
        "batches" => write_json(output, ACCEPTED, r#"{"link":"/"}"#),
        "batch_statuses" => {
            let ids = request.parameter("ids").unwrap_or_default().split(',');
            let statuses = ids.map(|id| scabbard_status(id, &state.status(id)));
            let body = format!("[{}]", statuses.collect::<Vec<_>>().join(","));
            write_json(output, OK, &body);
        }
        "state_root" => write_json(output, OK, &format!("\"{}\"", &SOME_ID[..64])),
        _ => write_json(output, NOT_FOUND, r#"{"code":"404","message":"endpoint not found"}"#),
    }
}

fn scabbard_status(id: &str, status: &Status<'_>) -> String {
    let (kind, transactions) = match status {
        Status::Unknown => ("Unknown", String::new()),
        Status::Pending => ("Pending", String::new()),
        Status::Committed(transactions) => {
            let ids = transactions.iter().map(|id| format!(r#"{{"transaction_id":"{id}"}}"#));
            ("Committed", ids.collect::<Vec<_>>().join(","))
        }
    };
    format!(
        r#"{{"id":"{id}","status":{{"statusType":"{kind}","message":[{transactions}]}},"timestamp":{{"secs_since_epoch":1,"nanos_since_epoch":2}}}}"#
    )
}

pub(super) fn scabbard_event(transaction: &str) -> String {
    let key = &transaction[..70];
    format!(r#"{{"id":"{transaction}","state_changes":[{{"Set":{{"key":"{key}","value":[1]}}}}]}}"#)
}

pub(super) fn sawtooth(state: &State, request: &Request<'_>, output: &mut Vec<u8>) {
    match (request.is_post, request.path) {
        (true, "/batches") => write_json(output, ACCEPTED, r#"{"link":"/"}"#),
        (true, "/batch_statuses") => {
            // A JSON list of ids: what is between the quotes.
            let ids = str::from_utf8(request.body).unwrap_or_default().split('"');
            sawtooth_statuses(state, ids.skip(1).step_by(2), output);
        }
        (false, "/batch_statuses") => {
            let ids = request.parameter("id").unwrap_or_default();
            sawtooth_statuses(state, ids.split(','), output);
        }
        (false, "/blocks") => {
            let header = r#"{"batch_ids":[],"block_num":"0","consensus":"R2VuZXNpcw==","previous_block_id":"0000000000000000"}"#;
            let block =
                format!(r#"{{"batches":[],"header":{header},"header_signature":"{SOME_ID}"}}"#);
            write_json(output, OK, &format!(r#"{{"data":[{block}],"head":"{SOME_ID}"}}"#));
        }
        (false, path) if path.starts_with("/batches/") => {
            write_json(
                output,
                NOT_FOUND,
                r#"{"error":{"code":71,"message":"","title":"Batch Not Found"}}"#,
            );
        }
        (false, path) if path.starts_with("/transactions/") => {
            write_json(
                output,
                NOT_FOUND,
                r#"{"error":{"code":72,"message":"","title":"Transaction Not Found"}}"#,
            );
        }
        _ => write_json(output, NOT_FOUND, "{}"),
    }
}

fn sawtooth_statuses<'a>(state: &State, ids: impl Iterator<Item = &'a str>, output: &mut Vec<u8>) {
    let statuses = ids.map(|id| {
        let status = match state.status(id) {
            Status::Unknown => "UNKNOWN",
            Status::Pending => "PENDING",
            Status::Committed(_) => "COMMITTED",
        };
        format!(r#"{{"id":"{id}","invalid_transactions":[],"status":"{status}"}}"#)
    });
    let data = statuses.collect::<Vec<_>>().join(",");
    write_json(output, OK, &format!(r#"{{"data":[{data}]}}"#));
}

/// A block. It names no transactions.
pub(super) fn sawtooth_event(number: usize) -> String {
    let (id, previous) = (format!("{number:0128x}"), format!("{:0128x}", number.max(1) - 1));
    format!(
        r#"{{"block_id":"{id}","block_num":"{number}","previous_block_id":"{previous}","state_changes":[]}}"#
    )
}
