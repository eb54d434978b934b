//! Scabbard's REST API on a Splinter node: paths, and checks in their order.

mod access;
mod circuit;
mod feed;
mod history;
mod json;
mod responses;
mod service;
mod services;
mod state_root;

use std::{collections::HashSet, io, time::Duration};

use grid_batch_core::{ScopeId, ServiceScopeId, Timestamp};
use grid_batch_protocol::{BatchList, Message};
use hyper::{Method, StatusCode, header::RETRY_AFTER};

use self::{
    json::{Accepted, StateEntry, StatusData},
    responses::{
        INVALID_BODY, NO_IDS, NO_LAST_EVENT, NO_VALID_BATCHES, SERVER_ERROR, json,
        no_such_endpoint, no_such_service,
    },
    service::ScabbardService,
    services::Services,
};
use crate::{
    Fault, Record, RequestKind,
    common_state::{CommonState, verify},
    event_socket::handshake,
    ledger::SimulatedLedger,
    request::{RequestBody, SimRequest},
    response::{SimReply, SimResponse},
};

pub(crate) use access::AllowedKeys;
pub(crate) use circuit::Circuits;

/// The duration of a `wait` that is not a number.
const DEFAULT_WAIT: Duration = Duration::from_secs(300);
/// The node's threads for requests, including waiting ones: one for each core of a small machine.
const WORKERS: usize = 2;

/// A Splinter node with its Scabbard services.
#[derive(Debug)]
pub(crate) struct SimulatedScabbard {
    services: Services,
    keys: AllowedKeys,
    /// Whether the services answer.
    is_started: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Batches,
    Statuses,
    Events,
    State,
    StateRoot,
}

/// A parsed path.
struct Route<'a> {
    circuit: &'a str,
    service: &'a str,
    endpoint: Endpoint,
}

impl SimulatedScabbard {
    /// Restores the committed batches of a record.
    pub(crate) fn new(
        services: Vec<ServiceScopeId>,
        keys: AllowedKeys,
        circuits: &mut Circuits,
        record: &Record,
    ) -> Self {
        let mut all = Services::default();
        for id in services {
            let shared = circuits.find_or_create(&id);
            all.add(ScabbardService::from_record(id, record, &shared));
        }
        Self { services: all, keys, is_started: true }
    }

    fn respond_or_error(
        &mut self,
        request: &SimRequest,
        common: &mut CommonState,
        now: Timestamp,
    ) -> Result<SimReply, SimResponse> {
        if is_of_node(request) {
            self.keys.check(request)?;
            access::check_version(request)?;
            return Ok(responses::empty_list().into());
        }
        let route = route(request).ok_or_else(no_such_endpoint)?;
        if common.faults.occurs(Fault::Unauthorized) {
            return Err(access::unauthorized());
        }
        self.keys.check(request)?;
        access::check_version(request)?;
        let service = self.services.get_mut(route.circuit, route.service);
        let service = service
            .filter(|_| self.is_started)
            .ok_or_else(|| no_such_service(route.circuit, route.service))?;
        match route.endpoint {
            Endpoint::Batches => submit(service, request, common, now).map(SimReply::Response),
            Endpoint::Statuses => statuses(service, request, common, now),
            Endpoint::Events => subscribe(service, request, common).map(SimReply::Response),
            Endpoint::State => state(service, request).map(SimReply::Response),
            Endpoint::StateRoot => Ok(state_root(service).into()),
        }
    }
}

/// Whether a request is about the node, not about a service.
fn is_of_node(request: &SimRequest) -> bool {
    let segments = &request.segments()[..];
    request.method == Method::GET
        && matches!(
            segments,
            ["admin", "circuits" | "proposals"] | ["authorization", "permissions"]
        )
}

fn route(request: &SimRequest) -> Option<Route<'_>> {
    let (endpoint, circuit, service) = match (&request.method, &request.segments()[..]) {
        (&Method::POST, ["scabbard", circuit, service, "batches"]) => {
            (Endpoint::Batches, *circuit, *service)
        }
        (&Method::GET, ["scabbard", circuit, service, "batch_statuses"]) => {
            (Endpoint::Statuses, *circuit, *service)
        }
        (&Method::GET, ["scabbard", circuit, service, "ws", "subscribe"]) => {
            (Endpoint::Events, *circuit, *service)
        }
        (&Method::GET, ["scabbard", circuit, service, "state"])
        | (&Method::GET, ["scabbard", circuit, service, "state", _]) => {
            (Endpoint::State, *circuit, *service)
        }
        (&Method::GET, ["scabbard", circuit, service, "state_root"]) => {
            (Endpoint::StateRoot, *circuit, *service)
        }
        _ => return None,
    };
    Some(Route { circuit, service, endpoint })
}

fn submit(
    service: &mut ScabbardService,
    request: &SimRequest,
    common: &mut CommonState,
    now: Timestamp,
) -> Result<SimResponse, SimResponse> {
    let RequestBody::Complete(body) = &request.body else { return Err(SERVER_ERROR.response()) };
    let list = BatchList::decode(body.clone()).map_err(|_| INVALID_BODY.response())?;
    common.count_received(&list);
    if common.faults.occurs(Fault::Busy) || !service.is_accepting(&common.settings) {
        return Err(responses::busy());
    }
    if let Some(pause) = common.retry_after() {
        return Err(responses::busy().with_value(RETRY_AFTER, pause));
    }
    let batches = verify(&list).map_err(|_| invalid_list_error(&list))?;
    let link = json::link(service.id(), batches.iter().map(|batch| batch.id()));
    for batch in batches {
        service.accept(batch, now);
    }
    Ok(json(StatusCode::ACCEPTED, &Accepted { link }))
}

