use thiserror::Error;

use crate::batches::{BatchState, Decision};
use crate::evidence::Evidence;
use crate::ledger::Outcome;

/// The state of a batch and its number of attempts.
///
/// The number of attempts distinguishes a late answer about an earlier attempt from one about the present attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The state.
    pub state: BatchState,
    /// How often the batch was handed to a submitter.
    pub attempts: u32,
    /// Whether the batch is proved to be committed while it is with a submitter, so that any outcome ends it.
    pub commit_proven: bool,
    /// Whether an earlier attempt may still be on its way to the ledger. This is so if evidence of absence, which only
    /// covers requests that have arrived, sent the batch back to the queue, or if the database went back and may have
    /// lost an attempt.
    pub earlier_may_arrive: bool,
    /// Whether the ledger reported the present attempt as invalid, or rejected it, while an earlier one might still
    /// arrive.
    pub invalid_reported: bool,
}

impl Progress {
    /// A batch that was just stored.
    pub const NEW: Self = Self::at(BatchState::New);

    /// A batch in this state that was never tried.
    pub(crate) const fn at(state: BatchState) -> Self {
        Self {
            state,
            attempts: 0,
            commit_proven: false,
            earlier_may_arrive: false,
            invalid_reported: false,
        }
    }

    /// Whether the batch stays open only because an earlier attempt may still arrive.
    pub const fn waits_for_earlier(self) -> bool {
        self.earlier_may_arrive && self.invalid_reported
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
        /// The attempt it is about, counted from 1; 0 for a batch of a restored database that was never
        /// tried.
        attempt: u32,
        /// The evidence.
        evidence: Evidence,
    },
    /// The database may have lost the latest changes of the batch: it was restored from a backup, or moved to a server
    /// without its last commits.
    DatabaseRestored,
    /// No attempt before this one can arrive at the ledger any more, because more time has passed than a proxy, the
    /// network or the ledger keeps a request.
    EarlierCannotArrive {
        /// The present attempt.
        attempt: u32,
    },
    /// A transaction that it depends on is in a batch that ended as invalid: the ledger could never apply
    /// it, so it is not sent.
    DependencyInvalid,
    /// An operator decided about it.
    Decided {
        /// The attempt that the operator looked at; 0 for a batch that was never tried.
        attempt: u32,
        /// The decision.
        decision: Decision,
    },
}

impl Event {
    /// A status of the present attempt.
    pub const fn status(status: LedgerStatus) -> Self {
        Self::Status { attempt: None, status }
    }

    /// The attempt that the event is about, if it names one.
    pub const fn attempt(self) -> Option<u32> {
        match self {
            Self::Outcome { attempt, .. }
            | Self::OwnerLost { attempt }
            | Self::Evidence { attempt, .. }
            | Self::EarlierCannotArrive { attempt }
            | Self::Decided { attempt, .. } => Some(attempt),
            Self::Status { attempt, .. } => attempt,
            Self::Taken | Self::DatabaseRestored | Self::DependencyInvalid => None,
        }
    }

