//! Sawtooth's REST API: paths, checks and their order.

mod answers;
mod chain;
mod feed;
mod json;
mod link;
mod queue_limit;

use std::{io, time::Duration};

use bytes::Bytes;
use grid_batch_core::{HeaderId, Timestamp};
use grid_batch_protocol::{BatchList, Message};
use hyper::{Method, StatusCode};
use serde::Serialize;

use self::{
    answers::{
        BATCH_NOT_FOUND, INVALID_ID, NO_BATCHES, NO_ID_QUERY, NO_JSON_IDS, QUEUE_FULL,
        STATUSES_TYPE, SUBMISSION_TYPE, SUBMITTED_INVALID, TIMED_OUT, UNDECODABLE, UNKNOWN_ERROR,
        json, line_too_long, method_not_allowed, no_upgrade, not_found, server_error, too_long,
    },
    chain::{Chain, Status},
    json::{BatchData, LinkOnly, Statuses, WithLink},
};
use crate::{
    Fault, Record,
    answer::{Answer, Reply},
    ask::{Ask, Body},
    common::{Common, verify},
    ledger::{Ledger, Question},
    socket::handshake,
};

/// How long the REST API waits for the validator, unless it is told otherwise.
const REST_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a client waits who does not say how long.
const USUAL_WAIT: Duration = Duration::from_secs(285);
/// How long the validator waits when it is told 0.
const WAIT_OF_ZERO: Duration = Duration::from_secs(300);
const LONGEST_BODY: usize = 10 * 1024 * 1024;
const LONGEST_LINE: usize = 8190;
/// The validator's threads for clients, waiting ones included.
const CLIENT_THREADS: usize = 5;

/// A validator behind its REST API.
#[derive(Debug)]
pub(crate) struct Sawtooth {
    chain: Chain,
}

impl Sawtooth {
    /// Goes on from what was committed before.
    pub(crate) fn new(record: &Record) -> Self {
        Self { chain: Chain::from_record(record) }
    }

    fn submit(&mut self, ask: &Ask, common: &mut Common, now: Timestamp) -> Result<Answer, Answer> {
        let body = submitted_body(ask)?;
        let list = BatchList::decode(body.clone()).map_err(|_| UNDECODABLE.answer())?;
        common.note_received(&list);
        if common.faults.strikes(Fault::Busy) || self.chain.is_full(&common.settings) {
            return Err(QUEUE_FULL.answer());
        }
        for batch in verify(&list).map_err(|_| SUBMITTED_INVALID.answer())? {
            self.chain.accept(batch, &common.settings, now);
        }
        let ids: Vec<_> = list.batches.iter().map(|batch| &*batch.header_signature).collect();
        let link = link::build(ask, "/batch_statuses", Some(&ids.join(",")));
        Ok(json(StatusCode::ACCEPTED, &LinkOnly { link }))
    }

    fn statuses(&self, ask: &Ask, ids: &[HeaderId], now: Timestamp) -> Reply {
        let statuses: Vec<_> = ids.iter().map(|id| (*id, self.chain.status(id))).collect();
        if statuses.iter().any(|(_, status)| *status == Status::Pending)
            && let Some(wait) = wait(ask)
        {
            let waited = now.since(ask.arrived);
            if waited >= REST_TIMEOUT && wait > REST_TIMEOUT {
                return TIMED_OUT.answer().into();
            }
            if waited < wait {
                return Reply::Wait;
            }
        }
        let link = (ask.method == Method::GET).then(|| link::build(ask, &ask.path, None));
        json(StatusCode::OK, &Statuses::new(&statuses, link)).into()
    }

    fn batch(&self, ask: &Ask, id: &str) -> Result<Answer, Answer> {
        let id: HeaderId = id.parse().map_err(|_| INVALID_ID.about(id))?;
        let bytes = self.chain.committed(&id).ok_or_else(|| BATCH_NOT_FOUND.answer())?;
        let data = BatchData::decode(bytes).map_err(|_| UNKNOWN_ERROR.answer())?;
        let link = link::build(ask, &ask.path, None);
        Ok(json(StatusCode::OK, &WithLink { data, link }))
    }
}

impl Ledger for Sawtooth {
    fn question(&self, ask: &Ask) -> Question {
        match (ask.method.as_str(), ask.path.as_str()) {
            ("POST", "/batches") => Question::Submission,
            ("GET" | "POST", "/batch_statuses") => Question::Statuses,
            _ => Question::Other,
        }
    }

