//! Ledgers with a manual clock, and requests to them.

use std::{ops::Deref, sync::Arc, thread, time::Duration};

use grid_batch_core::{ItemId, ManualClock, ServiceScopeId, Timestamp};
use grid_batch_ledger_sim::{ExecutionResult, LedgerSim, LedgerSimBuilder, WebSocketCounts};
use grid_batch_protocol::{Batch, CylinderToken};

use crate::{
    batches::{id, key, list},
    client::{Request, Response},
};

pub const CIRCUIT: &str = "abcDE-F0123";
pub const SERVICE: &str = "gsAA";
pub const OTHER_SERVICE: &str = "gsBB";

pub struct Ledger {
    pub sim: LedgerSim,
    pub clock: Arc<ManualClock>,
    is_sawtooth: bool,
}

impl Deref for Ledger {
    type Target = LedgerSim;

    fn deref(&self) -> &LedgerSim {
        &self.sim
    }
}

pub fn sawtooth(configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder) -> Ledger {
    start(LedgerSim::sawtooth(), configure, true)
}

pub fn scabbard(configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder) -> Ledger {
    start(LedgerSim::scabbard([scope(SERVICE), scope(OTHER_SERVICE)]), configure, false)
}

/// Both ledgers, for behaviour that they have in common.
pub fn both(configure: impl Fn(LedgerSimBuilder) -> LedgerSimBuilder) -> [Ledger; 2] {
    [sawtooth(&configure), scabbard(&configure)]
}

fn start(
    builder: LedgerSimBuilder,
    configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
    is_sawtooth: bool,
) -> Ledger {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_250_000)));
    let sim = configure(builder.clock(clock.clone()).seed(1)).start().unwrap();
    Ledger { sim, clock, is_sawtooth }
}

pub fn scope(service: &str) -> ServiceScopeId {
    format!("{CIRCUIT}::{service}").parse().unwrap()
}

impl Ledger {
    pub fn send(&self, request: &Request) -> Response {
        request.send(self.address()).unwrap()
    }

    pub fn post(&self, body: impl Into<Vec<u8>>) -> Request {
        let request = Request::post(self.path("batches")).body(body);
        if self.is_sawtooth {
            request.header("Content-Type", "application/octet-stream")
        } else {
            authorized(request)
        }
    }

    pub fn status_request(&self, ids: &[ItemId]) -> Request {
        let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let name = if self.is_sawtooth { "id" } else { "ids" };
        let request =
            Request::get(format!("{}?{name}={}", self.path("batch_statuses"), ids.join(",")));
        if self.is_sawtooth { request } else { authorized(request) }
    }

    pub fn submit(&self, batches: &[Batch]) -> Response {
        self.send(&self.post(list(batches)))
    }

    pub fn submit_one(&self, batch: &Batch) -> Response {
        self.submit(std::slice::from_ref(batch))
    }

    /// The status of a batch in upper case, as Sawtooth writes it.
    pub fn status(&self, batch: &Batch) -> String {
        let response = self.send(&self.status_request(&[id(batch)])).json();
        let status = if self.is_sawtooth {
            &response["data"][0]["status"]
        } else {
            &response[0]["status"]["statusType"]
        };
        status.as_str().unwrap().to_uppercase()
    }

    pub fn path(&self, end: &str) -> String {
        if self.is_sawtooth { format!("/{end}") } else { service_path(SERVICE, end) }
    }

    pub fn event_path(&self) -> String {
        if self.is_sawtooth {
            "/subscriptions".to_owned()
        } else {
            service_path(SERVICE, "ws/subscribe")
        }
    }

    pub fn host(&self) -> String {
        self.address().to_string()
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub fn wait_for_websockets(&self, expected: WebSocketCounts) {
        for _ in 0..10_000 {
            if self.websockets() == expected {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("{:?}, expected {expected:?}", self.websockets());
    }

    pub fn applied(&self) -> Vec<ItemId> {
        let record = self.record().into_iter();
        record
            .filter(|e| e.result == ExecutionResult::Applied)
            .map(|entry| entry.batch_id)
            .collect()
    }

    /// Sends a request and advances the clock until the response arrives. Returns the response and
    /// its duration by the ledger's clock.
    pub fn send_and_wait(&self, request: Request) -> (Response, Duration) {
        let started = self.sim_now();
        let address = self.address();
        let client = thread::spawn(move || request.send(address));
        while !client.is_finished() {
            self.clock.advance(Duration::from_secs(1));
            thread::sleep(Duration::from_millis(1));
        }
        (client.join().unwrap().unwrap(), self.sim_now().since(started))
    }

    fn sim_now(&self) -> Timestamp {
        use grid_batch_core::Clock;
        self.clock.now()
    }
}

pub fn service_path(service: &str, end: &str) -> String {
    format!("/scabbard/{CIRCUIT}/{service}/{end}")
}

pub fn authorized(request: Request) -> Request {
    let token = CylinderToken::new(&key());
    request.header("Authorization", format!("Bearer Cylinder:{}", token.as_str()))
}
