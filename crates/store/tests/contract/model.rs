//! Compares the store with a model in memory over random sequences of steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{
    AddOutcome, BatchState, Change, ChangeOutcome, Decision, Event, Hold, IntakeStore,
    LedgerStatus, Progress, Stale, TransitionError, transition,
};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionEffect, ActionOutcome, ActionRefusal, Operator, OperatorAction, OperatorStore,
    OperatorTarget, OperatorVerb,
};
use proptest::{collection::vec, prelude::*};

use crate::fixture::{Database, TestStore, batch, cases, id, on_both, service};

on_both! { store_agrees_with_in_memory_model }

const SERVICES: [&str; 2] = ["s::1", "s::2"];

#[derive(Debug, Clone)]
enum Step {
    Add(Vec<(usize, u64)>),
    Take(Vec<usize>),
    /// Records changes. Without a number, they are for the oldest open batch of the service.
    Record(Vec<(usize, Option<u64>, Event, bool)>),
    /// An operator decides about a batch.
    Decide(usize, Option<u64>, Decision),
    /// An operator holds a batch, or ends its hold.
    Hold(usize, Option<u64>, bool),
    /// An operator cancels a batch or ends its delay, or only finds out what would happen.
    Act(usize, Option<u64>, OperatorVerb, bool),
    /// An operator pauses a service or all, or ends the pause.
    Pause(Option<usize>, bool),
    Wait(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let batch = || (0..SERVICES.len(), 0..12u64);
    prop_oneof![
        3 => vec(batch(), 0..4).prop_map(Step::Add),
        4 => vec(0..SERVICES.len(), 0..4).prop_map(Step::Take),
        6 => vec((0..SERVICES.len(), number(), event(), any::<bool>()), 1..4).prop_map(Step::Record),
        2 => (0..SERVICES.len(), number(), decision()).prop_map(|(s, n, d)| Step::Decide(s, n, d)),
        2 => (0..SERVICES.len(), number(), any::<bool>()).prop_map(|(s, n, h)| Step::Hold(s, n, h)),
        2 => (0..SERVICES.len(), number(), verb(), any::<bool>())
            .prop_map(|(s, n, verb, dry_run)| Step::Act(s, n, verb, dry_run)),
        2 => (proptest::option::of(0..SERVICES.len()), prop::bool::weighted(0.3))
            .prop_map(|(service, pauses)| Step::Pause(service, pauses)),
        1 => (0..20u64).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ]
}

fn number() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![4 => Just(None), 1 => (0..12u64).prop_map(Some)]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Committed), Just(Decision::Invalid), Just(Decision::Absent)]
}

fn verb() -> impl Strategy<Value = OperatorVerb> {
    prop_oneof![Just(OperatorVerb::Cancel), Just(OperatorVerb::Retry)]
}

/// Events whose attempt is relative to the current one: 0 means the current attempt.
fn event() -> impl Strategy<Value = Event> {
    let attempt = prop_oneof![8 => Just(0u32), 1 => Just(1u32)];
    (attempt, 0..19usize).prop_map(|(attempt, kind)| match kind {
        0..2 => Event::Outcome { attempt, outcome: Outcome::Accepted },
        2..5 => Event::Outcome { attempt, outcome: Outcome::Busy },
        5 => Event::Outcome { attempt, outcome: Outcome::Rejected },
        6 => Event::Outcome { attempt, outcome: Outcome::Ambiguous },
        7 => Event::OwnerLost { attempt },
        8 => Event::status(LedgerStatus::NotReported),
        9 => Event::status(LedgerStatus::Pending),
        10 => Event::status(LedgerStatus::Invalid),
        11 | 12 => Event::status(LedgerStatus::Committed),
        13 => Event::Evidence { attempt, evidence: Evidence::Absent },
        14 => Event::Evidence { attempt, evidence: Evidence::Committed },
        15 | 16 => Event::Evidence { attempt, evidence: Evidence::Inconclusive },
        17 => Event::EarlierCannotArrive { attempt },
        _ => Event::Taken,
    })
}

/// Inconclusive evidence holds the batch.
fn hold(event: Event) -> Option<String> {
    let nothing = matches!(event, Event::Evidence { evidence: Evidence::Inconclusive, .. });
    nothing.then(|| "no evidence".to_owned())
}

/// The same event with the absolute number of the attempt.
fn about(event: Event, present: u32) -> Event {
    match event {
        Event::Outcome { attempt, outcome } => {
            Event::Outcome { attempt: present + attempt, outcome }
        }
        Event::OwnerLost { attempt } => Event::OwnerLost { attempt: present + attempt },
        Event::EarlierCannotArrive { attempt } => {
            Event::EarlierCannotArrive { attempt: present + attempt }
        }
        Event::Evidence { attempt, evidence } => {
            Event::Evidence { attempt: present + attempt, evidence }
        }
        Event::Taken
        | Event::DatabaseRestored
        | Event::DependencyInvalid
        | Event::Status { .. }
        | Event::Decided { .. } => event,
    }
}