/// The error for an invalid list. A batch id that is not hex causes an internal error of the node.
fn invalid_list_error(list: &BatchList) -> SimResponse {
    let is_hex =
        |id: &str| id.len().is_multiple_of(2) && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    if list.batches.iter().all(|batch| is_hex(&batch.header_signature)) {
        NO_VALID_BATCHES.response()
    } else {
        SERVER_ERROR.response()
    }
}

fn statuses(
    service: &ScabbardService,
    request: &SimRequest,
    common: &mut CommonState,
    now: Timestamp,
) -> Result<SimReply, SimResponse> {
    let ids = request.query.get("ids").ok_or_else(|| NO_IDS.response())?;
    let ids: HashSet<&str> = ids.split(',').collect();
    let status = |id: &str| {
        let known = id
            .parse::<grid_batch_protocol::HeaderId>()
            .ok()
            .and_then(|id| service.status(&id.into()));
        StatusData::new(id, known, now)
    };
    let mut statuses: Vec<_> = ids.into_iter().map(status).collect();
    let wait = wait(request);
    let is_complete = statuses.iter().all(StatusData::is_final);
    if !is_complete && wait.is_some_and(|wait| now.since(request.received_at) < wait) {
        return Ok(SimReply::Wait);
    }
    common.shuffle_random.shuffle(&mut statuses);
    if wait.is_some() {
        statuses.sort_by_key(|status| !status.is_final());
    }
    Ok(json(StatusCode::OK, &statuses).into())
}

fn subscribe(
    service: &ScabbardService,
    request: &SimRequest,
    common: &CommonState,
) -> Result<SimResponse, SimResponse> {
    let last_seen = request.query.get("last_seen_event");
    if last_seen == Some("") {
        return Err(NO_LAST_EVENT.response());
    }
    feed::subscribe(service.id().service_id(), last_seen, &common.events)
        .and_then(|subscription| handshake(request, subscription))
        .ok_or_else(|| SERVER_ERROR.response())
}

/// The entry at an address, or all entries below a prefix.
fn state(service: &ScabbardService, request: &SimRequest) -> Result<SimResponse, SimResponse> {
    let value = |number: &u64| number.to_string().into_bytes();
    let written = service.values().written();
    if let ["scabbard", _, _, "state", address] = request.segments()[..] {
        let number = written.get(address).ok_or_else(responses::no_state)?;
        return Ok(json(StatusCode::OK, &value(number)));
    }
    let prefix = request.query.get("prefix").unwrap_or_default();
    let entries: Vec<_> = written
        .iter()
        .filter(|(address, _)| address.starts_with(prefix))
        .map(|(address, number)| StateEntry { address, value: value(number) })
        .collect();
    Ok(json(StatusCode::OK, &entries))
}

fn state_root(service: &ScabbardService) -> SimResponse {
    json(StatusCode::OK, &service.state_root().to_string())
}

/// How long the client waits for final statuses, if it does.
fn wait(request: &SimRequest) -> Option<Duration> {
    match request.query.get("wait")? {
        "false" => None,
        wait => Some(wait.parse().map_or(DEFAULT_WAIT, Duration::from_secs)),
    }
}

impl SimulatedLedger for SimulatedScabbard {
    fn kind_of(&self, request: &SimRequest) -> RequestKind {
        match route(request).map(|route| route.endpoint) {
            Some(Endpoint::Batches) => RequestKind::Submission,
            Some(Endpoint::Statuses) => RequestKind::Statuses,
            Some(Endpoint::Events | Endpoint::State | Endpoint::StateRoot) | None => {
                RequestKind::Other
            }
        }
    }

    fn respond(
        &mut self,
        request: &SimRequest,
        common: &mut CommonState,
        now: Timestamp,
    ) -> SimReply {
        self.respond_or_error(request, common, now).unwrap_or_else(SimReply::Response)
    }

    fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        self.services.advance(common, now)
    }

    fn is_idle(&self) -> bool {
        self.services.are_idle()
    }

    fn add_service(&mut self, service: ServiceScopeId, record: &Record) {
        // No other node has it.
        let shared = Circuits::default().find_or_create(&service);
        self.services.add(ScabbardService::from_record(service, record, &shared));
    }

    fn set_started(&mut self, started: bool) {
        self.is_started = started;
    }

    fn restore_state(&mut self) {
        self.services.iter().for_each(ScabbardService::restore_state);
    }

    fn restart(&mut self, now: Timestamp) {
        self.services.iter_mut().for_each(|service| service.restart(now));
    }

    fn stop(&mut self, common: &mut CommonState, now: Timestamp) {
        self.services.iter_mut().for_each(|service| service.stop(common, now));
    }

    fn set_frozen(&mut self, is_frozen: bool) {
        self.services.iter().for_each(|service| service.set_frozen(is_frozen));
    }

    fn start_again(&mut self) {
        self.services.iter().for_each(ScabbardService::start_again);
    }

    fn internal_error(&self) -> SimResponse {
        SERVER_ERROR.response()
    }

    fn timed_out(&self) -> Option<SimResponse> {
        None
    }

    fn statuses_error(&self) -> SimResponse {
        SERVER_ERROR.response()
    }

    fn wrong_typed_statuses(&self) -> &'static str {
        r#"[{"id":7,"status":"Committed","timestamp":"now"}]"#
    }

    fn max_body_bytes(&self) -> usize {
        usize::MAX
    }

    fn workers(&self) -> usize {
        WORKERS
    }

    fn has_title_case_headers(&self) -> bool {
        false
    }
}