    /// Whether the event ends a submission: the submitter has its outcome, or has stopped.
    pub const fn ends_submission(self) -> bool {
        matches!(self, Self::Outcome { .. } | Self::OwnerLost { .. })
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

    /// The event to apply to a batch that is held until an operator decides. Evidence does not cause such a batch to be
    /// submitted again, so the ledger is still asked about it. A batch that the ledger has reported as invalid is not
    /// submitted again because of evidence anyway.
    #[must_use]
    pub const fn while_held_until_decision(self, from: Progress) -> Self {
        match self {
            Self::Evidence {
                attempt,
                evidence: Evidence::Absent | Evidence::Lost | Evidence::Repeatable,
            } if !from.invalid_reported => {
                Self::Evidence { attempt, evidence: Evidence::Inconclusive }
            }
            event => event,
        }
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
/// A status that is not new, or comes from a node that lags behind, changes nothing. Proof of a commit ends an open
/// batch in any state, if it was ever tried; otherwise a batch that is about to be tried again would be applied twice.
/// A batch that is with a submitter ends only when the submitter is done, because its service must not continue while a
/// POST of the batch may still arrive. For the same reason, a batch does not end as invalid while an earlier attempt
/// may still arrive, unless an operator decides so.
///
/// ```
/// use grid_batch_core::{batches::{BatchState, Event, LedgerStatus, Progress, transition}, ledger::Outcome};
///
/// let taken = transition(Progress::NEW, Event::Taken)?;
/// let sent = transition(taken, Event::Outcome { attempt: 1, outcome: Outcome::Accepted })?;
/// let ended = transition(sent, Event::status(LedgerStatus::Committed))?;
/// assert_eq!(ended.state, BatchState::Committed);
/// assert!(transition(ended, Event::status(LedgerStatus::Invalid)).is_err());
/// # Ok::<(), grid_batch_core::batches::TransitionError>(())
/// ```
pub fn transition(from: Progress, event: Event) -> Result<Progress, TransitionError> {
    let Progress { state, attempts, .. } = from;
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
    // The proof remains valid, and the batch ends when its submitter is done.
    if from.commit_proven && event == Event::DatabaseRestored {
        return Ok(from);
    }
    match next_progress(from, event) {
        Some(_) if from.commit_proven => Ok(ended(from, BatchState::Committed)),
        Some(next) => Ok(next),
        None => Err(TransitionError::NotPossible { state, event }),
    }
}

/// The attempt that an event must be about; `None` for a proof of commit, which counts for any attempt.
fn about_attempt(event: Event) -> Option<u32> {
    match event {
        Event::Taken | Event::DatabaseRestored | Event::DependencyInvalid => None,
        _ if event.is_proof_of_commit() => None,
        Event::Status { attempt, .. } => attempt,
        Event::Outcome { attempt, .. }
        | Event::OwnerLost { attempt }
        | Event::Evidence { attempt, .. }
        | Event::EarlierCannotArrive { attempt }
        | Event::Decided { attempt, .. } => Some(attempt),
    }
}

fn next_progress(from: Progress, event: Event) -> Option<Progress> {
    use BatchState::{Absent, Delayed, InDoubt, New, Submitting};
    match (from.state, event) {
        (New | Delayed | Absent, Event::Taken) => {
            let attempts = from.attempts.saturating_add(1);
            Some(Progress { state: Submitting, attempts, ..from })
        }
        (Submitting, Event::Outcome { outcome, .. }) => Some(after_outcome(from, outcome)),
        (Submitting, Event::OwnerLost { .. }) => Some(Progress { state: InDoubt, ..from }),
        // An attempt that the database has forgotten may still arrive.
        (_, Event::DatabaseRestored) => {
            Some(Progress { state: InDoubt, earlier_may_arrive: true, ..from })
        }
        (_, Event::Status { status, .. }) => after_status(from, status),
        (_, Event::Evidence { evidence, .. }) => after_evidence(from, evidence),
        (state, Event::EarlierCannotArrive { .. }) if state.awaits_poller() => {
            Some(Progress { earlier_may_arrive: false, ..from })
        }
        (_, Event::Decided { decision, .. }) => after_decision(from, decision),
        // A batch whose earlier attempt may still arrive is first followed by the poller.
        (New | Delayed | Absent, Event::DependencyInvalid) if !from.earlier_may_arrive => {
            Some(ended(from, BatchState::Invalid))
        }
        _ => None,
    }
}

/// Decisions are refused while the batch is with a submitter, because an operator cannot know yet what the ledger has.
///
/// *Absent* does not imply that no earlier attempt can arrive, because an operator cannot see a request that is on its
/// way. The other decisions end the batch whatever may arrive.
fn after_decision(from: Progress, decision: Decision) -> Option<Progress> {
    match decision {
        _ if from.state == BatchState::Submitting => None,
        Decision::Committed => Some(ended(from, BatchState::Committed)),
        Decision::Invalid => Some(ended(from, BatchState::Invalid)),
        Decision::Absent => after_evidence(from, Evidence::Absent),
    }
}

fn after_outcome(from: Progress, outcome: Outcome) -> Progress {
    let in_state = |state| Progress { state, ..from };
    match outcome {
        Outcome::Accepted => in_state(BatchState::Pending),
        Outcome::Committed => ended(from, BatchState::Committed),
        Outcome::Busy
        | Outcome::NotSent
        | Outcome::Parked
        | Outcome::PoolParked
        | Outcome::Refused
        | Outcome::RefusedBatch
        | Outcome::NotProvedNew => in_state(BatchState::Delayed),
        Outcome::Rejected => invalid(in_state(BatchState::InDoubt)),
        Outcome::Ambiguous => in_state(BatchState::InDoubt),
    }
}

fn after_status(from: Progress, status: LedgerStatus) -> Option<Progress> {
    let reported = |state| Progress { state, invalid_reported: false, ..from };
    match status {
        LedgerStatus::Committed => committed(from),
        _ if !from.state.awaits_poller() => None,
        LedgerStatus::NotReported => Some(from),
        LedgerStatus::Pending if from.state == BatchState::Valid => Some(reported(from.state)),
        LedgerStatus::Pending => Some(reported(BatchState::Pending)),
        LedgerStatus::Valid => Some(reported(BatchState::Valid)),
        LedgerStatus::Invalid => Some(invalid(from)),
    }
}

fn after_evidence(from: Progress, evidence: Evidence) -> Option<Progress> {
    let in_state = |state| Some(Progress { state, ..from });
    match evidence {
        Evidence::Committed => committed(from),
        _ if !from.state.awaits_poller() => None,
        Evidence::Present if from.state == BatchState::InDoubt => in_state(BatchState::Pending),
        Evidence::Present | Evidence::StoppedNode | Evidence::Inconclusive => Some(from),
        Evidence::NeverApplicable | Evidence::Expired => Some(ended(from, BatchState::Invalid)),
        // The ledger has forgotten that it found the batch invalid.
        Evidence::Absent | Evidence::Lost | Evidence::Repeatable if from.invalid_reported => {
            Some(invalid(from))
        }
        Evidence::Absent => {
            Some(Progress { state: BatchState::Absent, earlier_may_arrive: true, ..from })
        }
        Evidence::Lost | Evidence::Repeatable => in_state(BatchState::Absent),
    }
}

/// The present attempt is invalid. An earlier one that arrives later could still be applied.
fn invalid(from: Progress) -> Progress {
    if from.earlier_may_arrive {
        Progress { invalid_reported: true, ..from }
    } else {
        ended(from, BatchState::Invalid)
    }
}

fn committed(from: Progress) -> Option<Progress> {
    (from.state != BatchState::New).then_some(ended(from, BatchState::Committed))
}

fn ended(from: Progress, state: BatchState) -> Progress {
    Progress { attempts: from.attempts, ..Progress::at(state) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, sample::select};

    const STATUSES: [LedgerStatus; 5] = [
        LedgerStatus::NotReported,
        LedgerStatus::Pending,
        LedgerStatus::Valid,
        LedgerStatus::Invalid,
        LedgerStatus::Committed,
    ];
    const EVIDENCE: [Evidence; 9] = [
        Evidence::Committed,
        Evidence::Present,
        Evidence::Absent,
        Evidence::Repeatable,
        Evidence::Lost,
        Evidence::StoppedNode,
        Evidence::NeverApplicable,
        Evidence::Expired,
        Evidence::Inconclusive,
    ];
    const DECISIONS: [Decision; 3] = [Decision::Committed, Decision::Invalid, Decision::Absent];
    const ALLOWS_RETRY: [Evidence; 3] = [Evidence::Absent, Evidence::Lost, Evidence::Repeatable];

    /// Every event of one attempt.
    fn events(attempt: u32) -> Vec<Event> {
        let outcomes = Outcome::ALL.map(|outcome| Event::Outcome { attempt, outcome });
        let evidence = EVIDENCE.map(|evidence| Event::Evidence { attempt, evidence });
        let decisions = DECISIONS.map(|decision| Event::Decided { attempt, decision });
        [
            Event::Taken,
            Event::OwnerLost { attempt },
            Event::DatabaseRestored,
            Event::EarlierCannotArrive { attempt },
            Event::DependencyInvalid,
        ]
        .into_iter()
        .chain(outcomes)
        .chain(STATUSES.map(Event::status))
        .chain(evidence)
        .chain(decisions)
        .collect()
    }

    /// A random walk: events of up to 4 attempts, most of them about the present one.
    fn walk() -> impl Strategy<Value = Vec<(bool, u32, usize)>> {
        prop::collection::vec((prop::bool::weighted(0.8), 0..4u32, 0..events(0).len()), 0..64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn random_walks_follow_the_rules(walk in walk()) {
            let mut at = Progress::NEW;
            let (mut evidence_of_absence, mut earlier_may_arrive) = (false, false);
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
                    let attempts = at.attempts + 1;
                    prop_assert_eq!(next, Progress { state: BatchState::Submitting, attempts, ..at });
                } else {
                    prop_assert_eq!(next.attempts, at.attempts);
                }
                if next.state == BatchState::Invalid {
                    let is_final = matches!(
                        event,
                        Event::Evidence {
                            evidence: Evidence::NeverApplicable | Evidence::Expired, ..
                        } | Event::Decided { decision: Decision::Invalid, .. }
                    );
                    prop_assert!(
                        !earlier_may_arrive || is_final,
                        "{at:?} ended by {event:?}"
                    );
                }
                earlier_may_arrive = match event {
                    Event::Evidence { evidence: Evidence::Absent, .. }
                    | Event::Decided { decision: Decision::Absent, .. } => {
                        earlier_may_arrive || next.state == BatchState::Absent
                    }
                    Event::EarlierCannotArrive { .. } => false,
                    _ => earlier_may_arrive,
                };
                evidence_of_absence = next.state == BatchState::Absent;
                at = next;
            }
        }

        #[test]
        fn only_evidence_or_a_decision_allows_a_retry(
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
                let decided = Event::Decided { attempt: attempts, decision: Decision::Absent };
                let is_allowed = allowed.contains(&event) || event == decided;
                prop_assert_eq!(next.state.awaits_queuer(), is_allowed);
            }
        }
    }

    /// The edges of the state machine, one per line.
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
                        Event::Decided { decision, .. } => format!("decided {decision:?}"),
                        Event::OwnerLost { .. } => "OwnerLost".to_owned(),
                        Event::DatabaseRestored => "DatabaseRestored".to_owned(),
                        Event::Taken => "Taken".to_owned(),
                        Event::EarlierCannotArrive { .. } => "EarlierCannotArrive".to_owned(),
                        Event::DependencyInvalid => "DependencyInvalid".to_owned(),
                    };
                    edges.push(format!("{state:?} {name} -> {:?}", to.state));
                }
            }
        }
        let expected = "\
New Taken -> Submitting
New DatabaseRestored -> InDoubt
New DependencyInvalid -> Invalid
New decided Committed -> Committed
New decided Invalid -> Invalid
Submitting OwnerLost -> InDoubt
Submitting DatabaseRestored -> InDoubt
Submitting Accepted -> Pending
Submitting Committed -> Committed
Submitting Busy -> Delayed
Submitting NotSent -> Delayed
Submitting Parked -> Delayed
Submitting PoolParked -> Delayed
Submitting Rejected -> Invalid
Submitting Refused -> Delayed
Submitting RefusedBatch -> Delayed
Submitting NotProvedNew -> Delayed
Submitting Ambiguous -> InDoubt
Delayed Taken -> Submitting
Delayed DatabaseRestored -> InDoubt
Delayed DependencyInvalid -> Invalid
Delayed status Committed -> Committed
Delayed evidence Committed -> Committed
Delayed decided Committed -> Committed
Delayed decided Invalid -> Invalid
InDoubt status Pending -> Pending
InDoubt status Valid -> Valid
InDoubt status Invalid -> Invalid
InDoubt status Committed -> Committed
InDoubt evidence Committed -> Committed
InDoubt evidence Present -> Pending
InDoubt evidence Absent -> Absent
InDoubt evidence Repeatable -> Absent
InDoubt evidence Lost -> Absent
InDoubt evidence NeverApplicable -> Invalid
InDoubt evidence Expired -> Invalid
InDoubt decided Committed -> Committed
InDoubt decided Invalid -> Invalid
InDoubt decided Absent -> Absent
Absent Taken -> Submitting
Absent DatabaseRestored -> InDoubt
Absent DependencyInvalid -> Invalid
Absent status Committed -> Committed
Absent evidence Committed -> Committed
Absent decided Committed -> Committed
Absent decided Invalid -> Invalid
Pending DatabaseRestored -> InDoubt
Pending status Valid -> Valid
Pending status Invalid -> Invalid
Pending status Committed -> Committed
Pending evidence Committed -> Committed
Pending evidence Absent -> Absent
Pending evidence Repeatable -> Absent
Pending evidence Lost -> Absent
Pending evidence NeverApplicable -> Invalid
Pending evidence Expired -> Invalid
Pending decided Committed -> Committed
Pending decided Invalid -> Invalid
Pending decided Absent -> Absent
Valid DatabaseRestored -> InDoubt
Valid status Invalid -> Invalid
Valid status Committed -> Committed
Valid evidence Committed -> Committed
Valid evidence Absent -> Absent
Valid evidence Repeatable -> Absent
Valid evidence Lost -> Absent
Valid evidence NeverApplicable -> Invalid
Valid evidence Expired -> Invalid
Valid decided Committed -> Committed
Valid decided Invalid -> Invalid
Valid decided Absent -> Absent";
        assert_eq!(edges.join("\n"), expected);
    }

    #[test]
    fn batch_that_may_be_at_the_ledger_outlasts_its_dependency() {
        for state in BatchState::ALL.into_iter().filter(|state| !state.awaits_queuer()) {
            let at = Progress { attempts: 1, ..Progress::at(state) };
            assert!(transition(at, Event::DependencyInvalid).is_err(), "{state:?}");
        }
        let sent_before = Progress { earlier_may_arrive: true, ..Progress::at(BatchState::Absent) };
        assert!(transition(sent_before, Event::DependencyInvalid).is_err());
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

    /// In doubt at attempt 2, after evidence that attempt 1 was absent.
    fn second_attempt() -> Progress {
        let in_doubt = Progress { attempts: 1, ..Progress::at(BatchState::InDoubt) };
        let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
        [absent, Event::Taken, Event::Outcome { attempt: 2, outcome: Outcome::Ambiguous }]
            .into_iter()
            .try_fold(in_doubt, transition)
            .unwrap()
    }

    const INVALID: Event = Event::status(LedgerStatus::Invalid);
    const EARLIER_CANNOT_ARRIVE: Event = Event::EarlierCannotArrive { attempt: 2 };

    #[test]
    fn invalid_ends_a_batch_when_no_earlier_can_arrive() {
        let second = second_attempt();
        let reported = transition(second, INVALID).unwrap();
        assert_eq!(reported, Progress { invalid_reported: true, ..second });
        assert!(reported.waits_for_earlier());
        let over = transition(reported, EARLIER_CANNOT_ARRIVE).unwrap();
        assert_eq!(over, Progress { earlier_may_arrive: false, ..reported });
        assert_eq!(transition(over, INVALID).unwrap().state, BatchState::Invalid);
        let before = transition(second, EARLIER_CANNOT_ARRIVE).unwrap();
        assert_eq!(transition(before, INVALID).unwrap().state, BatchState::Invalid);
    }

    #[test]
    fn rejection_ends_a_batch_when_no_earlier_can_arrive() {
        let sending = Progress { state: BatchState::Submitting, ..second_attempt() };
        let rejected = Event::Outcome { attempt: 2, outcome: Outcome::Rejected };
        let waiting = transition(sending, rejected).unwrap();
        assert_eq!(waiting, Progress { invalid_reported: true, ..second_attempt() });
        let certain = Progress { earlier_may_arrive: false, ..sending };
        assert_eq!(transition(certain, rejected).unwrap().state, BatchState::Invalid);
    }

    #[test]
    fn forgotten_invalid_ends_a_batch_by_absence() {
        let reported = transition(second_attempt(), INVALID).unwrap();
        for evidence in ALLOWS_RETRY {
            let absent = Event::Evidence { attempt: 2, evidence };
            assert_eq!(transition(reported, absent), Ok(reported), "it is not sent again");
            let over = transition(reported, EARLIER_CANNOT_ARRIVE).unwrap();
            assert_eq!(transition(over, absent).unwrap().state, BatchState::Invalid);
        }
    }

    #[test]
    fn evidence_does_not_retry_a_batch_held_until_a_decision() {
        let at = |state| Progress { attempts: 1, ..Progress::at(state) };
        for state in BatchState::ALL.into_iter().filter(|state| state.awaits_poller()) {
            for event in events(1) {
                let next = transition(at(state), event.while_held_until_decision(at(state)));
                let is_decision = matches!(event, Event::Decided { .. });
                let retries = next.is_ok_and(|next| next.state.awaits_queuer());
                assert!(is_decision || !retries, "{state:?}: {event:?}");
            }
        }
        let reported = Progress { invalid_reported: true, ..at(BatchState::Pending) };
        let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
        let next = transition(reported, absent.while_held_until_decision(reported)).unwrap();
        assert_eq!(next.state, BatchState::Invalid);
    }

    #[test]
    fn batch_that_arrives_after_invalid_is_followed() {
        let reported = transition(second_attempt(), INVALID).unwrap();
        for (status, state) in [
            (LedgerStatus::Pending, BatchState::Pending),
            (LedgerStatus::Valid, BatchState::Valid),
            (LedgerStatus::Committed, BatchState::Committed),
        ] {
            let arrived = transition(reported, Event::status(status)).unwrap();
            assert_eq!((arrived.state, arrived.invalid_reported), (state, false));
        }
    }

    #[test]
    fn repeatable_batch_does_not_wait_for_earlier_attempts() {
        let in_doubt = Progress { attempts: 1, ..Progress::at(BatchState::InDoubt) };
        let repeatable = Event::Evidence { attempt: 1, evidence: Evidence::Repeatable };
        assert!(!transition(in_doubt, repeatable).unwrap().earlier_may_arrive);
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