#[derive(Debug, Clone)]
struct Entry {
    number: u64,
    progress: Progress,
    next_try_at: Option<Timestamp>,
    held: Option<Hold>,
    committed_after_invalid: bool,
}

/// All batches of each service, in order, and what is paused: services, or all (`None`).
#[derive(Default, Clone)]
struct Model(BTreeMap<usize, Vec<Entry>>, BTreeSet<Option<usize>>);

impl Model {
    fn add(&mut self, service: usize, number: u64) -> AddOutcome {
        let entries = self.0.entry(service).or_default();
        if entries.iter().any(|entry| entry.number == number) {
            return AddOutcome::AlreadyStored;
        }
        entries.push(Entry {
            number,
            progress: Progress::NEW,
            next_try_at: None,
            held: None,
            committed_after_invalid: false,
        });
        AddOutcome::Stored
    }

    fn head(&mut self, service: usize) -> Option<&mut Entry> {
        let entries = self.0.get_mut(&service)?;
        entries.iter_mut().find(|entry| !entry.progress.state.is_terminal())
    }

    fn take(&mut self, service: usize, now: Timestamp) -> Option<(u64, u32)> {
        if self.1.contains(&None) || self.1.contains(&Some(service)) {
            return None;
        }
        let head = self.head(service)?;
        if head.held.is_some() {
            return None;
        }
        if head.next_try_at.is_some_and(|at| at > now) {
            return None;
        }
        head.progress = transition(head.progress, Event::Taken).ok()?;
        head.next_try_at = None;
        Some((head.number, head.progress.attempts))
    }

    fn present(&self, service: usize, number: u64) -> Option<Progress> {
        let entry = self.0.get(&service)?.iter().find(|entry| entry.number == number)?;
        Some(entry.progress)
    }

    fn decide(&mut self, service: usize, number: u64, decision: Decision) -> ChangeOutcome {
        let Some(progress) = self.present(service, number) else { return ChangeOutcome::NotFound };
        let (state, attempt) = (progress.state, progress.attempts);
        let refusal = if state.is_terminal() {
            Some(Stale::Transition(TransitionError::Ended { state }))
        } else if state == BatchState::Submitting {
            Some(Stale::WithSubmitter)
        } else if decision == Decision::Absent && state.awaits_queuer() {
            Some(Stale::NotAtLedger { state })
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return ChangeOutcome::Stale(refusal);
        }
        let is_head = self.head(service).is_some_and(|head| head.number == number);
        let entry = self.entry(service, number).unwrap();
        entry.progress = transition(progress, Event::Decided { attempt, decision }).unwrap();
        (entry.held, entry.next_try_at) = (None, None);
        let state = entry.progress.state;
        let next_waits = is_head && state.is_terminal() && self.head(service).is_some();
        ChangeOutcome::Applied { state, next_waits }
    }

    fn cancel(&mut self, service: usize, number: u64) -> ChangeOutcome {
        let Some(progress) = self.present(service, number) else { return ChangeOutcome::NotFound };
        let state = progress.state;
        let may_be_at_ledger = state.awaits_poller() || progress.earlier_may_arrive;
        if may_be_at_ledger && !state.is_terminal() && state != BatchState::Submitting {
            ChangeOutcome::Stale(Stale::MayBeAtLedger { state })
        } else {
            self.decide(service, number, Decision::Invalid)
        }
    }

    fn retry(&mut self, service: usize, number: u64) -> ChangeOutcome {
        let Some(progress) = self.present(service, number) else { return ChangeOutcome::NotFound };
        let state = progress.state;
        let head = self.head(service).filter(|head| head.number == number);
        let is_delayed = |head: &&mut Entry| {
            state == BatchState::Delayed && head.held.is_none() && head.next_try_at.is_some()
        };
        let Some(head) = head.filter(is_delayed) else {
            return ChangeOutcome::Stale(Stale::NotDelayed { state });
        };
        head.next_try_at = None;
        ChangeOutcome::Applied { state, next_waits: true }
    }

    /// `None`: there is no such service. `false`: nothing changed.
    fn pause(&mut self, service: Option<usize>, pauses: bool) -> Option<bool> {
        if service.is_some_and(|service| !self.0.contains_key(&service)) {
            return None;
        }
        Some(if pauses { self.1.insert(service) } else { self.1.remove(&service) })
    }

    fn entry(&mut self, service: usize, number: u64) -> Option<&mut Entry> {
        self.0.get_mut(&service)?.iter_mut().find(|entry| entry.number == number)
    }

