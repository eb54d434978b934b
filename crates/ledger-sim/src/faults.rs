use std::{mem::discriminant, time::Duration};

use crate::chance::Chance;

/// Something that goes wrong at a ledger.
///
/// How often is said with [`When`], for each fault by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A submission is answered 429, and nothing of it is accepted.
    Busy,
    /// A submission is accepted, and answered 503 with code 17: "may or may not have been
    /// processed". Sawtooth only; Scabbard has no such answer.
    TimedOut,
    /// A submission is accepted, and answered so much later.
    LateAnswer(Duration),
    /// The connection is reset when a submission has been read, and nothing of it is looked at.
    ResetBefore,
    /// A submission is accepted, and the connection is reset instead of an answer.
    ResetAfter,
    /// A batch turns out invalid when it is executed.
    Invalid,
    /// A batch becomes Valid and stays so for ever: its proposal times out, is rejected and
    /// forgotten, and the next batch of the service goes on. Scabbard only.
    DroppedValid,
    /// A request is answered 401, whatever its key may do. Scabbard only; Sawtooth asks nobody.
    Unauthorized,
    /// A question for statuses is answered with the ledger's error for "try again": 503 with
    /// code 17 on Sawtooth, 500 on Scabbard.
    StatusesFail,
    /// A question for statuses is answered so much later.
    LateStatuses(Duration),
    /// The connection is reset instead of an answer with statuses.
    StatusesReset,
    /// The connection breaks in the middle of an answer with statuses.
    StatusesBroken,
    /// An answer with statuses has only half of its JSON, in well-formed HTTP.
    StatusesTruncated,
    /// An answer with statuses is a page of HTML, with 200.
    StatusesNotJson,
    /// An answer with statuses is JSON of another shape.
    StatusesWrongTyped,
    /// An answer with statuses has [`Fault::HUGE`] bytes, most of them spaces.
    StatusesHuge,
    /// An answer is about other batches than those that were asked for.
    StatusesOfOthers,
    /// An event socket is closed without a word when the next event would be sent.
    EventsBroken,
    /// An event is sent so much later, and those after it wait.
    LateEvents(Duration),
}

impl Fault {
    /// How long a huge answer is, in bytes.
    pub const HUGE: usize = 32 << 20;
}

/// How often a fault strikes, of the times that it could.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Not at all.
    Never,
    /// The next so many times, then no more.
    Next(u32),
    /// Every time, until told otherwise.
    Always,
    /// With this probability each time, from 0 to 1.
    Sometimes(f64),
}

/// The faults that are switched on.
#[derive(Debug)]
pub(crate) struct Faults {
    switches: Vec<(Fault, When)>,
    chance: Chance,
}

impl Faults {
    pub(crate) fn new(switches: Vec<(Fault, When)>, seed: u64) -> Self {
        let mut faults = Self { switches: Vec::new(), chance: Chance::from_seed(seed) };
        for (fault, when) in switches {
            faults.set(fault, when);
        }
        faults
    }

    pub(crate) fn set(&mut self, fault: Fault, when: When) {
        self.switches.retain(|(other, _)| discriminant(other) != discriminant(&fault));
        self.switches.push((fault, when));
    }

    pub(crate) fn clear(&mut self) {
        self.switches.clear();
    }

    pub(crate) fn strikes(&mut self, fault: Fault) -> bool {
        self.draw(fault).is_some()
    }

    /// The duration of a fault of this kind, if it strikes; the one in `kind` does not matter.
    pub(crate) fn delay(&mut self, kind: Fault) -> Duration {
        match self.draw(kind) {
            Some(Fault::LateAnswer(by) | Fault::LateStatuses(by) | Fault::LateEvents(by)) => by,
            _ => Duration::ZERO,
        }
    }

    fn draw(&mut self, kind: Fault) -> Option<Fault> {
        let same = |(fault, _): &&mut (Fault, When)| discriminant(fault) == discriminant(&kind);
        let (fault, when) = self.switches.iter_mut().find(same)?;
        let strikes = match when {
            When::Never | When::Next(0) => false,
            When::Next(times) => {
                *times -= 1;
                true
            }
            When::Always => true,
            When::Sometimes(probability) => self.chance.happens(*probability),
        };
        strikes.then_some(*fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_as_often_as_it_is_told() {
        let mut faults = Faults::new(vec![(Fault::Busy, When::Next(2))], 1);
        let strikes = [(); 4].map(|()| faults.strikes(Fault::Busy));
        assert_eq!(strikes, [true, true, false, false]);
        faults.set(Fault::Busy, When::Always);
        assert!(faults.strikes(Fault::Busy) && !faults.strikes(Fault::Invalid));
        faults.clear();
        assert!(!faults.strikes(Fault::Busy));
    }

    #[test]
    fn a_delay_is_that_of_the_last_setting() {
        let mut faults = Faults::new(Vec::new(), 1);
        for seconds in [1, 2] {
            faults.set(Fault::LateAnswer(Duration::from_secs(seconds)), When::Next(1));
        }
        let delays = [(); 2].map(|()| faults.delay(Fault::LateAnswer(Duration::ZERO)));
        assert_eq!(delays, [Duration::from_secs(2), Duration::ZERO]);
    }
}
