use thiserror::Error;

use crate::{evidence::Evidence, outcome::Outcome, state::BatchState};

/// How far a batch has come: its state, and how often it was handed to a submitter.
///
/// The number of attempts tells a late answer about an earlier attempt from one about the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Where the batch stands.
    pub state: BatchState,
    /// How often the queuer handed it to a submitter.
    pub attempts: u32,
    /// It is with a submitter, and proved to be committed: whatever the submitter says ends it.
    pub commit_proven: bool,
}

impl Progress {
    /// A batch that was just stored.
    pub const NEW: Self = Self::at(BatchState::New);

    /// A batch in this state that was never tried.
    pub(crate) const fn at(state: BatchState) -> Self {
        Self { state, attempts: 0, commit_proven: false }
    }
}

/// What can happen to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The queuer hands it to a submitter.
    Taken,
    /// The submitter is done with one attempt.
    Outcome {
        /// Which attempt, counted from 1.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
    },
    /// A new owner finds it with a submitter that is gone.
    OwnerLost {
        /// The attempt that nobody will report on.
        attempt: u32,
    },
    /// The ledger was asked for its status, and answered.
    Status {
        /// The attempt it is about, counted from 1; `None`: whichever is the present one.
        attempt: Option<u32>,
        /// The answer.
        status: LedgerStatus,
    },
    /// Evidence was looked for.
    Evidence {
        /// The attempt it is about, counted from 1.
        attempt: u32,
        /// What was found.
        evidence: Evidence,
    },
}

impl Event {
    /// The ledger's answer about the present attempt, whichever that is.
    pub const fn status(status: LedgerStatus) -> Self {
        Self::Status { attempt: None, status }
    }

    /// Whether it proves that the batch was applied: then it counts whoever brings it, about
    /// whichever attempt, and in whatever epoch.
    pub const fn is_proof_of_commit(self) -> bool {
        matches!(
            self,
            Self::Status { status: LedgerStatus::Committed, .. }
                | Self::Evidence { evidence: Evidence::Committed, .. }
        )
    }
}

/// What a ledger answers when it is asked for a batch's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerStatus {
    /// The ledger did not report a status for the batch: this proves nothing.
    NotReported,
    /// Accepted.
    Pending,
    /// Executed, not committed.
    Valid,
    /// Refused for good.
    Invalid,
    /// Applied for good.
    Committed,
}

/// Why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TransitionError {
    /// The batch has ended: nothing that is said later counts.
    #[error("the batch is {state} for good")]
    Ended {
        /// How it ended.
        state: BatchState,
    },
    /// The event is about an attempt that is not the present one.
    #[error("the event is about attempt {given}; the batch is at attempt {present}")]
    OtherAttempt {
        /// The attempt the event is about.
        given: u32,
        /// The attempt the batch is at.
        present: u32,
    },
    /// The event cannot happen to a batch in this state.
    #[error("{event:?} cannot happen to a batch that is {state}")]
    NotDrawn {
        /// Where the batch stands.
        state: BatchState,
        /// What was said to have happened.
        event: Event,
    },
}

