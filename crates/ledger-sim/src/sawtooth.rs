//! Sawtooth's REST API: paths, and checks in their order.

mod chain;
mod execution_order;
mod feed;
mod json;
mod link;
mod lists;
mod queue_limit;
mod responses;
mod shared_chain;

use std::{io, time::Duration};

use bytes::Bytes;
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_protocol::{BatchList, Message};
use hyper::{Method, StatusCode, header::RETRY_AFTER};
use serde::Serialize;

pub(crate) use self::shared_chain::SharedChain;
use self::{
    chain::{BatchStatus, Chain},
    json::{BatchData, BlockList, LinkOnly, Statuses, TransactionData, WithLink},
    responses::{
        BATCH_NOT_FOUND, DISCONNECTED, INVALID_ID, NO_BATCHES, NO_ID_QUERY, NO_JSON_IDS,
        QUEUE_FULL, STATUSES_TYPE, SUBMISSION_TYPE, SUBMITTED_INVALID, TIMED_OUT,
        TRANSACTION_NOT_FOUND, UNDECODABLE, UNKNOWN_ERROR, json, line_too_long, method_not_allowed,
        no_upgrade, not_found, server_error, too_long,
    },
};
use crate::{
    Fault, Record, RequestKind, StateValues,
    common_state::{CommonState, verify},
    event_socket::handshake,
    ledger::SimulatedLedger,
    request::{RequestBody, SimRequest},
    response::{SimReply, SimResponse},
};

/// The REST API's default timeout of a request to the validator.
const REST_TIMEOUT: Duration = Duration::from_secs(300);
/// The duration of a `wait` that is not a number.
const DEFAULT_WAIT: Duration = Duration::from_secs(285);
/// How long the validator waits with `wait=0`.
const WAIT_OF_ZERO: Duration = Duration::from_secs(300);
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
const MAX_LINE_BYTES: usize = 8190;
/// The number of the first block, as a list of blocks names it.
const FIRST_BLOCK: &str = "0x0000000000000000";
/// The validator's threads for clients, including waiting ones.
const CLIENT_THREADS: usize = 5;

/// A validator with its REST API.
#[derive(Debug)]
pub(crate) struct SimulatedSawtooth {
    chain: Chain,
    /// The id of the first block.
    genesis: ItemId,
}

impl SimulatedSawtooth {
    /// Restores the committed batches of a record.
    pub(crate) fn new(
        record: &Record,
        genesis: ItemId,
        chain: &SharedChain,
        lag: Duration,
    ) -> Self {
        Self { chain: Chain::from_record(record, chain, lag), genesis }
    }

    fn submit(
        &mut self,
        request: &SimRequest,
        common: &mut CommonState,
        now: Timestamp,
    ) -> Result<SimResponse, SimResponse> {
        let body = submitted_body(request)?;
        let list = BatchList::decode(body.clone()).map_err(|_| UNDECODABLE.response())?;
        common.count_received(&list);
        if common.faults.occurs(Fault::Busy) || self.chain.is_full(&common.settings) {
            return Err(QUEUE_FULL.response());
        }
        if let Some(pause) = common.retry_after() {
            return Err(QUEUE_FULL.response().with_value(RETRY_AFTER, pause));
        }
        if common.faults.occurs(Fault::Rejected) {
            return Err(SUBMITTED_INVALID.response());
        }
        for batch in verify(&list).map_err(|_| SUBMITTED_INVALID.response())? {
            self.chain.accept(batch, &common.settings, now);
        }
        let ids: Vec<_> = list.batches.iter().map(|batch| &*batch.header_signature).collect();
        let link = link::build(request, "/batch_statuses", Some(&ids.join(",")));
        Ok(json(StatusCode::ACCEPTED, &LinkOnly { link }))
    }