    fn hold(&mut self, service: usize, number: u64, holds: bool, now: Timestamp) -> ChangeOutcome {
        let Some(entry) = self.entry(service, number) else { return ChangeOutcome::NotFound };
        let state = entry.progress.state;
        if state.is_terminal() {
            return ChangeOutcome::Stale(TransitionError::Ended { state }.into());
        }
        let by_operator = |hold: &Hold| hold.reason.starts_with("held by an operator: ");
        if holds && entry.held.as_ref().is_some_and(by_operator) {
            return ChangeOutcome::Stale(Stale::AlreadyHeld { state });
        }
        if !holds && entry.held.is_none() {
            return ChangeOutcome::Stale(Stale::NotHeld { state });
        }
        entry.held = holds.then(|| Hold {
            since: now,
            reason: "held by an operator: look first".to_owned(),
            until_decision: true,
        });
        if !holds {
            entry.next_try_at = None;
        }
        ChangeOutcome::Applied { state, next_waits: false }
    }

    fn record(
        &mut self,
        service: usize,
        number: u64,
        event: Event,
        retry_at: Option<Timestamp>,
        now: Timestamp,
    ) -> ChangeOutcome {
        let Some(progress) = self.present(service, number) else { return ChangeOutcome::NotFound };
        let not_drawn = TransitionError::NotPossible { state: progress.state, event };
        let is_held = |entry: &Entry| entry.held.as_ref().is_some_and(|hold| hold.until_decision);
        let is_held = self.head(service).is_some_and(|head| head.number == number && is_held(head));
        let counts_as = if is_held { event.while_held_until_decision(progress) } else { event };
        let next = match transition(progress, counts_as) {
            Err(error) => return self.refuse(service, number, event, error),
            Ok(next) => next,
        };
        match self.head(service) {
            Some(head) if head.number == number && event != Event::Taken => {
                let ends_hold = next.state.is_terminal() || !is_held;
                if next.state != progress.state && ends_hold {
                    head.held = None;
                }
                if let Some(reason) = hold(event) {
                    let until_decision = false;
                    head.held.get_or_insert(Hold { since: now, reason, until_decision });
                }
                head.progress = next;
                head.next_try_at = if next.state == BatchState::Delayed { retry_at } else { None };
            }
            _ => return ChangeOutcome::Stale(Stale::Transition(not_drawn)),
        }
        let next_waits = next.state.is_terminal() && self.head(service).is_some();
        ChangeOutcome::Applied { state: next.state, next_waits }
    }

    /// Refuses a change. The first proof of a commit of a batch that ended as invalid is recorded.
    fn refuse(
        &mut self,
        service: usize,
        number: u64,
        event: Event,
        error: TransitionError,
    ) -> ChangeOutcome {
        let entries = self.0.get_mut(&service).into_iter().flatten();
        for entry in entries.filter(|entry| entry.number == number) {
            let is_invalid = entry.progress.state == BatchState::Invalid;
            if is_invalid && event.is_proof_of_commit() && !entry.committed_after_invalid {
                entry.committed_after_invalid = true;
                return ChangeOutcome::Stale(Stale::CommittedAfterInvalid);
            }
        }
        ChangeOutcome::Stale(Stale::Transition(error))
    }

    fn open(&self, service: usize) -> Vec<(u64, Progress, Option<Hold>)> {
        let entries = self.0.get(&service).into_iter().flatten();
        let open = entries.filter(|entry| !entry.progress.state.is_terminal());
        // The holds of waiting batches are listed separately.
        let held = |at: usize, entry: &Entry| entry.held.clone().filter(|_| at == 0);
        open.enumerate()
            .map(|(at, entry)| (entry.number, entry.progress, held(at, entry)))
            .collect()
    }
}

fn store_agrees_with_in_memory_model(db: &Database) {
    cases(24)
        .run(&vec(step(), 1..100), |steps| {
            walk(&db.another(), steps);
            Ok(())
        })
        .unwrap();
}