/// Where a batch goes from here: the one place that knows.
///
/// A ledger that answers without news, or is behind another of its nodes, leaves the batch where
/// it is. Proof of a commit counts wherever an open batch stands that was ever tried: were it
/// refused, a batch about to be tried again would be applied twice. Only where it is with a
/// submitter does it end when the submitter is done: its service must not go on while a POST of it
/// may still arrive.
///
/// ```
/// use grid_batch_core::{BatchState, Event, LedgerStatus, Outcome, Progress, transition};
///
/// let taken = transition(Progress::NEW, Event::Taken)?;
/// let sent = transition(taken, Event::Outcome { attempt: 1, outcome: Outcome::Accepted })?;
/// let ended = transition(sent, Event::status(LedgerStatus::Committed))?;
/// assert_eq!(ended.state, BatchState::Committed);
/// assert!(transition(ended, Event::status(LedgerStatus::Invalid)).is_err());
/// # Ok::<(), grid_batch_core::TransitionError>(())
/// ```
pub fn transition(from: Progress, event: Event) -> Result<Progress, TransitionError> {
    let Progress { state, attempts, commit_proven } = from;
    if state.is_terminal() {
        return Err(TransitionError::Ended { state });
    }
    if let Some(given) = about_attempt(event)
        && given != attempts
    {
        return Err(TransitionError::OtherAttempt { given, present: attempts });
    }
    if state == BatchState::Submitting && event.is_proof_of_commit() {
        return Ok(Progress { commit_proven: true, ..from });
    }
    match next_state(state, event) {
        Some(state) if event == Event::Taken => {
            Ok(Progress { state, attempts: attempts.saturating_add(1), commit_proven })
        }
        Some(_) if commit_proven => {
            Ok(Progress { state: BatchState::Committed, attempts, commit_proven: false })
        }
        Some(state) => Ok(Progress { state, attempts, commit_proven }),
        None => Err(TransitionError::NotDrawn { state, event }),
    }
}

/// The attempt that an event must be about to count; a proof of commit counts whichever it is about.
fn about_attempt(event: Event) -> Option<u32> {
    match event {
        Event::Taken => None,
        _ if event.is_proof_of_commit() => None,
        Event::Status { attempt, .. } => attempt,
        Event::Outcome { attempt, .. }
        | Event::OwnerLost { attempt }
        | Event::Evidence { attempt, .. } => Some(attempt),
    }
}

fn next_state(state: BatchState, event: Event) -> Option<BatchState> {
    use BatchState::{Absent, Delayed, New, Submitting};
    match (state, event) {
        (New | Delayed | Absent, Event::Taken) => Some(Submitting),
        (Submitting, Event::Outcome { outcome, .. }) => Some(after_outcome(outcome)),
        (Submitting, Event::OwnerLost { .. }) => Some(BatchState::InDoubt),
        (_, Event::Status { status, .. }) => after_status(state, status),
        (_, Event::Evidence { evidence, .. }) => after_evidence(state, evidence),
        _ => None,
    }
}

fn after_outcome(outcome: Outcome) -> BatchState {
    match outcome {
        Outcome::Accepted => BatchState::Pending,
        Outcome::Busy | Outcome::NotSent | Outcome::Parked | Outcome::Refused => {
            BatchState::Delayed
        }
        Outcome::Rejected => BatchState::Invalid,
        Outcome::Ambiguous => BatchState::InDoubt,
    }
}

fn after_status(state: BatchState, status: LedgerStatus) -> Option<BatchState> {
    match status {
        LedgerStatus::Committed => committed(state),
        _ if !state.awaits_poller() => None,
        LedgerStatus::NotReported => Some(state),
        LedgerStatus::Pending if state == BatchState::Valid => Some(state),
        LedgerStatus::Pending => Some(BatchState::Pending),
        LedgerStatus::Valid => Some(BatchState::Valid),
        LedgerStatus::Invalid => Some(BatchState::Invalid),
    }
}

fn after_evidence(state: BatchState, evidence: Evidence) -> Option<BatchState> {
    match evidence {
        Evidence::Committed => committed(state),
        _ if !state.awaits_poller() => None,
        Evidence::Present if state == BatchState::InDoubt => Some(BatchState::Pending),
        Evidence::Present | Evidence::Inconclusive => Some(state),
        Evidence::Absent | Evidence::Repeatable => Some(BatchState::Absent),
    }
}

