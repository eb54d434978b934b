use thiserror::Error;

use crate::{evidence::Evidence, outcome::Outcome, state::BatchState};

/// The state of a batch and its number of attempts.
///
/// The number of attempts tells a late answer about an earlier attempt from one about the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The state.
    pub state: BatchState,
    /// How often the batch was handed to a submitter.
    pub attempts: u32,
    /// The batch is with a submitter and proved to be committed: it ends with any outcome.
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

/// An event of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// It was handed to a submitter.
    Taken,
    /// The submitter has finished one attempt.
    Outcome {
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
    },
    /// The instance that was submitting it is gone.
    OwnerLost {
        /// The attempt whose outcome will never be reported.
        attempt: u32,
    },
    /// The ledger reported its status.
    Status {
        /// The attempt it is about, counted from 1; `None` is the present one.
        attempt: Option<u32>,
        /// The status.
        status: LedgerStatus,
    },
    /// Evidence was found.
    Evidence {
        /// The attempt it is about, counted from 1.
        attempt: u32,
        /// The evidence.
        evidence: Evidence,
    },
    /// The database may have lost what happened to the batch lately: it was restored from a backup, or
    /// it moved to a server that did not have its last commits.
    DatabaseRestored,
}

impl Event {
    /// A status of the present attempt.
    pub const fn status(status: LedgerStatus) -> Self {
        Self::Status { attempt: None, status }
    }

    /// Whether the event proves that the batch was applied. Such an event counts for any attempt and in any
    /// epoch.
    pub const fn is_proof_of_commit(self) -> bool {
        matches!(
            self,
            Self::Status { status: LedgerStatus::Committed, .. }
                | Self::Evidence { evidence: Evidence::Committed, .. }
        )
    }
}

/// The status that a ledger reports for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerStatus {
    /// The ledger did not report a status for the batch. This proves nothing.
    NotReported,
    /// Accepted.
    Pending,
    /// Executed, not committed.
    Valid,
    /// Rejected; final.
    Invalid,
    /// Applied; final.
    Committed,
}

/// Why an event is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransitionError {
    /// The batch has ended; later events are ignored.
    #[error("the batch has ended as {state}; this state is final")]
    Ended {
        /// Its final state.
        state: BatchState,
    },
    /// The event is about another attempt than the present one.
    #[error("the event is about attempt {given}; the batch is at attempt {present}")]
    OtherAttempt {
        /// The attempt the event is about.
        given: u32,
        /// The attempt the batch is at.
        present: u32,
    },
    /// The event is not possible in this state.
    #[error("{event:?} cannot happen to a batch that is {state}")]
    NotPossible {
        /// The state of the batch.
        state: BatchState,
        /// The event.
        event: Event,
    },
}

/// The state machine of batches: the only function that computes a new state.
///
/// A status that says nothing new, or that comes from a node that lags behind, changes nothing. Proof
/// of a commit ends an open batch in any state in which it was ever tried; otherwise a batch that is
/// about to be tried again would be applied twice. A batch that is with a submitter ends only when
/// the submitter is done: its service must not continue while a POST of the batch may still arrive.
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
    // What is proved stays proved, and the batch still ends with its submitter.
    if commit_proven && event == Event::DatabaseRestored {
        return Ok(from);
    }
    match next_state(state, event) {
        Some(state) if event == Event::Taken => {
            Ok(Progress { state, attempts: attempts.saturating_add(1), commit_proven })
        }
        Some(_) if commit_proven => {
            Ok(Progress { state: BatchState::Committed, attempts, commit_proven: false })
        }
        Some(state) => Ok(Progress { state, attempts, commit_proven }),
        None => Err(TransitionError::NotPossible { state, event }),
    }
}

