//! Scabbard's REST API on a Splinter node: paths, checks and their order.

mod access;
mod answers;
mod feed;
mod history;
mod json;
mod service;

use std::{collections::HashSet, io, time::Duration};

use grid_batch_core::{HeaderId, ScopeId, ServiceScopeId, Timestamp};
use grid_batch_protocol::{BatchList, Message};
use hyper::{Method, StatusCode};

use self::{
    answers::{
        INVALID_BODY, NO_IDS, NO_LAST_EVENT, NO_VALID_BATCHES, SERVER_ERROR, json,
        no_such_endpoint, no_such_service,
    },
    json::{Accepted, StatusData},
    service::Service,
};
use crate::{
    Fault, Record,
    answer::{Answer, Reply},
    ask::{Ask, Body},
    common::{Common, verify},
    ledger::{Ledger, Question},
    socket::handshake,
};

pub(crate) use access::Keys;

/// How long a client waits whose `wait` is not a number.
const USUAL_WAIT: Duration = Duration::from_secs(300);
/// The node's threads for requests, waiting ones included: one for each core of a small machine.
const WORKERS: usize = 2;

/// A Splinter node with its Scabbard services.
#[derive(Debug)]
pub(crate) struct Scabbard {
    services: Vec<Service>,
    keys: Keys,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Batches,
    Statuses,
    Events,
}

/// A path, taken apart.
struct Route<'a> {
    circuit: &'a str,
    service: &'a str,
    endpoint: Endpoint,
}

impl Scabbard {
    /// Remembers nothing of what was before but what was committed.
    pub(crate) fn new(services: Vec<ServiceScopeId>, keys: Keys, record: &Record) -> Self {
        let services = services.into_iter().map(|id| Service::from_record(id, record)).collect();
        Self { services, keys }
    }

    fn answer(&mut self, ask: &Ask, common: &mut Common, now: Timestamp) -> Result<Reply, Answer> {
        let route = route(ask).ok_or_else(no_such_endpoint)?;
        if common.faults.strikes(Fault::Unauthorized) {
            return Err(access::unauthorized());
        }
        self.keys.check(ask)?;
        access::check_version(ask)?;
        let service = self
            .services
            .iter_mut()
            .find(|service| service.is(route.circuit, route.service))
            .ok_or_else(|| no_such_service(route.circuit, route.service))?;
        match route.endpoint {
            Endpoint::Batches => submit(service, ask, common, now).map(Reply::Answer),
            Endpoint::Statuses => statuses(service, ask, common, now),
            Endpoint::Events => subscribe(service, ask, common).map(Reply::Answer),
        }
    }
}

fn route(ask: &Ask) -> Option<Route<'_>> {
    let (endpoint, circuit, service) = match (&ask.method, &ask.segments()[..]) {
        (&Method::POST, ["scabbard", circuit, service, "batches"]) => {
            (Endpoint::Batches, *circuit, *service)
        }
        (&Method::GET, ["scabbard", circuit, service, "batch_statuses"]) => {
            (Endpoint::Statuses, *circuit, *service)
        }
        (&Method::GET, ["scabbard", circuit, service, "ws", "subscribe"]) => {
            (Endpoint::Events, *circuit, *service)
        }
        _ => return None,
    };
    Some(Route { circuit, service, endpoint })
}

fn submit(
    service: &mut Service,
    ask: &Ask,
    common: &mut Common,
    now: Timestamp,
) -> Result<Answer, Answer> {
    let Body::Whole(body) = &ask.body else { return Err(SERVER_ERROR.answer()) };
    let list = BatchList::decode(body.clone()).map_err(|_| INVALID_BODY.answer())?;
    common.note_received(&list);
    if common.faults.strikes(Fault::Busy) || !service.is_accepting(&common.settings) {
        return Err(answers::busy());
    }
    let batches = verify(&list).map_err(|_| refuse(&list))?;
    let link = json::link(service.id(), batches.iter().map(|batch| batch.id()));
    for batch in batches {
        service.accept(batch, now);
    }
    Ok(json(StatusCode::ACCEPTED, &Accepted { link }))
}

