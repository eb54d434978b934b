//! Why a batch waits: one rule for every part that shows it.

use std::fmt;

use crate::{BatchState, StoredBatch, Timestamp};

/// The kind of thing that an open batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitCause {
    /// Earlier batches of its service.
    Behind,
    /// It is held for an operator.
    Held,
    /// Its last attempt failed, and it is tried again later.
    Delayed,
    /// It is the next one of its service and is not with a submitter yet.
    Submission,
    /// It is being sent.
    Submitter,
    /// It is not known whether the ledger has it.
    Evidence,
    /// It is invalid, which is not final while an earlier attempt may still arrive.
    LateArrival,
    /// The ledger has it and has not ended it.
    Status,
}

impl WaitCause {
    /// Every cause.
    pub const ALL: [Self; 8] = [
        Self::Behind,
        Self::Held,
        Self::Delayed,
        Self::Submission,
        Self::Submitter,
        Self::Evidence,
        Self::LateArrival,
        Self::Status,
    ];

    /// The cause as responses write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Behind => "behind",
            Self::Held => "held",
            Self::Delayed => "delayed",
            Self::Submission => "submission",
            Self::Submitter => "submitter",
            Self::Evidence => "evidence",
            Self::LateArrival => "late_arrival",
            Self::Status => "status",
        }
    }
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The open batches of a service that come before another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The first of them, which is next or under way.
    pub head: StoredBatch,
    /// How many there are, with the head.
    pub count: u64,
    /// There are more than were counted.
    pub more: bool,
}

impl Ahead {
    /// The greatest number that is counted for many batches at once.
    pub const MAX_COUNTED: u64 = 1_000;
}

/// Why an open batch waits.
///
/// Its text continues "the batch waits for".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait<'a> {
    /// What it waits for. A batch that is held behind others waits for them first.
    pub cause: WaitCause,
    /// Since when.
    pub since: Timestamp,
    batch: &'a StoredBatch,
    ahead: Option<&'a Ahead>,
}

impl<'a> Wait<'a> {
    /// Why a batch waits that has these ahead of it. `None`: it has ended.
    pub fn of(batch: &'a StoredBatch, ahead: Option<&'a Ahead>) -> Option<Self> {
        let cause = match (ahead, &batch.held) {
            _ if batch.progress.state.is_terminal() => return None,
            (Some(_), _) => WaitCause::Behind,
            (None, Some(_)) => WaitCause::Held,
            (None, None) => cause_of_head(batch),
        };
        let since = match (cause, &batch.held) {
            (WaitCause::Behind, _) => batch.created_at,
            (WaitCause::Held, Some(hold)) => hold.since,
            _ => batch.since.unwrap_or(batch.created_at),
        };
        Some(Self { cause, since, batch, ahead })
    }

    /// Why the first of the batches ahead of it waits.
    pub fn of_head(&self) -> Option<Wait<'a>> {
        self.ahead.and_then(|ahead| Wait::of(&ahead.head, None))
    }
}

/// Why a batch waits that is not held, and the next of its service or under way.
fn cause_of_head(batch: &StoredBatch) -> WaitCause {
    match batch.progress.state {
        BatchState::Delayed => WaitCause::Delayed,
        BatchState::Submitting => WaitCause::Submitter,
        BatchState::InDoubt | BatchState::Pending | BatchState::Valid
            if batch.progress.waits_for_earlier() =>
        {
            WaitCause::LateArrival
        }
        BatchState::InDoubt => WaitCause::Evidence,
        BatchState::Pending | BatchState::Valid => WaitCause::Status,
        BatchState::New | BatchState::Absent | BatchState::Invalid | BatchState::Committed => {
            WaitCause::Submission
        }
    }
}

impl fmt::Display for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            WaitCause::Behind => self.fmt_behind(f),
            WaitCause::Held => self.fmt_held(f),
            WaitCause::Delayed => match &self.batch.last_error {
                Some(error) => write!(f, "its next try; the last one failed: {error}"),
                None => f.write_str("its next try"),
            },
            WaitCause::Submission => f.write_str("its submission, as the next of its service"),
            WaitCause::Submitter => f.write_str("the end of its submission, which is under way"),
            WaitCause::Evidence => {
                f.write_str("a status of the ledger, or evidence of whether the ledger has it")
            }
            WaitCause::LateArrival => {
                f.write_str("the time after which no earlier attempt can arrive at the ledger")
            }
            WaitCause::Status => {
                write!(f, "the ledger's final status; it is {} there", self.batch.progress.state)
            }
        }
    }
}

