use std::{mem::discriminant, time::Duration};

use crate::random::Random;

/// A fault of a ledger. [`When`] sets how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A submission is answered 429 and not accepted.
    Busy,
    /// A submission is answered 429 with this time in `Retry-After`, as by a proxy, and not accepted.
    BusyFor(Duration),
    /// A submission is answered 400 with code 30, as if its signatures were invalid, and not accepted.
    /// Sawtooth only.
    Rejected,
    /// A submission is accepted and answered 503 with code 17: "may or may not have been
    /// processed". Sawtooth only; Scabbard has no such response.
    TimedOut,
    /// A submission is accepted and answered with this delay.
    LateAnswer(Duration),
    /// A submission is handled only after this delay, or when
    /// [`LedgerSim::deliver_late`](crate::LedgerSim::deliver_late) is called, even if its client does not wait any
    /// more, as if a proxy had kept it.
    LateArrival(Duration),
    /// The connection is reset after a submission was read. The submission is not accepted.
    ResetBefore,
    /// A submission is accepted, and the connection is reset instead of a response.
    ResetAfter,
    /// A batch is invalid when it is executed.
    Invalid,
    /// A batch that is executed belongs to a transaction family without a processor: the node stops answering until it
    /// is restarted. Sawtooth only.
    NoProcessor,
    /// A batch becomes Valid and stays Valid: its proposal times out and is dropped, and the service
    /// continues with the next batch. Scabbard only.
    DroppedValid,
    /// A batch that was being voted on when its node was killed is dropped once when it is sent again, because another
    /// node of the circuit still has the first proposal. Scabbard only.
    LeftoverProposal,
    /// A node that is killed while a batch is voted on misses its commit, which the other nodes of the
    /// circuit make. From then on their state differs and nothing is committed. Set it at the node that is killed.
    /// Scabbard only.
    MissedCommit,
    /// A node that is killed while a batch is voted on has written its state alone: the batch stays Valid
    /// at the node that it was sent to, and the state roots differ until
    /// [`LedgerSim::restore_state`](crate::LedgerSim::restore_state) is called. Set it at the node that is killed.
    /// Scabbard only.
    WritesAlone,
    /// A batch stays PENDING for ever and is never executed; later ones are. Sawtooth only.
    StaysPending,
    /// A request is answered 401. Scabbard only; Sawtooth has no authorization.
    Unauthorized,
    /// A request is answered with an HTML page and this HTTP status, as if another server had taken the ledger's
    /// address.
    OtherServer {
        /// The HTTP status.
        status: u16,
    },
    /// A status request is answered with a temporary error: 503 with code 17 on Sawtooth, 500 on
    /// Scabbard.
    StatusesFail,
    /// A status request is answered with this delay.
    LateStatuses(Duration),
    /// The connection is reset instead of a response with statuses.
    StatusesReset,
    /// The connection breaks in the middle of a response with statuses.
    StatusesBroken,
    /// A response with statuses has only half of its JSON, in well-formed HTTP.
    StatusesTruncated,
    /// A response with statuses is an HTML page with status 200.
    StatusesNotJson,
    /// A response with statuses is JSON of another structure.
    StatusesWrongTyped,
    /// A response with statuses has [`Fault::HUGE`] bytes, most of them spaces.
    StatusesHuge,
    /// A response contains other batches than the requested ones.
    StatusesOfOthers,
    /// An event websocket is reset instead of sending the next event.
    EventsBroken,
    /// An event is sent with this delay. Later events wait for it.
    LateEvents(Duration),
    /// A new event websocket begins with this delay to send earlier events. Later ones wait for them.
    LateReplay(Duration),
    /// A client of an event websocket that disappears without a Close frame ends the sending of events
    /// to all clients, as [`LedgerSim::stop_sending_events`](crate::LedgerSim::stop_sending_events)
    /// does. Sawtooth only.
    EventsEndWithClient,
}

impl Fault {
    /// The length of a huge response in bytes.
    pub const HUGE: usize = 32 << 20;
}

/// How often a fault occurs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Never.
    Never,
    /// The next times that it is possible, up to this number.
    Next(u32),
    /// Every time.
    Always,
    /// Each time with this probability, from 0 to 1.
    Sometimes(f64),
}

/// The faults that are switched on.
#[derive(Debug)]
pub(crate) struct Faults {
    switches: Vec<(Fault, When)>,
    random: Random,
}

impl Faults {
    pub(crate) fn new(switches: Vec<(Fault, When)>, seed: u64) -> Self {
        let mut faults = Self { switches: Vec::new(), random: Random::from_seed(seed) };
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

    pub(crate) fn occurs(&mut self, fault: Fault) -> bool {
        self.draw(fault).is_some()
    }

    /// The delay of a fault of this kind, if it occurs. The duration in `kind` is ignored.
    pub(crate) fn delay(&mut self, kind: Fault) -> Duration {
        match self.draw(kind) {
            Some(
                Fault::BusyFor(by)
                | Fault::LateArrival(by)
                | Fault::LateAnswer(by)
                | Fault::LateStatuses(by)
                | Fault::LateEvents(by)
                | Fault::LateReplay(by),
            ) => by,
            _ => Duration::ZERO,
        }
    }

    /// The HTTP status of another server at the ledger's address, if it answers.
    pub(crate) fn other_server(&mut self) -> Option<u16> {
        match self.draw(Fault::OtherServer { status: 0 }) {
            Some(Fault::OtherServer { status }) => Some(status),
            _ => None,
        }
    }

    fn draw(&mut self, kind: Fault) -> Option<Fault> {
        let same = |(fault, _): &&mut (Fault, When)| discriminant(fault) == discriminant(&kind);
        let (fault, when) = self.switches.iter_mut().find(same)?;
        let occurs = match when {
            When::Never | When::Next(0) => false,
            When::Next(times) => {
                *times -= 1;
                true
            }
            When::Always => true,
            When::Sometimes(probability) => self.random.next_bool(*probability),
        };
        occurs.then_some(*fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_occurs_as_often_as_set() {
        let mut faults = Faults::new(vec![(Fault::Busy, When::Next(2))], 1);
        let occurs = [(); 4].map(|()| faults.occurs(Fault::Busy));
        assert_eq!(occurs, [true, true, false, false]);
        faults.set(Fault::Busy, When::Always);
        assert!(faults.occurs(Fault::Busy) && !faults.occurs(Fault::Invalid));
        faults.clear();
        assert!(!faults.occurs(Fault::Busy));
    }

    #[test]
    fn delay_is_that_of_the_last_setting() {
        let mut faults = Faults::new(Vec::new(), 1);
        for seconds in [1, 2] {
            faults.set(Fault::LateAnswer(Duration::from_secs(seconds)), When::Next(1));
        }
        let delays = [(); 2].map(|()| faults.delay(Fault::LateAnswer(Duration::ZERO)));
        assert_eq!(delays, [Duration::from_secs(2), Duration::ZERO]);
    }
}