    fn statuses(&mut self, request: &SimRequest, ids: &[ItemId], now: Timestamp) -> SimReply {
        let statuses: Vec<_> = ids.iter().map(|id| (*id, self.chain.status(id, now))).collect();
        if statuses.iter().any(|(_, status)| *status == BatchStatus::Pending)
            && let Some(wait) = wait(request)
        {
            let waited = now.since(request.received_at);
            if waited >= REST_TIMEOUT && wait > REST_TIMEOUT {
                return TIMED_OUT.response().into();
            }
            if waited < wait {
                return SimReply::Wait;
            }
        }
        let link =
            (request.method == Method::GET).then(|| link::build(request, &request.path, None));
        json(StatusCode::OK, &Statuses::new(&statuses, link)).into()
    }

    /// A list of blocks. From the first one on, it has only that one.
    fn blocks(&self, request: &SimRequest) -> Result<SimResponse, SimResponse> {
        match request.query.get("start") {
            Some(FIRST_BLOCK) => {
                let link = link::build(request, &request.path, None);
                Ok(json(StatusCode::OK, &BlockList::of_first(self.genesis, link)))
            }
            _ => self.page(request, self.block_list()),
        }
    }

    fn batch(&self, request: &SimRequest, id: &str) -> Result<SimResponse, SimResponse> {
        let id = parse_id(id)?;
        let bytes = self.chain.committed(&id).ok_or_else(|| BATCH_NOT_FOUND.response())?;
        let data = BatchData::decode(bytes).map_err(|_| UNKNOWN_ERROR.response())?;
        let link = link::build(request, &request.path, None);
        Ok(json(StatusCode::OK, &WithLink { data, link }))
    }

    fn transaction(&self, request: &SimRequest, id: &str) -> Result<SimResponse, SimResponse> {
        let id = parse_id(id)?;
        let not_found = || TRANSACTION_NOT_FOUND.response();
        let bytes = self.chain.batch_of_transaction(&id).ok_or_else(not_found)?;
        let data = TransactionData::find(bytes, &id).map_err(|_| UNKNOWN_ERROR.response())?;
        let link = link::build(request, &request.path, None);
        Ok(json(StatusCode::OK, &WithLink { data: data.ok_or_else(not_found)?, link }))
    }
}

impl SimulatedLedger for SimulatedSawtooth {
    fn kind_of(&self, request: &SimRequest) -> RequestKind {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/batches") => RequestKind::Submission,
            ("GET" | "POST", "/batch_statuses") => RequestKind::Statuses,
            _ => RequestKind::Other,
        }
    }

    fn respond(
        &mut self,
        request: &SimRequest,
        common: &mut CommonState,
        now: Timestamp,
    ) -> SimReply {
        if request.target_length > MAX_LINE_BYTES {
            return line_too_long(MAX_LINE_BYTES, request.target_length).into();
        }
        match (request.method.as_str(), &request.segments()[..]) {
            ("POST", ["batches"]) => response_or_error(self.submit(request, common, now)).into(),
            ("GET" | "POST", ["batch_statuses"]) => match requested_ids(request) {
                Ok(ids) => self.statuses(request, &ids, now),
                Err(response) => response.into(),
            },
            ("GET", ["blocks"]) => response_or_error(self.blocks(request)).into(),
            ("GET", ["batches"]) => response_or_error(self.batches(request)).into(),
            ("GET", ["transactions"]) => response_or_error(self.transactions(request)).into(),
            ("GET", ["blocks", id]) => response_or_error(self.block(request, id)).into(),
            ("GET", ["state"]) => response_or_error(self.state(request)).into(),
            ("GET", ["state", address]) => {
                response_or_error(self.state_at(request, address)).into()
            }
            ("GET", ["peers"]) => self.envelope(request, self.chain.peers().into()).into(),
            ("GET", ["status"]) => self.envelope(request, lists::status()).into(),
            ("GET", ["batches", id]) => response_or_error(self.batch(request, id)).into(),
            ("GET", ["transactions", id]) => {
                response_or_error(self.transaction(request, id)).into()
            }
            ("GET", ["subscriptions"]) => handshake(request, feed::subscribe(&common.events))
                .unwrap_or_else(no_upgrade)
                .into(),
            (_, ["batches"]) => method_not_allowed("GET,HEAD,POST").into(),
            (_, ["batch_statuses"]) => method_not_allowed("GET,HEAD,POST").into(),
            (
                _,
                ["batches" | "blocks" | "state" | "transactions", _]
                | ["blocks" | "peers" | "state" | "status" | "subscriptions" | "transactions"],
            ) => method_not_allowed("GET,HEAD").into(),
            _ => not_found().into(),
        }
    }

    fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        self.chain.advance(common, now)
    }

    fn is_idle(&self) -> bool {
        self.chain.is_idle()
    }

    fn state_values(&self) -> StateValues {
        self.chain.values().clone()
    }

    fn most_waiting(&self) -> usize {
        self.chain.most_waiting()
    }

    fn restart(&mut self, _now: Timestamp) {
        self.chain.restart();
    }

    fn internal_error(&self) -> SimResponse {
        UNKNOWN_ERROR.response()
    }

    fn timed_out(&self) -> Option<SimResponse> {
        Some(TIMED_OUT.response())
    }

    fn disconnected(&self) -> SimResponse {
        DISCONNECTED.response()
    }

    fn statuses_error(&self) -> SimResponse {
        TIMED_OUT.response()
    }

    fn wrong_typed_statuses(&self) -> &'static str {
        r#"{"data": {"id": 7, "status": ["COMMITTED"]}}"#
    }

    fn max_body_bytes(&self) -> usize {
        MAX_BODY_BYTES
    }

    fn workers(&self) -> usize {
        CLIENT_THREADS
    }

    fn has_title_case_headers(&self) -> bool {
        true
    }
}

