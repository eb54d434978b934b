//! The way back: what became of a batch is asked, and recorded in the store.

use grid_batch_core::{AttemptId, BatchState, Event, Evidence, LedgerStatus, Outcome, transition};

use crate::{
    action::{
        Action,
        AnswerStep::{self, Ask, Record, Recover},
        BatchAt, Desk,
    },
    ledger,
    protocol::{Absence, Fence, Found, Protocol, Wait},
    state::{Batch, Hand, State},
    submissions,
};

pub fn offer(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for desk in state.desks() {
        let mut offer = |step| actions.push(Action::Answer(step, desk));
        if state.work(desk).hand.is_some_and(|hand| hand.learned.is_some()) {
            offer(Record);
        }
        if finds_a_lost_batch(state, desk) {
            offer(Recover);
        }
        if question(protocol, state, desk).is_some() {
            offer(Ask);
        }
    }
}

pub fn go(protocol: &Protocol, state: &mut State, step: AnswerStep, desk: Desk) {
    match step {
        Recover => recover(protocol, state, desk),
        Ask => state.work_mut(desk).hand = question(protocol, state, desk),
        Record => {
            if let Some(hand) = state.work_mut(desk).hand.take() {
                record(protocol, state, desk.service, hand);
            }
        }
    }
}

/// A desk with something that would change nothing any more. To drop it first makes no difference,
/// and leaves fewer states to look at.
pub fn comes_too_late(protocol: &Protocol, state: &State) -> Option<Action> {
    if protocol.rules.fence != Fence::AttemptId {
        return None;
    }
    let is_too_late = |desk: &Desk| {
        let epoch = state.services[desk.service].epoch;
        let hand = state.work(*desk).hand;
        hand.is_some_and(|hand| hand.learned.is_some() && hand.attempt_id.epoch != epoch)
    };
    state.desks().find(is_too_late).map(|desk| Action::Answer(Record, desk))
}

/// A batch that was handed out in an earlier epoch: whoever had it lost the service.
fn finds_a_lost_batch(state: &State, desk: Desk) -> bool {
    let service = &state.services[desk.service];
    let is_lost = |head: usize| {
        let batch = &service.batches[head];
        batch.progress.state == BatchState::Submitting && batch.taken_in < service.epoch
    };
    state.owns(desk) && state.work(desk).hand.is_none() && service.head().is_some_and(is_lost)
}

fn recover(protocol: &Protocol, state: &mut State, desk: Desk) {
    let service = &mut state.services[desk.service];
    let Some(head) = service.head() else { return };
    let progress = &mut service.batches[head].progress;
    match protocol.rules.found {
        Found::InDoubt => {
            let lost = Event::OwnerLost { attempt: progress.attempts };
            *progress = transition(*progress, lost).unwrap_or(*progress);
        }
        Found::SentAgain => {
            progress.attempts += 1;
            submissions::begin(protocol, state, desk, head);
        }
    }
}

/// The ledger's answer about the batch that is under way, if it brings anything new.
fn question(protocol: &Protocol, state: &State, desk: Desk) -> Option<Hand> {
    let service = &state.services[desk.service];
    let head = service.head()?;
    let batch = &service.batches[head];
    let may_ask =
        state.owns(desk) && state.work(desk).hand.is_none() && batch.progress.state.awaits_poller();
    if !may_ask {
        return None;
    }
    let attempt = batch.progress.attempts;
    let learned = match ledger::status(batch) {
        LedgerStatus::NotReported if is_absent(protocol, state, desk, batch) => {
            Event::Evidence { attempt, evidence: Evidence::Absent }
        }
        status => Event::Status { attempt: Some(attempt), status },
    };
    let is_news = transition(batch.progress, learned) != Ok(batch.progress);
    let attempt_id = AttemptId { attempt, epoch: service.epoch };
    is_news.then_some(Hand { batch: head, attempt_id, in_time: true, learned: Some(learned) })
}

/// Whether what the ledger does not know counts as absent.
fn is_absent(protocol: &Protocol, state: &State, desk: Desk, batch: &Batch) -> bool {
    let was_waited_out = match protocol.rules.wait {
        Wait::FromMarking if protocol.world.pauses => true,
        Wait::FromMarking | Wait::FromEnding => batch.strays == 0,
    };
    let was_sent_from_here = batch.taken_in == state.work(desk).epoch;
    was_waited_out
        && match protocol.rules.absence {
            Absence::Said => true,
            Absence::Watched => batch.ledger.watched,
            Absence::WatchedBySender => batch.ledger.watched && was_sent_from_here,
        }
}

/// Changes the lane if the attempt id is still good and core's rule agrees.
fn record(protocol: &Protocol, state: &mut State, service: usize, hand: Hand) {
    let Hand { batch, attempt_id, learned: Some(event), .. } = hand else { return };
    if protocol.rules.fence == Fence::AttemptId && attempt_id.epoch != state.services[service].epoch
    {
        return;
    }
    let batch = state.batch_mut(BatchAt { service, batch });
    if shows_that_it_came_to_nothing(event) {
        batch.cleared = batch.cleared.max(attempt_id.attempt);
    }
    let event = match protocol.rules.fence {
        Fence::Nothing => about_attempt(event, batch.progress.attempts),
        Fence::AttemptId | Fence::Attempt => event,
    };
    batch.progress = transition(batch.progress, event).unwrap_or(batch.progress);
}

fn shows_that_it_came_to_nothing(event: Event) -> bool {
    matches!(
        event,
        Event::Outcome { outcome: Outcome::NotSent, .. }
            | Event::Evidence { evidence: Evidence::Absent, .. }
    )
}

/// The same event, as if it were about this attempt.
fn about_attempt(event: Event, attempt: u32) -> Event {
    match event {
        Event::Outcome { outcome, .. } => Event::Outcome { attempt, outcome },
        Event::Evidence { evidence, .. } => Event::Evidence { attempt, evidence },
        Event::Status { status, .. } => Event::Status { attempt: Some(attempt), status },
        Event::Taken | Event::OwnerLost { .. } => event,
    }
}