/// The error for a list that is not verified. A batch's id that is not even hex trips the node up.
fn refuse(list: &BatchList) -> Answer {
    let is_hex =
        |id: &str| id.len().is_multiple_of(2) && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    if list.batches.iter().all(|batch| is_hex(&batch.header_signature)) {
        NO_VALID_BATCHES.answer()
    } else {
        SERVER_ERROR.answer()
    }
}

fn statuses(
    service: &Service,
    ask: &Ask,
    common: &mut Common,
    now: Timestamp,
) -> Result<Reply, Answer> {
    let ids = ask.query.get("ids").ok_or_else(|| NO_IDS.answer())?;
    let ids: HashSet<&str> = ids.split(',').collect();
    let status = |id: &str| {
        let known = id.parse::<HeaderId>().ok().and_then(|id| service.status(&id));
        StatusData::new(id, known, now)
    };
    let mut statuses: Vec<_> = ids.into_iter().map(status).collect();
    let wait = wait(ask);
    let is_complete = statuses.iter().all(StatusData::is_final);
    if !is_complete && wait.is_some_and(|wait| now.since(ask.arrived) < wait) {
        return Ok(Reply::Wait);
    }
    common.disorder.shuffle(&mut statuses);
    if wait.is_some() {
        statuses.sort_by_key(|status| !status.is_final());
    }
    Ok(json(StatusCode::OK, &statuses).into())
}

fn subscribe(service: &Service, ask: &Ask, common: &Common) -> Result<Answer, Answer> {
    let last_seen = ask.query.get("last_seen_event");
    if last_seen == Some("") {
        return Err(NO_LAST_EVENT.answer());
    }
    feed::subscribe(service.id().service_id(), last_seen, &common.events)
        .and_then(|subscription| handshake(ask, subscription))
        .ok_or_else(|| SERVER_ERROR.answer())
}

/// How long the client waits, if it does.
fn wait(ask: &Ask) -> Option<Duration> {
    match ask.query.get("wait")? {
        "false" => None,
        wait => Some(wait.parse().map_or(USUAL_WAIT, Duration::from_secs)),
    }
}

impl Ledger for Scabbard {
    fn question(&self, ask: &Ask) -> Question {
        match route(ask).map(|route| route.endpoint) {
            Some(Endpoint::Batches) => Question::Submission,
            Some(Endpoint::Statuses) => Question::Statuses,
            Some(Endpoint::Events) | None => Question::Other,
        }
    }

    fn respond(&mut self, ask: &Ask, common: &mut Common, now: Timestamp) -> Reply {
        self.answer(ask, common, now).unwrap_or_else(Reply::Answer)
    }

    fn advance(&mut self, common: &mut Common, now: Timestamp) -> io::Result<()> {
        self.services.iter_mut().try_for_each(|service| service.advance(common, now))
    }

    fn is_idle(&self) -> bool {
        self.services.iter().all(Service::is_idle)
    }

    fn forget(&mut self, now: Timestamp) {
        self.services.iter_mut().for_each(|service| service.forget(now));
    }

    fn broken(&self) -> Answer {
        SERVER_ERROR.answer()
    }

    fn timed_out(&self) -> Option<Answer> {
        None
    }

    fn unavailable(&self) -> Answer {
        SERVER_ERROR.answer()
    }

    fn wrong_typed(&self) -> &'static str {
        r#"[{"id":7,"status":"Committed","timestamp":"now"}]"#
    }

    fn body_limit(&self) -> usize {
        usize::MAX
    }

    fn workers(&self) -> usize {
        WORKERS
    }

    fn has_capital_headers(&self) -> bool {
        false
    }
}
