use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use grid_batch_core::{Clock, ServiceId, SystemClock, Timestamp};

/// The start and end of something.
pub type TimeSpan = (Timestamp, Timestamp);

/// What happened during a run: counts, outages, pauses, and waits for the operator.
#[derive(Debug)]
pub struct EventLog {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    outages: Mutex<Vec<TimeSpan>>,
    operator_waits: Mutex<Vec<(ServiceId, TimeSpan)>>,
    pauses: Mutex<Pauses>,
    availability: Mutex<Availability>,
}

/// How many instances serve, and since when none has.
#[derive(Debug)]
struct Availability {
    serving: usize,
    none_since: Timestamp,
}

/// Pauses of instances and of the ledger. What was to be sent before a pause may be sent after it.
#[derive(Debug)]
struct Pauses {
    active: usize,
    last_end: Instant,
}

impl EventLog {
    pub fn new() -> Self {
        Self {
            counts: Mutex::default(),
            outages: Mutex::default(),
            operator_waits: Mutex::default(),
            pauses: Mutex::new(Pauses { active: 0, last_end: Instant::now() }),
            availability: Mutex::new(Availability { serving: 0, none_since: SystemClock.now() }),
        }
    }

    pub fn count(&self, event: &'static str) {
        *self.counts.lock().unwrap().entry(event).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().unwrap().clone()
    }

    /// Runs the fault and records its time as an outage, in which no progress is expected.
    pub fn outage<T>(&self, fault: impl FnOnce() -> T) -> T {
        let start = SystemClock.now();
        let result = fault();
        self.outages.lock().unwrap().push((start, SystemClock.now()));
        result
    }

    pub fn outages(&self) -> Vec<TimeSpan> {
        self.outages.lock().unwrap().clone()
    }

    /// Records that an instance serves from now on.
    pub fn instance_started(&self) {
        let mut availability = self.availability.lock().unwrap();
        if availability.serving == 0 {
            self.outages.lock().unwrap().push((availability.none_since, SystemClock.now()));
        }
        availability.serving += 1;
    }

    /// Records that an instance no longer serves. The time in which none does is an outage.
    pub fn instance_ended(&self) {
        let mut availability = self.availability.lock().unwrap();
        availability.serving -= 1;
        availability.none_since = SystemClock.now();
    }

    /// Records that a service waited for the operator from `start` until now.
    pub fn waited_for_operator(&self, service: &ServiceId, start: Timestamp) {
        let mut waits = self.operator_waits.lock().unwrap();
        waits.push((service.clone(), (start, SystemClock.now())));
    }

    pub fn operator_waits(&self, service: &ServiceId) -> Vec<TimeSpan> {
        let waits = self.operator_waits.lock().unwrap();
        waits.iter().filter(|(other, _)| other == service).map(|(_, span)| *span).collect()
    }

    /// Runs the fault and records its time as a pause.
    pub fn pause<T>(&self, fault: impl FnOnce() -> T) -> T {
        self.pauses.lock().unwrap().active += 1;
        let result = fault();
        let mut pauses = self.pauses.lock().unwrap();
        pauses.active -= 1;
        pauses.last_end = Instant::now();
        result
    }

    /// How long ago the last pause ended; zero during a pause.
    pub fn time_since_last_pause(&self) -> Duration {
        let pauses = self.pauses.lock().unwrap();
        if pauses.active > 0 { Duration::ZERO } else { pauses.last_end.elapsed() }
    }
}