    fn respond(&mut self, ask: &Ask, common: &mut Common, now: Timestamp) -> Reply {
        if ask.target_length > LONGEST_LINE {
            return line_too_long(LONGEST_LINE, ask.target_length).into();
        }
        match (ask.method.as_str(), &ask.segments()[..]) {
            ("POST", ["batches"]) => either(self.submit(ask, common, now)).into(),
            ("GET" | "POST", ["batch_statuses"]) => match asked_ids(ask) {
                Ok(ids) => self.statuses(ask, &ids, now),
                Err(answer) => answer.into(),
            },
            ("GET", ["batches", id]) => either(self.batch(ask, id)).into(),
            ("GET", ["subscriptions"]) => {
                handshake(ask, feed::subscribe(&common.events)).unwrap_or_else(no_upgrade).into()
            }
            (_, ["batches"]) => method_not_allowed("POST").into(),
            (_, ["batch_statuses"]) => method_not_allowed("GET,HEAD,POST").into(),
            (_, ["batches", _] | ["subscriptions"]) => method_not_allowed("GET,HEAD").into(),
            _ => not_found().into(),
        }
    }

    fn advance(&mut self, common: &mut Common, now: Timestamp) -> io::Result<()> {
        self.chain.advance(common, now)
    }

    fn is_idle(&self) -> bool {
        self.chain.is_idle()
    }

    fn forget(&mut self, _now: Timestamp) {
        self.chain.forget();
    }

    fn broken(&self) -> Answer {
        UNKNOWN_ERROR.answer()
    }

    fn timed_out(&self) -> Option<Answer> {
        Some(TIMED_OUT.answer())
    }

    fn unavailable(&self) -> Answer {
        TIMED_OUT.answer()
    }

    fn wrong_typed(&self) -> &'static str {
        r#"{"data": {"id": 7, "status": ["COMMITTED"]}}"#
    }

    fn body_limit(&self) -> usize {
        LONGEST_BODY
    }

    fn workers(&self) -> usize {
        CLIENT_THREADS
    }

    fn has_capital_headers(&self) -> bool {
        true
    }
}

fn either(answer: Result<Answer, Answer>) -> Answer {
    answer.unwrap_or_else(|error| error)
}

fn submitted_body(ask: &Ask) -> Result<&Bytes, Answer> {
    match ask.header("content-type") {
        None => return Err(server_error()),
        Some("application/octet-stream") => {}
        Some(_) => return Err(SUBMISSION_TYPE.answer()),
    }
    match &ask.body {
        Body::TooLong { read } => Err(too_long(LONGEST_BODY, *read)),
        Body::Whole(body) if body.is_empty() => Err(NO_BATCHES.answer()),
        Body::Whole(body) => Ok(body),
    }
}

fn asked_ids(ask: &Ask) -> Result<Vec<HeaderId>, Answer> {
    if ask.method == Method::POST {
        posted_ids(ask)
    } else {
        let ids = ask.query.get("id").ok_or_else(|| NO_ID_QUERY.answer())?;
        ids.split(',').map(parse_id).collect()
    }
}

fn posted_ids(ask: &Ask) -> Result<Vec<HeaderId>, Answer> {
    match ask.header("content-type") {
        None => return Err(server_error()),
        Some("application/json") => {}
        Some(_) => return Err(STATUSES_TYPE.answer()),
    }
    let body = match &ask.body {
        Body::TooLong { read } => return Err(too_long(LONGEST_BODY, *read)),
        Body::Whole(body) => body,
    };
    let value: serde_json::Value = serde_json::from_slice(body).map_err(|_| server_error())?;
    match serde_json::from_value::<Vec<String>>(value) {
        Ok(ids) if !ids.is_empty() => ids.iter().map(|id| parse_id(id)).collect(),
        _ => Err(NO_JSON_IDS.answer()),
    }
}

fn parse_id(id: &str) -> Result<HeaderId, Answer> {
    id.parse().map_err(|_| INVALID_ID.about(id))
}

/// How long the client waits, if it does.
fn wait(ask: &Ask) -> Option<Duration> {
    let wait = ask.query.get("wait")?;
    if wait.eq_ignore_ascii_case("false") {
        return None;
    }
    Some(match wait.parse::<u32>() {
        Ok(0) => WAIT_OF_ZERO,
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => USUAL_WAIT,
    })
}

/// JSON as Python prints it with an indent of 2.
fn print(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}
