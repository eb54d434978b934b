use std::time::{Duration, Instant};

use grid_batch_client::ClientError;
use serde_json::Value;

use super::rates::{EventFeed, Rates};
use crate::commands::{
    failure::Failure,
    remote::{Server, elapsed, entries, field},
};

/// The state of a server at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) services: Vec<ServiceReading>,
    /// Whether the server has more services than were read.
    pub(super) more_services: bool,
    pub(super) instances: Parts,
    pub(super) nodes: Parts,
    pub(super) held: Vec<HeldReading>,
    pub(super) more_held: bool,
    /// `None` before the second reading, or if the server keeps no events.
    pub(super) rates: Option<Rates>,
}

/// A service with open batches.
#[derive(Debug, Clone, Default)]
pub(super) struct ServiceReading {
    pub(super) id: String,
    pub(super) open: u64,
    /// The age of its oldest open batch.
    pub(super) age: Duration,
    pub(super) held: u64,
    pub(super) halts: u64,
    /// Why it is paused, if it is.
    pub(super) paused: Option<String>,
    pub(super) failing: Option<String>,
    /// Why a gate keeps its batch back, if one does.
    pub(super) parked: Option<String>,
    pub(super) is_claimed: bool,
    /// Any other reason that keeps all its batches back.
    pub(super) waits: Vec<WaitReading>,
}

/// A reason that keeps the batches of a service back, and what ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitReading {
    pub(super) text: String,
    pub(super) ends: String,
}

/// The instances of the server, or the nodes of its ledgers, and what is wrong with them.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    pub(super) count: usize,
    pub(super) problems: Vec<String>,
}

/// A batch that waits for an operator.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldReading {
    pub(super) id: String,
    pub(super) service: String,
    pub(super) since: Option<Duration>,
    pub(super) reason: String,
}

impl Reading {
    const MOST_SERVICES: usize = 10_000;
    const MOST_HELD: usize = 1_000;

    pub(super) fn take(server: &Server, feed: &mut EventFeed) -> Result<Self, Failure> {
        let (services, more_services) =
            server.read_list("/v1/services", &[], Self::MOST_SERVICES)?;
        let claims = server.client.get("/v1/claims", &[("limit", "1")])?;
        let ledgers = server.client.get("/v1/ledgers", &[])?;
        let filters = [("held", "true"), ("order", "oldest")];
        let (held, more_held) = server.read_list("/v1/batches", &filters, Self::MOST_HELD)?;
        Ok(Self {
            services: services.iter().map(ServiceReading::read).collect(),
            more_services,
            instances: Parts::instances(&claims),
            nodes: Parts::nodes(&ledgers),
            held: held.iter().map(HeldReading::read).collect(),
            more_held,
            rates: rates(server, feed)?,
        })
    }

    pub(super) fn open(&self) -> u64 {
        self.services.iter().map(|service| service.open).sum()
    }

    pub(super) fn oldest(&self) -> Option<Duration> {
        self.services.iter().filter(|service| service.open > 0).map(|service| service.age).max()
    }
}

/// A server that refuses to show events shows everything else.
fn rates(server: &Server, feed: &mut EventFeed) -> Result<Option<Rates>, Failure> {
    let read = |after: &str| {
        let parameters = [("after", after), ("kind", "submitted,status"), ("limit", "1000")];
        server.client.get("/v1/events", &parameters)
    };
    match feed.rates(Instant::now(), read) {
        Err(ClientError::Refused { .. }) => Ok(None),
        read => Ok(read?),
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn is(value: &Value, name: &str) -> bool {
    value[name].as_bool().unwrap_or(false)
}

impl ServiceReading {
    fn read(json: &Value) -> Self {
        let number = |name: &str| json[name].as_u64().unwrap_or(0);
        let age = json["oldest_age_seconds"].as_f64().unwrap_or(0.0);
        let owner = &json["owner"];
        Self {
            id: field(json, "service_id"),
            open: number("open"),
            age: Duration::try_from_secs_f64(age).unwrap_or_default(),
            held: number("held"),
            halts: number("halts"),
            paused: json["paused"].is_object().then(|| field(&json["paused"], "reason")),
            failing: text(json, "failing"),
            parked: text(json, "parked"),
            is_claimed: !owner.is_null() && !is(owner, "lease_is_over"),
            waits: entries(json, "waits").iter().filter_map(WaitReading::read).collect(),
        }
    }
}

impl WaitReading {
    /// `None`: other fields of the service say it.
    fn read(json: &Value) -> Option<Self> {
        let is_told = matches!(json["cause"].as_str(), Some("lease" | "paused"));
        (!is_told).then(|| Self { text: field(json, "text"), ends: field(json, "ends") })
    }
}

impl Parts {
    fn instances(claims: &Value) -> Self {
        let instances = entries(claims, "instances");
        let problems = instances.iter().filter_map(|instance| {
            let name = text(instance, "name").unwrap_or_else(|| field(instance, "instance_id"));
            Some(format!("{name}: {}", problem_of_instance(instance)?))
        });
        Self { count: instances.len(), problems: problems.collect() }
    }

    fn nodes(ledgers: &Value) -> Self {
        let mut all = Self::default();
        for ledger in entries(ledgers, "data") {
            let nodes = entries(ledger, "nodes");
            let problems = nodes.iter().filter_map(|node| {
                Some(format!("{}: {}", field(node, "url"), problem_of_node(node)?))
            });
            all.count += nodes.len();
            all.problems.extend(text(ledger, "problem").into_iter().chain(problems));
        }
        all
    }
}

fn problem_of_instance(instance: &Value) -> Option<&'static str> {
    if is(instance, "lease_is_over") {
        Some("its lease has ended")
    } else if is(instance, "draining") {
        Some("drains")
    } else {
        (!is(instance, "ledger_confirmed"))
            .then_some("no node has told it which ledger it belongs to")
    }
}

fn problem_of_node(node: &Value) -> Option<&str> {
    if let Some(problem) = node["problem"].as_str() {
        Some(problem)
    } else if !is(node, "answering") {
        Some("does not answer")
    } else {
        (!is(node, "confirmed")).then_some("has not told which ledger it belongs to")
    }
}

impl HeldReading {
    fn read(json: &Value) -> Self {
        let held = &json["held"];
        Self {
            id: field(json, "id"),
            service: field(json, "service_id"),
            since: elapsed(held, "since"),
            reason: field(held, "reason"),
        }
    }
}