fn committed(state: BatchState) -> Option<BatchState> {
    (state != BatchState::New).then_some(BatchState::Committed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, sample::select};

    const OUTCOMES: [Outcome; 7] = [
        Outcome::Accepted,
        Outcome::Busy,
        Outcome::NotSent,
        Outcome::Parked,
        Outcome::Rejected,
        Outcome::Refused,
        Outcome::Ambiguous,
    ];
    const STATUSES: [LedgerStatus; 5] = [
        LedgerStatus::NotReported,
        LedgerStatus::Pending,
        LedgerStatus::Valid,
        LedgerStatus::Invalid,
        LedgerStatus::Committed,
    ];
    const EVIDENCE: [Evidence; 5] = [
        Evidence::Committed,
        Evidence::Present,
        Evidence::Absent,
        Evidence::Repeatable,
        Evidence::Inconclusive,
    ];
    const LETS_SEND_AGAIN: [Evidence; 2] = [Evidence::Absent, Evidence::Repeatable];

    /// Every event about one attempt.
    fn events(attempt: u32) -> Vec<Event> {
        let outcomes = OUTCOMES.map(|outcome| Event::Outcome { attempt, outcome });
        let evidence = EVIDENCE.map(|evidence| Event::Evidence { attempt, evidence });
        [Event::Taken, Event::OwnerLost { attempt }]
            .into_iter()
            .chain(outcomes)
            .chain(STATUSES.map(Event::status))
            .chain(evidence)
            .collect()
    }

    /// A walk: events about attempts up to 4, most of them about the present one.
    fn walk() -> impl Strategy<Value = Vec<(bool, u32, usize)>> {
        prop::collection::vec((prop::bool::weighted(0.8), 0..4u32, 0..events(0).len()), 0..64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_walk_leaves_the_drawing(walk in walk()) {
            let mut at = Progress::NEW;
            let mut evidence_of_absence = false;
            for (present, other, kind) in walk {
                let event = events(if present { at.attempts } else { other })[kind];
                let Ok(next) = transition(at, event) else { continue };

                prop_assert!(!at.state.is_terminal(), "{at:?} was left by {event:?}");
                let pair = BatchState::of(next.state.submitted(), next.state.dlt_status());
                prop_assert_eq!(pair, Ok(next.state));

                if event == Event::Taken {
                    let was_sent = at.state.submitted();
                    let certainly_not_there =
                        matches!(at.state, BatchState::New | BatchState::Delayed) || evidence_of_absence;
                    prop_assert!(!was_sent && certainly_not_there, "{at:?} was taken");
                    let taken = Progress::at(BatchState::Submitting);
                    prop_assert_eq!(next, Progress { attempts: at.attempts + 1, ..taken });
                } else {
                    prop_assert_eq!(next.attempts, at.attempts);
                }
                evidence_of_absence = next.state == BatchState::Absent;
                at = next;
            }
        }

        #[test]
        fn what_was_in_doubt_is_tried_again_only_with_evidence_about_the_present_attempt(
            attempts in 1..4u32,
            given in 0..5u32,
            event in (0..4u32).prop_flat_map(|a| select(events(a))),
        ) {
            let doubt = Progress { attempts, ..Progress::at(BatchState::InDoubt) };
            for evidence in LETS_SEND_AGAIN {
                let about_given = Event::Evidence { attempt: given, evidence };
                prop_assert_eq!(transition(doubt, about_given).is_ok(), given == attempts);
            }
            if let Ok(next) = transition(doubt, event) {
                let told = LETS_SEND_AGAIN
                    .map(|evidence| Event::Evidence { attempt: attempts, evidence });
                prop_assert_eq!(next.state.awaits_queuer(), told.contains(&event));
            }
        }
    }

    /// The edges of the drawing, as `from event -> to`, one a line.
    #[test]
    fn the_edges_are_these() {
        let mut drawn = Vec::new();
        for state in BatchState::ALL {
            let from = Progress { attempts: 1, ..Progress::at(state) };
            for event in events(1) {
                if let Ok(to) = transition(from, event)
                    && to.state != state
                {
                    let name = match event {
                        Event::Outcome { outcome, .. } => format!("{outcome:?}"),
                        Event::Status { status, .. } => format!("says {status:?}"),
                        Event::Evidence { evidence, .. } => format!("proves {evidence:?}"),
                        Event::OwnerLost { .. } => "OwnerLost".to_owned(),
                        Event::Taken => "Taken".to_owned(),
                    };
                    drawn.push(format!("{state:?} {name} -> {:?}", to.state));
                }
            }
        }
        let expected = "\
New Taken -> Submitting
Submitting OwnerLost -> InDoubt
Submitting Accepted -> Pending
Submitting Busy -> Delayed
Submitting NotSent -> Delayed
Submitting Parked -> Delayed
Submitting Rejected -> Invalid
Submitting Refused -> Delayed
Submitting Ambiguous -> InDoubt
Delayed Taken -> Submitting
Delayed says Committed -> Committed
Delayed proves Committed -> Committed
InDoubt says Pending -> Pending
InDoubt says Valid -> Valid
InDoubt says Invalid -> Invalid
InDoubt says Committed -> Committed
InDoubt proves Committed -> Committed
InDoubt proves Present -> Pending
InDoubt proves Absent -> Absent
InDoubt proves Repeatable -> Absent
Absent Taken -> Submitting
Absent says Committed -> Committed
Absent proves Committed -> Committed
Pending says Valid -> Valid
Pending says Invalid -> Invalid
Pending says Committed -> Committed
Pending proves Committed -> Committed
Pending proves Absent -> Absent
Pending proves Repeatable -> Absent
Valid says Invalid -> Invalid
Valid says Committed -> Committed
Valid proves Committed -> Committed
Valid proves Absent -> Absent
Valid proves Repeatable -> Absent";
        assert_eq!(drawn.join("\n"), expected);
    }

    #[test]
    fn a_batch_proved_committed_while_with_a_submitter_ends_when_the_submitter_is_done() {
        let submitting = Progress { attempts: 2, ..Progress::at(BatchState::Submitting) };
        for proof in events(1).into_iter().filter(|event| event.is_proof_of_commit()) {
            let commit_proven = transition(submitting, proof).unwrap();
            assert_eq!(commit_proven, Progress { commit_proven: true, ..submitting });
            assert_eq!(transition(commit_proven, proof), Ok(commit_proven));
            for event in events(2) {
                match event {
                    Event::Outcome { .. } | Event::OwnerLost { .. } => {
                        let ended = transition(commit_proven, event).unwrap();
                        let expected = Progress { state: BatchState::Committed, ..submitting };
                        assert_eq!(ended, expected, "{event:?}");
                    }
                    _ if event.is_proof_of_commit() => {}
                    _ => assert!(transition(commit_proven, event).is_err(), "{event:?}"),
                }
            }
        }
    }

    #[test]
    fn a_status_of_an_earlier_attempt_counts_only_as_proof_of_commit() {
        let second = Progress { attempts: 2, ..Progress::at(BatchState::Pending) };
        let of_first = |status| Event::Status { attempt: Some(1), status };
        assert!(transition(second, of_first(LedgerStatus::Invalid)).is_err());
        let committed = transition(second, of_first(LedgerStatus::Committed)).unwrap();
        assert_eq!(committed.state, BatchState::Committed);
    }

    #[test]
    fn a_late_answer_about_an_earlier_attempt_changes_nothing() {
        let second = Progress { attempts: 2, ..Progress::at(BatchState::Submitting) };
        let late = Event::Outcome { attempt: 1, outcome: Outcome::NotSent };
        assert_eq!(
            transition(second, late),
            Err(TransitionError::OtherAttempt { given: 1, present: 2 })
        );
    }

    #[test]
    fn a_bare_unknown_moves_nothing() {
        for state in [BatchState::InDoubt, BatchState::Pending, BatchState::Valid] {
            let at = Progress { attempts: 1, ..Progress::at(state) };
            assert_eq!(transition(at, Event::status(LedgerStatus::NotReported)), Ok(at));
        }
    }

    #[test]
    fn a_node_that_is_behind_moves_nothing_back() {
        let valid = Progress { attempts: 1, ..Progress::at(BatchState::Valid) };
        assert_eq!(transition(valid, Event::status(LedgerStatus::Pending)), Ok(valid));
        let present = Event::Evidence { attempt: 1, evidence: Evidence::Present };
        assert_eq!(transition(valid, present), Ok(valid));
    }
}
