//! All that there is at one moment: instances, the database, the ledger.

use grid_batch_core::{AttemptId, BatchState, Event, Progress};

use crate::action::{BatchAt, Desk};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub instances: Vec<Instance>,
    pub services: Vec<Service>,
    /// What may still go wrong.
    pub troubles: Troubles,
    pub seen: Seen,
}

/// How many things may go wrong; any, and at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Troubles {
    /// With instances: a first expiry, a crash, a stop.
    pub instances: u8,
    /// With a ledger: a POST that fails or is not answered, a refusal, a restart.
    pub ledger: u8,
}

/// A process, and its row in the database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instance {
    pub runs: bool,
    pub row: Row,
    /// What it does for each service.
    pub desks: Vec<Work>,
}

/// How an instance's row stands, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Row {
    /// Before the first expiry.
    Live,
    /// Between the expiries.
    Late,
    /// Past the second expiry.
    Over,
    /// There is none, and will be none: the instance was stopped.
    Gone,
}

/// An instance's memory of one service. It may be out of date.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Work {
    /// The epoch of the claim that it believes to have; 0: none.
    pub epoch: u64,
    pub hand: Option<Hand>,
}

/// What an instance has in hand: a batch being sent, or something learned and not yet recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hand {
    pub batch: usize,
    pub attempt_id: AttemptId,
    /// It was marked before the first expiry, or was only asked for.
    pub in_time: bool,
    /// `None`: it is being sent, and nobody knows whether it has left.
    pub learned: Option<Event>,
}

/// A service's row of claims, its lane and its batches, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Service {
    pub claimant: Option<usize>,
    pub epoch: u64,
    pub batches: Vec<Batch>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch {
    /// As the store has it.
    pub progress: Progress,
    /// The epoch in which it was last handed to a submitter.
    pub taken_in: u64,
    /// The last attempt that is recorded to have come to nothing. No part of the protocol.
    pub cleared: u32,
    /// POSTs that were given up and are still on their way.
    pub strays: u8,
    pub ledger: AtLedger,
}

/// A batch as the ledger has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AtLedger {
    /// How often it stands among what was accepted.
    pub accepted: u8,
    /// How often it was applied.
    pub applied: u8,
    pub refused: bool,
    /// The ledger has something to say when it is asked.
    pub known: bool,
    /// The ledger has been watched without a break since the present attempt began.
    pub watched: bool,
}

/// What was seen on the way here that must never be. No part of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// A batch was applied before an earlier one, or after a later one.
    pub out_of_order: bool,
    /// A batch was sent again, and nothing had shown that the attempt before came to nothing.
    pub sent_blindly: bool,
    /// A batch was sent again while the attempt before could still come to something.
    pub sent_too_early: bool,
}

impl State {
    pub fn at_the_beginning(instances: usize, services: &[usize], troubles: Troubles) -> Self {
        let desks = vec![Work::default(); services.len()];
        let batch = Batch {
            progress: Progress::NEW,
            taken_in: 0,
            cleared: 0,
            strays: 0,
            ledger: AtLedger::default(),
        };
        let service = |&batches: &usize| Service {
            claimant: None,
            epoch: 0,
            batches: vec![batch.clone(); batches],
        };
        Self {
            instances: vec![Instance { runs: true, row: Row::Live, desks }; instances],
            services: services.iter().map(service).collect(),
            troubles,
            seen: Seen::default(),
        }
    }

    pub fn work(&self, desk: Desk) -> &Work {
        &self.instances[desk.instance].desks[desk.service]
    }

    pub fn work_mut(&mut self, desk: Desk) -> &mut Work {
        &mut self.instances[desk.instance].desks[desk.service]
    }

    pub fn row(&self, desk: Desk) -> Row {
        self.instances[desk.instance].row
    }

    pub fn batch_mut(&mut self, at: BatchAt) -> &mut Batch {
        &mut self.services[at.service].batches[at.batch]
    }

    /// Whether the claim that the instance believes to have is its own, as the database has it.
    pub fn owns(&self, desk: Desk) -> bool {
        let service = &self.services[desk.service];
        service.claimant == Some(desk.instance) && service.epoch == self.work(desk).epoch
    }

    /// Every desk of an instance that runs.
    pub fn desks(&self) -> impl Iterator<Item = Desk> {
        let running = (0..self.instances.len()).filter(|&instance| self.instances[instance].runs);
        running.flat_map(|instance| {
            (0..self.services.len()).map(move |service| Desk { instance, service })
        })
    }

    /// Whether another instance runs: the last one does not go away.
    pub fn another_runs(&self, instance: usize) -> bool {
        (0..self.instances.len()).any(|other| other != instance && self.instances[other].runs)
    }
}

impl Instance {
    /// Whether it sends something that is over before the last expiry.
    pub fn is_sending_in_time(&self) -> bool {
        self.desks
            .iter()
            .any(|work| work.is_sending() && work.hand.is_some_and(|hand| hand.in_time))
    }
}

impl Work {
    pub fn is_sending(&self) -> bool {
        self.hand.is_some_and(|hand| hand.learned.is_none())
    }

    pub fn is_sending_batch(&self, batch: usize) -> bool {
        self.hand.is_some_and(|hand| hand.learned.is_none() && hand.batch == batch)
    }
}

impl Service {
    /// The oldest open batch: the one in the lane.
    pub fn head(&self) -> Option<usize> {
        self.batches.iter().position(|batch| !batch.progress.state.is_terminal())
    }

    pub fn has_ended(&self) -> bool {
        self.head().is_none()
    }

    /// Whether the batch in the lane is with a submitter.
    pub fn is_submitting(&self) -> bool {
        self.head().is_some_and(|head| self.batches[head].progress.state == BatchState::Submitting)
    }
}
