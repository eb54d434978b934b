//! What a batch went through, as its recorded history shows it.

use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{BatchEvent, EventKind};

/// What a batch waits for during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its turn, or the next attempt.
    Queue,
    /// The answer of a node to an attempt.
    Submit,
    /// The commit of the ledger, or evidence.
    Confirm,
}

impl Phase {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Submit => "submit",
            Self::Confirm => "confirm",
        }
    }

    /// `None`: the batch has ended.
    fn of(state: BatchState) -> Option<Self> {
        match state {
            BatchState::New | BatchState::Delayed | BatchState::Absent => Some(Self::Queue),
            BatchState::Submitting => Some(Self::Submit),
            BatchState::InDoubt | BatchState::Pending | BatchState::Valid => Some(Self::Confirm),
            BatchState::Invalid | BatchState::Committed => None,
        }
    }
}

/// A part of a history in which the phase stays the same.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step<'h> {
    pub(crate) phase: Phase,
    /// Which step of its phase it is, from 1.
    pub(crate) number: usize,
    pub(crate) start: Timestamp,
    /// The event that ended it.
    pub(crate) end: &'h BatchEvent,
    /// Whether it ended without what it waited for.
    pub(crate) has_failed: bool,
}

/// The history of a batch that has ended.
pub(crate) struct Ended<'h> {
    pub(crate) first: &'h BatchEvent,
    pub(crate) last: &'h BatchEvent,
    pub(crate) steps: Vec<Step<'h>>,
    /// The events within steps.
    pub(crate) others: Vec<&'h BatchEvent>,
}

impl<'h> Ended<'h> {
    /// `None`: the batch has not ended. What was recorded after the end is left out, so the result is always the same.
    pub(crate) fn read(history: &'h [BatchEvent]) -> Option<Self> {
        let end = history.iter().position(|event| event.state.is_terminal())?;
        let (last, first) = (&history[end], history.first()?);
        let mut ended = Self { first, last, steps: Vec::new(), others: Vec::new() };
        let (mut phase, mut start) = (Phase::Queue, first.at);
        for event in &history[..=end] {
            let next = Phase::of(event.state);
            if event.kind == EventKind::Accepted && next.is_some() {
                continue;
            }
            if next == Some(phase) && event.kind != EventKind::Submitted {
                ended.others.push(event);
                continue;
            }
            ended.close(phase, start, event, next);
            (phase, start) = (next.unwrap_or(phase), event.at);
        }
        Some(ended)
    }

    fn close(&mut self, phase: Phase, start: Timestamp, end: &'h BatchEvent, next: Option<Phase>) {
        let number = self.steps.iter().filter(|step| step.phase == phase).count() + 1;
        let goes_back = phase != Phase::Queue && next == Some(Phase::Queue);
        let has_failed = goes_back || end.state == BatchState::Invalid;
        self.steps.push(Step { phase, number, start, end, has_failed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::test_history::history;

    fn read(events: &[(EventKind, BatchState)]) -> Vec<(&'static str, usize, i64, i64, bool)> {
        let history = history(events);
        let ended = Ended::read(&history).unwrap();
        let row = |step: &Step<'_>| {
            let (start, end) = (step.start.as_micros(), step.end.at.as_micros());
            (step.phase.name(), step.number, start, end, step.has_failed)
        };
        ended.steps.iter().map(row).collect()
    }

    #[test]
    fn committed_batch_has_three_steps() {
        let steps = read(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::Answered, BatchState::Pending),
            (EventKind::Status, BatchState::Valid),
            (EventKind::Status, BatchState::Committed),
            (EventKind::CommittedAfterInvalid, BatchState::Committed),
        ]);
        let expected =
            [("queue", 1, 0, 1, false), ("submit", 1, 1, 2, false), ("confirm", 1, 2, 4, false)];
        assert_eq!(steps, expected);
    }

    #[test]
    fn each_attempt_has_steps() {
        let steps = read(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::Answered, BatchState::Delayed),
            (EventKind::DelayEnded, BatchState::Delayed),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::OwnerLost, BatchState::InDoubt),
            (EventKind::Evidence, BatchState::Absent),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::Answered, BatchState::Invalid),
        ]);
        let expected = [
            ("queue", 1, 0, 1, false),
            ("submit", 1, 1, 2, true),
            ("queue", 2, 2, 4, false),
            ("submit", 2, 4, 5, false),
            ("confirm", 1, 5, 6, true),
            ("queue", 3, 6, 7, false),
            ("submit", 3, 7, 8, true),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn batch_that_ends_without_an_attempt_was_in_the_queue() {
        let steps = read(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::DependencyInvalid, BatchState::Invalid),
        ]);
        assert_eq!(steps, [("queue", 1, 0, 1, true)]);
    }

    #[test]
    fn open_batch_is_not_read() {
        let open = history(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::Submitted, BatchState::Submitting),
        ]);
        assert!(Ended::read(&open).is_none());
        assert!(Ended::read(&[]).is_none());
    }
}
