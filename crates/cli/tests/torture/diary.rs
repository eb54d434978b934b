use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use grid_batch_core::{Clock, ServiceId, SystemClock, Timestamp};

/// A time that something took: from when, until when.
pub type Span = (Timestamp, Timestamp);

/// What was done to whom, as far as it matters to others.
#[derive(Debug)]
pub struct Diary {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    outages: Mutex<Vec<Span>>,
    held: Mutex<Vec<(ServiceId, Span)>>,
    stillness: Mutex<Stillness>,
    working: Mutex<Working>,
}

/// How many instances work; where none does, since when.
#[derive(Debug)]
struct Working {
    instances: usize,
    none_since: Timestamp,
}

/// Who stands still: what was to be sent before is perhaps sent afterwards.
#[derive(Debug)]
struct Stillness {
    standing: usize,
    ended: Instant,
}

impl Diary {
    pub fn new() -> Self {
        let stillness = Stillness { standing: 0, ended: Instant::now() };
        Self {
            counts: Mutex::default(),
            outages: Mutex::default(),
            held: Mutex::default(),
            stillness: Mutex::new(stillness),
            working: Mutex::new(Working { instances: 0, none_since: SystemClock.now() }),
        }
    }

    pub fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().unwrap().clone()
    }

    /// Nothing can be expected while `deed` is done.
    pub fn outage<T>(&self, deed: impl FnOnce() -> T) -> T {
        let begun = SystemClock.now();
        let done = deed();
        self.outages.lock().unwrap().push((begun, SystemClock.now()));
        done
    }

    pub fn outages(&self) -> Vec<Span> {
        self.outages.lock().unwrap().clone()
    }

    /// An instance works from now on.
    pub fn works(&self) {
        let mut working = self.working.lock().unwrap();
        if working.instances == 0 {
            self.outages.lock().unwrap().push((working.none_since, SystemClock.now()));
        }
        working.instances += 1;
    }

    /// An instance works no more. While none does, nothing can be expected.
    pub fn rests(&self) {
        let mut working = self.working.lock().unwrap();
        working.instances -= 1;
        working.none_since = SystemClock.now();
    }

    /// A service waited for a person from then until now.
    pub fn waited_for_person(&self, service: &ServiceId, since: Timestamp) {
        self.held.lock().unwrap().push((service.clone(), (since, SystemClock.now())));
    }

    pub fn held(&self, service: &ServiceId) -> Vec<Span> {
        let held = self.held.lock().unwrap();
        held.iter().filter(|(other, _)| other == service).map(|(_, span)| *span).collect()
    }

    /// Somebody stands still while `deed` is done, and goes on with what was begun.
    pub fn standstill<T>(&self, deed: impl FnOnce() -> T) -> T {
        self.stillness.lock().unwrap().standing += 1;
        let done = deed();
        let mut stillness = self.stillness.lock().unwrap();
        stillness.standing -= 1;
        stillness.ended = Instant::now();
        done
    }

    /// For how long nobody has stood still.
    pub fn in_motion_for(&self) -> Duration {
        let stillness = self.stillness.lock().unwrap();
        if stillness.standing > 0 { Duration::ZERO } else { stillness.ended.elapsed() }
    }
}
