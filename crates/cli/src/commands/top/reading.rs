use std::time::{Duration, Instant};

use grid_batch_client::ClientError;
use humantime::parse_rfc3339;
use serde_json::Value;

use super::rates::{EventFeed, Rates};
use crate::commands::{
    failure::Failure,
    remote::{Server, field},
};

/// The state of a server at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) services: Vec<ServiceReading>,
    /// Whether the server has more services than were read.
    pub(super) more_services: bool,
    pub(super) instances: Vec<InstanceReading>,
    pub(super) ledgers: Vec<LedgerReading>,
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

#[derive(Debug, Clone, Default)]
pub(super) struct InstanceReading {
    pub(super) name: String,
    pub(super) problem: Option<&'static str>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LedgerReading {
    pub(super) problem: Option<String>,
    pub(super) nodes: Vec<NodeReading>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct NodeReading {
    pub(super) url: String,
    pub(super) problem: Option<String>,
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
            instances: entries(&claims["instances"]).map(InstanceReading::read).collect(),
            ledgers: entries(&ledgers["data"]).map(LedgerReading::read).collect(),
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

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
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
            waits: entries(&json["waits"]).filter_map(WaitReading::read).collect(),
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

impl InstanceReading {
    fn read(json: &Value) -> Self {
        let problem = if is(json, "lease_is_over") {
            Some("its lease has ended")
        } else if is(json, "draining") {
            Some("drains")
        } else if !is(json, "ledger_confirmed") {
            Some("has not confirmed the ledger")
        } else {
            None
        };
        let id = field(json, "instance_id");
        Self { name: text(json, "name").unwrap_or(id), problem }
    }
}

impl LedgerReading {
    fn read(json: &Value) -> Self {
        Self {
            problem: text(json, "problem"),
            nodes: entries(&json["nodes"]).map(NodeReading::read).collect(),
        }
    }
}

impl NodeReading {
    fn read(json: &Value) -> Self {
        let problem = text(json, "problem").or_else(|| {
            let is_out = !is(json, "answering");
            let unconfirmed = !is(json, "confirmed");
            let words =
                [(is_out, "does not answer"), (unconfirmed, "has not confirmed the ledger")];
            words.iter().find(|(applies, _)| *applies).map(|(_, words)| (*words).to_owned())
        });
        Self { url: field(json, "url"), problem }
    }
}

impl HeldReading {
    fn read(json: &Value) -> Self {
        let held = &json["held"];
        let since = held["since"].as_str().and_then(|time| parse_rfc3339(time).ok());
        Self {
            id: field(json, "id"),
            service: field(json, "service_id"),
            since: since.map(|time| time.elapsed().unwrap_or_default()),
            reason: field(held, "reason"),
        }
    }
}
