//! What is checked: how many take part, what the world may do, and by which rules the service goes.

use stateright::{Model, Property};

use crate::{
    action::Action,
    answers, claims, ledger, properties,
    state::{Batch, State, Troubles},
    submissions,
};

/// One configuration of the protocol.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// How many instances there are. One that crashes is not seen again: a restart has a new name.
    pub instances: usize,
    /// The services, by the number of their batches.
    pub services: Vec<usize>,
    pub troubles: Troubles,
    pub world: World,
    pub rules: Rules,
}

/// What the service cannot choose.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// What the ledger does with a batch that it is sent twice.
    pub ledger: Ledger,
    /// Instances may stand still anywhere, for any time: no time limit of theirs holds.
    pub pauses: bool,
    /// A batch that the ledger refused, it refuses whenever it comes again.
    pub refusals_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ledger {
    /// Applies a batch at most once, and never forgets that it did: Sawtooth.
    AppliesOnce,
    /// Applies whatever comes, and forgets it all when it restarts: Scabbard.
    AppliesAgain,
}

/// What the service does. Every rule can be broken, to see what it is for.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub expiry: Expiry,
    /// Each taking of a service raises its epoch.
    pub taking_raises_epoch: bool,
    pub marking: Marking,
    pub fence: Fence,
    pub found: Found,
    pub absence: Absence,
    pub wait: Wait,
}

/// When a service may be taken from an instance that does not renew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// After the first expiry if no batch is with a submitter, after the second in any case.
    TwoPhases,
    /// After the one expiry, which outlasts every submission.
    OnePhase,
    /// After the first expiry in any case.
    Hasty,
}

/// Who may mark a batch as with a submitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// The owner, before the first expiry.
    OwnerInTime,
    /// The owner, before the second expiry.
    OwnerLate,
    /// Whoever was the owner once.
    FormerOwner,
}

/// What must still be so for something that an instance brings to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The attempt and the epoch.
    AttemptId,
    /// The attempt.
    Attempt,
    /// Nothing: it is written to the batch as it stands.
    Nothing,
}

/// What a new owner does with a batch that it finds with a submitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It is in doubt: evidence first.
    InDoubt,
    /// It is sent again.
    SentAgain,
}

/// What counts as evidence that the ledger does not have a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The ledger says that it does not know it.
    Said,
    /// The ledger says so, and has been watched without a break since before it was sent.
    Watched,
    /// The same, and the one who watched is the owner who sent it.
    WatchedBySender,
}

/// From when on the time is counted in which what was given up may still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// From the marking. Who pauses before the sending has waited for nothing.
    FromMarking,
    /// From the end of the submission; a new owner counts from its taking.
    FromEnding,
}

impl Protocol {
    /// The protocol as it is meant, for this ledger, among instances that keep their time.
    pub fn new(ledger: Ledger) -> Self {
        let absence = match ledger {
            Ledger::AppliesOnce => Absence::Said,
            Ledger::AppliesAgain => Absence::WatchedBySender,
        };
        Self {
            instances: 2,
            services: vec![2],
            troubles: Troubles { instances: 2, ledger: 1 },
            world: World { ledger, pauses: false, refusals_last: false },
            rules: Rules {
                expiry: Expiry::TwoPhases,
                taking_raises_epoch: true,
                marking: Marking::OwnerInTime,
                fence: Fence::AttemptId,
                found: Found::InDoubt,
                absence,
                wait: Wait::FromEnding,
            },
        }
    }

    /// The same in a world where instances pause.
    pub fn with_pauses(mut self) -> Self {
        self.world.pauses = true;
        self
    }

    /// The same in a world where refusals last.
    pub fn with_lasting_refusals(mut self) -> Self {
        self.world.refusals_last = true;
        self
    }

    /// The same with other numbers.
    pub fn sized(self, instances: usize, services: &[usize]) -> Self {
        Self { instances, services: services.to_vec(), ..self }
    }

    /// The same with so many things that go wrong.
    pub fn troubled(self, instances: u8, ledger: u8) -> Self {
        Self { troubles: Troubles { instances, ledger }, ..self }
    }

    /// The same with rules changed.
    pub fn but(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    /// Nothing is wrong in a batch that waits for a person where nothing can be proved.
    pub fn may_wait_for_a_person(&self, batch: &Batch) -> bool {
        self.rules.absence != Absence::Said && batch.progress.state.awaits_poller()
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::at_the_beginning(self.instances, &self.services, self.troubles)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(only) = answers::comes_too_late(self, state) {
            actions.push(only);
            return;
        }
        claims::offer(self, state, actions);
        submissions::offer(self, state, actions);
        answers::offer(self, state, actions);
        ledger::offer(self, state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Claims(step, instance) => claims::go(self, &mut state, step, instance),
            Action::Submission(step, desk) => submissions::go(self, &mut state, step, desk),
            Action::Answer(step, desk) => answers::go(self, &mut state, step, desk),
            Action::Ledger(step) => ledger::go(self, &mut state, step),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