fn walk(db: &Database, steps: Vec<Step>) {
    let mut store = db.open();
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Add(batches) => add(&store, &mut model, &batches),
            Step::Take(services) => take(&store, &mut model, &services, db.now()),
            Step::Record(changes) => {
                // The changes are one group; each applies after those before it.
                let mut expected = Vec::new();
                let mut group = Vec::new();
                for (at, number, event, delayed) in changes {
                    let number = number.or_else(|| Some(model.head(at)?.number)).unwrap_or(0);
                    let present = model.present(at, number).map_or(1, |p| p.attempts);
                    let event = about(event, present);
                    let retry_at = delayed.then(|| db.now().plus(Duration::from_secs(15)));
                    let change = Change::new(service(SERVICES[at]), id(number), event);
                    group.push(Change { retry_at, hold: hold(event), ..change });
                    expected.push(model.record(at, number, event, retry_at, db.now()));
                }
                assert_eq!(store.record(&group).unwrap(), expected);
            }
            Step::Decide(at, number, decision) => {
                let number = number.or_else(|| Some(model.head(at)?.number)).unwrap_or(0);
                let attempt = model.present(at, number).map_or(1, |p| p.attempts);
                let (service, id) = (service(SERVICES[at]), id(number));
                let decided = store.decide(&service, &id, attempt, decision).unwrap();
                assert_eq!(decided, model.decide(at, number, decision));
            }
            Step::Hold(at, number, holds) => {
                let number = number.or_else(|| Some(model.head(at)?.number)).unwrap_or(0);
                let (service, id) = (service(SERVICES[at]), id(number));
                let done = if holds {
                    store.hold_batch(&service, &id, "look first")
                } else {
                    store.release_batch(&service, &id, None)
                };
                assert_eq!(done.unwrap(), model.hold(at, number, holds, db.now()));
            }
            Step::Act(at, number, verb, dry_run) => {
                let number = number.or_else(|| Some(model.head(at)?.number)).unwrap_or(0);
                let (service_id, batch_id) = (service(SERVICES[at]), id(number));
                let target = OperatorTarget::Batch { service_id, batch_id, attempt: None };
                let done = act(&store, verb, target, dry_run);
                let mut changed = model.clone();
                let expected = match verb {
                    OperatorVerb::Cancel => changed.cancel(at, number),
                    _ => changed.retry(at, number),
                };
                assert_eq!(of_batch(done), expected);
                if !dry_run {
                    model = changed;
                }
            }
            Step::Pause(at, pauses) => {
                let verb = if pauses { OperatorVerb::Pause } else { OperatorVerb::Resume };
                let target = at.map(|at| OperatorTarget::Service(service(SERVICES[at])));
                let target = target.unwrap_or(OperatorTarget::AllServices);
                let done = match act(&store, verb, target, false) {
                    ActionOutcome::Done(_) => Some(true),
                    ActionOutcome::Refused(_) => Some(false),
                    ActionOutcome::NotFound => None,
                };
                assert_eq!(done, model.pause(at, pauses));
            }
            Step::Wait(seconds) => drop(db.later(seconds)),
            Step::Restart => {
                drop(store);
                store = db.open();
            }
        }
        for (at, name) in SERVICES.iter().enumerate() {
            let open = store.open_batches(&service(name), 99).unwrap();
            let open: Vec<_> = open.into_iter().map(|b| (b.batch_id, b.progress, b.held)).collect();
            let expected: Vec<_> =
                model.open(at).into_iter().map(|(n, p, held)| (id(n), p, held)).collect();
            assert_eq!(open, expected);
            assert_eq!(store.depth(&service(name)).unwrap(), expected.len() as u64);
        }
    }
}

fn act(
    store: &TestStore,
    verb: OperatorVerb,
    target: OperatorTarget,
    dry_run: bool,
) -> ActionOutcome {
    let operator = Operator::program();
    store.act(&OperatorAction { verb, target, reason: None, operator, dry_run }).unwrap()
}

fn of_batch(outcome: ActionOutcome) -> ChangeOutcome {
    match outcome {
        ActionOutcome::Done(ActionEffect { state, next_waits, .. }) => {
            ChangeOutcome::Applied { state: state.unwrap(), next_waits }
        }
        ActionOutcome::Refused(ActionRefusal::Batch(stale)) => ChangeOutcome::Stale(stale),
        ActionOutcome::NotFound => ChangeOutcome::NotFound,
        other => panic!("{other:?}"),
    }
}

fn add(store: &TestStore, model: &mut Model, batches: &[(usize, u64)]) {
    let new: Vec<_> = batches.iter().map(|(at, number)| batch(SERVICES[*at], *number)).collect();
    let expected: Vec<_> = batches.iter().map(|(at, number)| model.add(*at, *number)).collect();
    assert_eq!(store.add(&[&new]).unwrap(), [Ok(expected)]);
}

fn take(store: &TestStore, model: &mut Model, services: &[usize], now: Timestamp) {
    let names: Vec<&str> = services.iter().map(|at| SERVICES[*at]).collect();
    let taken: Vec<_> =
        store.take(&names).into_iter().map(|taken| (taken.batch_id, taken.attempt)).collect();
    let expected: Vec<_> = (0..SERVICES.len())
        .filter(|at| services.contains(at))
        .filter_map(|at| model.take(at, now))
        .map(|(number, attempt)| (id(number), attempt))
        .collect();
    assert_eq!(taken, expected);
}