impl Wait<'_> {
    fn fmt_behind(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Ahead { head, count, more }) = self.ahead else { return Ok(()) };
        let (at_least, batches) =
            (if *more { "more than " } else { "" }, if *count == 1 { "batch" } else { "batches" });
        write!(f, "{at_least}{count} earlier {batches} of its service")?;
        if let Some(wait) = self.of_head() {
            write!(f, "; the first one, {:.12}, waits for {wait}", head.batch_id)?;
        }
        match &self.batch.held {
            Some(hold) => write!(f, "; and it is held itself: {}", hold.reason),
            None => Ok(()),
        }
    }

    fn fmt_held(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hold) = &self.batch.held else { return Ok(()) };
        let awaited = match (hold.until_decision, self.batch.progress.state.awaits_poller()) {
            (true, true) => "a final status of the ledger or an operator's decision",
            (true, false) => "an operator's decision",
            (false, _) => "a final status of the ledger, evidence or an operator's decision",
        };
        write!(f, "{awaited}: {}", hold.reason)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{HeaderId, Hold, Progress};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn batch(state: BatchState) -> StoredBatch {
        StoredBatch {
            service_id: "a::b".parse().unwrap(),
            batch_id: HeaderId::from_bytes([0x5a; 64]),
            created_at: at(1),
            progress: Progress::at(state),
            submitted_at: None,
            since: Some(at(2)),
            checked_at: None,
            next_try_at: None,
            last_error: None,
            held: None,
            ended_at: None,
        }
    }

    fn hold(until_decision: bool) -> Option<Hold> {
        Some(Hold { since: at(3), reason: "no evidence".to_owned(), until_decision })
    }

    fn ahead(head: StoredBatch, count: u64) -> Ahead {
        Ahead { head, count, more: false }
    }

    #[test]
    fn every_open_state_has_a_cause() {
        let cause = |state| Wait::of(&batch(state), None).map(|wait| wait.cause);
        let causes = BatchState::ALL.map(cause);
        assert_eq!(
            causes,
            [
                Some(WaitCause::Submission),
                Some(WaitCause::Submitter),
                Some(WaitCause::Delayed),
                Some(WaitCause::Evidence),
                Some(WaitCause::Submission),
                Some(WaitCause::Status),
                Some(WaitCause::Status),
                None,
                None,
            ]
        );
    }

    #[test]
    fn held_batch_waits_for_an_operator_in_any_state() {
        for state in BatchState::ALL.into_iter().filter(|state| !state.is_terminal()) {
            let held = StoredBatch { held: hold(true), ..batch(state) };
            let wait = Wait::of(&held, None).unwrap();
            assert_eq!((wait.cause, wait.since), (WaitCause::Held, at(3)), "{state}");
            let text = wait.to_string();
            assert!(text.ends_with("an operator's decision: no evidence"), "{text}");
            assert_eq!(text.contains("status"), state.awaits_poller(), "{text}");
        }
    }

    #[test]
    fn hold_that_evidence_ends_says_so() {
        let held = StoredBatch { held: hold(false), ..batch(BatchState::InDoubt) };
        let text = Wait::of(&held, None).unwrap().to_string();
        assert_eq!(
            text,
            "a final status of the ledger, evidence or an operator's decision: no evidence"
        );
    }

    #[test]
    fn late_arrival_is_told_from_a_status() {
        let mut pending = batch(BatchState::Pending);
        pending.progress.earlier_may_arrive = true;
        assert_eq!(Wait::of(&pending, None).unwrap().cause, WaitCause::Status);
        pending.progress.invalid_reported = true;
        assert_eq!(Wait::of(&pending, None).unwrap().cause, WaitCause::LateArrival);
    }

    #[test]
    fn waiting_batch_tells_why_the_first_one_waits() {
        let error = Some("401: no such key".to_owned());
        let first = ahead(StoredBatch { last_error: error, ..batch(BatchState::Delayed) }, 2);
        let waiting = StoredBatch { since: None, ..batch(BatchState::New) };
        let wait = Wait::of(&waiting, Some(&first)).unwrap();
        assert_eq!((wait.cause, wait.since), (WaitCause::Behind, at(1)));
        assert_eq!(wait.of_head().unwrap().cause, WaitCause::Delayed);
        assert_eq!(
            wait.to_string(),
            "2 earlier batches of its service; the first one, 5a5a5a5a5a5a, waits for its next try; \
             the last one failed: 401: no such key"
        );

        let held = StoredBatch { held: hold(true), ..waiting };
        let more = Ahead { more: true, ..ahead(batch(BatchState::Submitting), 1_000) };
        let text = Wait::of(&held, Some(&more)).unwrap().to_string();
        assert!(text.starts_with("more than 1000 earlier batches"), "{text}");
        assert!(text.ends_with("; and it is held itself: no evidence"), "{text}");
    }

    #[test]
    fn causes_have_distinct_names() {
        let names: BTreeSet<_> = WaitCause::ALL.map(WaitCause::as_str).into_iter().collect();
        assert_eq!(names.len(), WaitCause::ALL.len());
    }
}