fn response_or_error(response: Result<SimResponse, SimResponse>) -> SimResponse {
    response.unwrap_or_else(|error| error)
}

fn submitted_body(request: &SimRequest) -> Result<&Bytes, SimResponse> {
    match request.header("content-type") {
        None => return Err(server_error()),
        Some("application/octet-stream") => {}
        Some(_) => return Err(SUBMISSION_TYPE.response()),
    }
    match &request.body {
        RequestBody::TooLong { read } => Err(too_long(MAX_BODY_BYTES, *read)),
        RequestBody::Complete(body) if body.is_empty() => Err(NO_BATCHES.response()),
        RequestBody::Complete(body) => Ok(body),
    }
}

fn requested_ids(request: &SimRequest) -> Result<Vec<ItemId>, SimResponse> {
    if request.method == Method::POST {
        posted_ids(request)
    } else {
        let ids = request.query.get("id").ok_or_else(|| NO_ID_QUERY.response())?;
        ids.split(',').map(parse_id).collect()
    }
}

fn posted_ids(request: &SimRequest) -> Result<Vec<ItemId>, SimResponse> {
    match request.header("content-type") {
        None => return Err(server_error()),
        Some("application/json") => {}
        Some(_) => return Err(STATUSES_TYPE.response()),
    }
    let body = match &request.body {
        RequestBody::TooLong { read } => return Err(too_long(MAX_BODY_BYTES, *read)),
        RequestBody::Complete(body) => body,
    };
    let value: serde_json::Value = serde_json::from_slice(body).map_err(|_| server_error())?;
    match serde_json::from_value::<Vec<String>>(value) {
        Ok(ids) if !ids.is_empty() => ids.iter().map(|id| parse_id(id)).collect(),
        _ => Err(NO_JSON_IDS.response()),
    }
}

fn parse_id(id: &str) -> Result<ItemId, SimResponse> {
    let parsed = id.parse::<grid_batch_protocol::HeaderId>();
    parsed.map(Into::into).map_err(|_| INVALID_ID.response_with_value(id))
}

/// How long the client waits for a change, if it does.
fn wait(request: &SimRequest) -> Option<Duration> {
    let wait = request.query.get("wait")?;
    if wait.eq_ignore_ascii_case("false") {
        return None;
    }
    Some(match wait.parse::<u32>() {
        Ok(0) => WAIT_OF_ZERO,
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => DEFAULT_WAIT,
    })
}

/// JSON with an indent of 2, as Python's `json.dumps` makes it.
fn to_pretty_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}