/// The attempt that an event must be about; `None` for a proof of commit, which counts for any.
fn about_attempt(event: Event) -> Option<u32> {
    match event {
        Event::Taken | Event::DatabaseRestored => None,
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
        (_, Event::DatabaseRestored) => Some(BatchState::InDoubt),
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
    const ALLOWS_RETRY: [Evidence; 2] = [Evidence::Absent, Evidence::Repeatable];

    /// Every event of one attempt.
    fn events(attempt: u32) -> Vec<Event> {
        let outcomes = OUTCOMES.map(|outcome| Event::Outcome { attempt, outcome });
        let evidence = EVIDENCE.map(|evidence| Event::Evidence { attempt, evidence });
        [Event::Taken, Event::OwnerLost { attempt }, Event::DatabaseRestored]
            .into_iter()
            .chain(outcomes)
            .chain(STATUSES.map(Event::status))
            .chain(evidence)
            .collect()
    }

    /// A walk: events of up to 4 attempts, most of them of the present one.
    fn walk() -> impl Strategy<Value = Vec<(bool, u32, usize)>> {
        prop::collection::vec((prop::bool::weighted(0.8), 0..4u32, 0..events(0).len()), 0..64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn random_walks_follow_the_rules(walk in walk()) {
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
        fn only_evidence_about_this_attempt_allows_a_retry(
            attempts in 1..4u32,
            given in 0..5u32,
            event in (0..4u32).prop_flat_map(|a| select(events(a))),
        ) {
            let in_doubt = Progress { attempts, ..Progress::at(BatchState::InDoubt) };
            for evidence in ALLOWS_RETRY {
                let about_given = Event::Evidence { attempt: given, evidence };
                prop_assert_eq!(transition(in_doubt, about_given).is_ok(), given == attempts);
            }
            if let Ok(next) = transition(in_doubt, event) {
                let allowed = ALLOWS_RETRY
                    .map(|evidence| Event::Evidence { attempt: attempts, evidence });
                prop_assert_eq!(next.state.awaits_queuer(), allowed.contains(&event));
            }
        }
    }

    /// The edges of the state machine, one a line.
    #[test]
    fn transitions_match_the_table() {
        let mut edges = Vec::new();
        for state in BatchState::ALL {
            let from = Progress { attempts: 1, ..Progress::at(state) };
            for event in events(1) {
                if let Ok(to) = transition(from, event)
                    && to.state != state
                {
                    let name = match event {
                        Event::Outcome { outcome, .. } => format!("{outcome:?}"),
                        Event::Status { status, .. } => format!("status {status:?}"),
                        Event::Evidence { evidence, .. } => format!("evidence {evidence:?}"),
                        Event::OwnerLost { .. } => "OwnerLost".to_owned(),
                        Event::DatabaseRestored => "DatabaseRestored".to_owned(),
                        Event::Taken => "Taken".to_owned(),
                    };
                    edges.push(format!("{state:?} {name} -> {:?}", to.state));
                }
            }
        }
        let expected = "\
New Taken -> Submitting
New DatabaseRestored -> InDoubt
Submitting OwnerLost -> InDoubt
Submitting DatabaseRestored -> InDoubt
Submitting Accepted -> Pending
Submitting Busy -> Delayed
Submitting NotSent -> Delayed
Submitting Parked -> Delayed
Submitting Rejected -> Invalid
Submitting Refused -> Delayed
Submitting Ambiguous -> InDoubt
Delayed Taken -> Submitting
Delayed DatabaseRestored -> InDoubt
Delayed status Committed -> Committed
Delayed evidence Committed -> Committed
InDoubt status Pending -> Pending
InDoubt status Valid -> Valid
InDoubt status Invalid -> Invalid
InDoubt status Committed -> Committed
InDoubt evidence Committed -> Committed
InDoubt evidence Present -> Pending
InDoubt evidence Absent -> Absent
InDoubt evidence Repeatable -> Absent
Absent Taken -> Submitting
Absent DatabaseRestored -> InDoubt
Absent status Committed -> Committed
Absent evidence Committed -> Committed
Pending DatabaseRestored -> InDoubt
Pending status Valid -> Valid
Pending status Invalid -> Invalid
Pending status Committed -> Committed
Pending evidence Committed -> Committed
Pending evidence Absent -> Absent
Pending evidence Repeatable -> Absent
Valid DatabaseRestored -> InDoubt
Valid status Invalid -> Invalid
Valid status Committed -> Committed
Valid evidence Committed -> Committed
Valid evidence Absent -> Absent
Valid evidence Repeatable -> Absent";
        assert_eq!(edges.join("\n"), expected);
    }

    #[test]
    fn commit_proved_while_submitting_waits_for_the_submitter() {
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
                    Event::DatabaseRestored => {
                        assert_eq!(transition(commit_proven, event), Ok(commit_proven));
                    }
                    _ if event.is_proof_of_commit() => {}
                    _ => assert!(transition(commit_proven, event).is_err(), "{event:?}"),
                }
            }
        }
    }

    #[test]
    fn status_of_an_earlier_attempt_counts_only_if_committed() {
        let second = Progress { attempts: 2, ..Progress::at(BatchState::Pending) };
        let of_first = |status| Event::Status { attempt: Some(1), status };
        assert!(transition(second, of_first(LedgerStatus::Invalid)).is_err());
        let committed = transition(second, of_first(LedgerStatus::Committed)).unwrap();
        assert_eq!(committed.state, BatchState::Committed);
    }

    #[test]
    fn late_outcome_of_an_earlier_attempt_is_refused() {
        let second = Progress { attempts: 2, ..Progress::at(BatchState::Submitting) };
        let late = Event::Outcome { attempt: 1, outcome: Outcome::NotSent };
        assert_eq!(
            transition(second, late),
            Err(TransitionError::OtherAttempt { given: 1, present: 2 })
        );
    }

    #[test]
    fn unreported_status_changes_nothing() {
        for state in [BatchState::InDoubt, BatchState::Pending, BatchState::Valid] {
            let at = Progress { attempts: 1, ..Progress::at(state) };
            assert_eq!(transition(at, Event::status(LedgerStatus::NotReported)), Ok(at));
        }
    }

    #[test]
    fn lagging_node_does_not_move_a_batch_back() {
        let valid = Progress { attempts: 1, ..Progress::at(BatchState::Valid) };
        assert_eq!(transition(valid, Event::status(LedgerStatus::Pending)), Ok(valid));
        let present = Event::Evidence { attempt: 1, evidence: Evidence::Present };
        assert_eq!(transition(valid, present), Ok(valid));
    }
}
