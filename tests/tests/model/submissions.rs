//! A batch's way from the store to the ledger: the mark, the POST, and what the sender learns.

use grid_batch_core::{AttemptId, Event, Outcome, transition};

use crate::{
    action::{
        Action, BatchAt, Desk,
        SubmissionStep::{self, Arrive, ArriveUnanswered, GiveUp, Mark, NotSent},
    },
    ledger,
    protocol::{Absence, Marking, Protocol},
    state::{Hand, Row, State},
};

pub fn offer(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for desk in state.desks() {
        let mut offer = |step| actions.push(Action::Submission(step, desk));
        if may_mark(protocol, state, desk) {
            offer(Mark);
        }
        if state.work(desk).is_sending() {
            offer(Arrive);
            if state.troubles.ledger > 0 {
                [NotSent, ArriveUnanswered, GiveUp].into_iter().for_each(offer);
            }
        }
    }
}

/// Marked is the batch in the lane, if core's rule lets it be taken. One that is marked later than
/// the first expiry might still be under way at the second.
fn may_mark(protocol: &Protocol, state: &State, desk: Desk) -> bool {
    let work = state.work(desk);
    let claims = match protocol.rules.marking {
        Marking::OwnerInTime => state.owns(desk) && state.row(desk) == Row::Live,
        Marking::OwnerLate => state.owns(desk) && state.row(desk) != Row::Over,
        Marking::FormerOwner => work.epoch > 0,
    };
    let service = &state.services[desk.service];
    let is_ready = |head: usize| transition(service.batches[head].progress, Event::Taken).is_ok();
    claims && work.hand.is_none() && service.head().is_some_and(is_ready)
}

pub fn go(protocol: &Protocol, state: &mut State, step: SubmissionStep, desk: Desk) {
    match step {
        Mark => mark(protocol, state, desk),
        NotSent => learn_at_a_price(state, desk, Outcome::NotSent),
        Arrive => {
            arrive(protocol, state, desk);
            learn(state, desk, Outcome::Accepted);
        }
        ArriveUnanswered => {
            arrive(protocol, state, desk);
            learn_at_a_price(state, desk, Outcome::Ambiguous);
        }
        GiveUp => {
            if let Some(hand) = state.work(desk).hand {
                state.services[desk.service].batches[hand.batch].strays += 1;
            }
            learn_at_a_price(state, desk, Outcome::Ambiguous);
        }
    }
}

fn mark(protocol: &Protocol, state: &mut State, desk: Desk) {
    let service = &mut state.services[desk.service];
    let Some(head) = service.head() else { return };
    if let Ok(taken) = transition(service.batches[head].progress, Event::Taken) {
        service.batches[head].progress = taken;
        begin(protocol, state, desk, head);
    }
}

/// Hands the batch, whose attempt was just counted, to the submitter.
pub fn begin(protocol: &Protocol, state: &mut State, desk: Desk, batch: usize) {
    look_for_an_earlier_attempt(state, BatchAt { service: desk.service, batch });
    let service = &mut state.services[desk.service];
    let epoch = service.epoch;
    let marked = &mut service.batches[batch];
    marked.taken_in = epoch;
    marked.ledger.watched = protocol.rules.absence != Absence::Said;
    let attempt_id = AttemptId { attempt: marked.progress.attempts, epoch };
    let in_time = state.row(desk) == Row::Live;
    state.work_mut(desk).hand = Some(Hand { batch, attempt_id, in_time, learned: None });
}

fn look_for_an_earlier_attempt(state: &mut State, at: BatchAt) {
    let BatchAt { service, batch } = at;
    let earlier = &state.services[service].batches[batch];
    let is_sent_again = earlier.progress.attempts > 1;
    let blindly = is_sent_again && earlier.cleared + 1 < earlier.progress.attempts;
    let ledger = earlier.ledger;
    let may_still_come = earlier.strays > 0 || ledger.accepted > 0 || ledger.applied > 0;
    let is_being_sent = state
        .desks()
        .any(|desk| desk.service == service && state.work(desk).is_sending_batch(batch));
    state.seen.sent_blindly |= blindly;
    state.seen.sent_too_early |= is_sent_again && (may_still_come || is_being_sent);
}

fn arrive(protocol: &Protocol, state: &mut State, desk: Desk) {
    if let Some(hand) = state.work(desk).hand {
        let at = BatchAt { service: desk.service, batch: hand.batch };
        ledger::accept(protocol, state.batch_mut(at));
    }
}

fn learn(state: &mut State, desk: Desk, outcome: Outcome) {
    if let Some(hand) = &mut state.work_mut(desk).hand {
        hand.learned = Some(Event::Outcome { attempt: hand.attempt_id.attempt, outcome });
    }
}

fn learn_at_a_price(state: &mut State, desk: Desk, outcome: Outcome) {
    state.troubles.ledger -= 1;
    learn(state, desk, outcome);
}
