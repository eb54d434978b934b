//! Why a batch waits: one rule for all interfaces that show it.

use std::fmt;

use crate::batches::{BatchState, StoredBatch};
use crate::queries::WaitReason;
use crate::{ServiceId, Timestamp};

/// What is ahead of an open batch that is neither next nor under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// What it waits for.
    pub reason: WaitReason,
    /// The batch that it waits for, which may be in no lane; if it waits for its turn, the first batch in a lane of its
    /// service. `None`: it does not wait for a stored batch.
    pub head: Option<StoredBatch>,
    /// Whether the head is in no lane itself, so that it waits for others.
    pub head_waits: bool,
    /// How many open batches of its service come before it.
    pub count: u64,
    /// Whether there are more than were counted.
    pub more: bool,
}

impl Ahead {
    /// The limit for counting when many batches are read at once.
    pub const MAX_COUNTED: u64 = 1_000;

    /// What is ahead of a batch that is kept back only by this reason.
    pub fn only(reason: WaitReason) -> Self {
        Self { reason, head: None, head_waits: false, count: 0, more: false }
    }

    /// The same, but without the head if its service may not be shown.
    #[must_use]
    pub fn visible(self, may_show: impl Fn(&ServiceId) -> bool) -> Self {
        let is_hidden = self.head.as_ref().is_some_and(|head| !may_show(&head.service_id));
        if is_hidden { Self { head: None, head_waits: false, ..self } } else { self }
    }
}

/// Why an open batch waits.
///
/// Its text continues "the batch waits for".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait<'a> {
    /// What it waits for. A batch that is held behind others waits for them first.
    pub reason: &'a WaitReason,
    /// Since when.
    pub since: Timestamp,
    batch: &'a StoredBatch,
    ahead: Option<&'a Ahead>,
}

impl<'a> Wait<'a> {
    /// Why a batch waits, given what is ahead of it. `None`: it has ended.
    pub fn of(batch: &'a StoredBatch, ahead: Option<&'a Ahead>) -> Option<Self> {
        let reason = match (ahead, &batch.held) {
            _ if batch.progress.state.is_terminal() => return None,
            (None, None) => reason_of_head(batch),
            (None, Some(_)) => &WaitReason::Held,
            (Some(ahead), Some(_)) if ahead.reason.is_after_a_hold() => &WaitReason::Held,
            (Some(ahead), _) => &ahead.reason,
        };
        let since = match (reason, &batch.held, ahead) {
            (WaitReason::Held, Some(hold), _) => hold.since,
            (_, _, Some(_)) => reason.since().unwrap_or(batch.created_at),
            _ => batch.since.unwrap_or(batch.created_at),
        };
        Some(Self { reason, since, batch, ahead })
    }

    /// Why the batch that it waits for waits itself. `None`: it has ended, or is in no lane.
    pub fn of_head(&self) -> Option<Wait<'a>> {
        let ahead = self.ahead.filter(|ahead| !ahead.head_waits)?;
        Wait::of(ahead.head.as_ref()?, None)
    }
}

/// Why a batch waits that is next in its service or under way, and not held.
fn reason_of_head(batch: &StoredBatch) -> &'static WaitReason {
    WaitReason::of_next(batch.progress.state, batch.parked, batch.progress.waits_for_earlier())
}

impl WaitReason {
    /// Why a batch in this state waits that is next in its service or under way, and not held.
    pub const fn of_next(
        state: BatchState,
        is_parked: bool,
        waits_for_earlier: bool,
    ) -> &'static Self {
        match state {
            BatchState::Delayed if is_parked => &Self::Parked,
            BatchState::Delayed => &Self::Delayed,
            BatchState::Submitting => &Self::Submitter,
            BatchState::InDoubt | BatchState::Pending | BatchState::Valid if waits_for_earlier => {
                &Self::LateArrival
            }
            BatchState::InDoubt => &Self::Evidence,
            BatchState::Pending | BatchState::Valid => &Self::Status,
            BatchState::New | BatchState::Absent | BatchState::Invalid | BatchState::Committed => {
                &Self::Submission
            }
        }
    }
}

impl fmt::Display for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoredBatch { last_error, progress, .. } = self.batch;
        match (self.reason, last_error) {
            (WaitReason::Held, _) => self.fmt_held(f),
            (WaitReason::Parked, Some(gate)) => write!(f, "its next try: {gate}"),
            (WaitReason::Delayed, Some(error)) => {
                write!(f, "its next try; the last one failed: {error}")
            }
            (WaitReason::Parked | WaitReason::Delayed, None) => f.write_str("its next try"),
            (WaitReason::Submission, _) => {
                f.write_str("its submission, as the next of its service")
            }
            (WaitReason::Submitter, _) => {
                f.write_str("the end of its submission, which is under way")
            }
            (WaitReason::Evidence, _) => {
                f.write_str("a status of the ledger, or evidence of whether the ledger has it")
            }
            (WaitReason::LateArrival, _) => {
                f.write_str(
                    "the time after which no earlier attempt can reach the ledger: it is reported as invalid, which \
                     is final only then",
                )
            }
            (WaitReason::Status, _) if !self.was_asked() => f.write_str(
                "the ledger's final status; a node has accepted it, and the ledger was not asked about it yet",
            ),
            (WaitReason::Status, _) => {
                let state = progress.state;
                write!(f, "the ledger's final status; it was last reported as {state}")
            }
            _ => self.fmt_ahead(f),
        }
    }
}

impl Wait<'_> {
    /// Whether the ledger was asked about the batch since it entered its state.
    fn was_asked(&self) -> bool {
        self.batch.checked_at.is_some() && self.batch.checked_at >= self.batch.since
    }

    fn fmt_ahead(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ahead) = self.ahead else { return Ok(()) };
        match &ahead.reason {
            WaitReason::Behind => self.fmt_order(f, ahead),
            WaitReason::Conflict { address } => {
                write!(
                    f,
                    "the end of the earlier batch {}, which it conflicts with",
                    self.head_id()
                )?;
                if let Some(address) = address {
                    write!(f, " at {address}")?;
                }
                self.fmt_head(f, ahead)
            }
            WaitReason::Dependency { transaction_id } => {
                write!(
                    f,
                    "the commit of the batch {}, which has the transaction {transaction_id:.12} that it \
                     depends on",
                    self.head_id()
                )?;
                self.fmt_head(f, ahead)
            }
            WaitReason::MissingTransaction { transaction_id, invalid: true, .. } => write!(
                f,
                "the ledger's answer to whether it has the transaction {transaction_id:.12}, which the batch depends \
                 on: the batch with it is invalid"
            ),
            WaitReason::MissingTransaction { transaction_id, .. } => write!(
                f,
                "the transaction {transaction_id:.12}, which it depends on: no batch that can be submitted has it"
            ),
            WaitReason::Halt { .. } => write!(
                f,
                "an operator's decision about the batch {}, which is invalid and stops others",
                self.head_id()
            ),
            WaitReason::Paused { .. } => f.write_str("the end of the pause of its service"),
            WaitReason::Lane => f.write_str(
                "the end of another batch of its service: as many are under way as are allowed",
            ),
            WaitReason::InFlightWindow => f.write_str(
                "a place in the in-flight window: the ledger has as many batches as it takes at present",
            ),
            WaitReason::NodePlace => f.write_str(
                "a place at its node: as many submissions are under way there as may be",
            ),
            other => f.write_str(other.about().ends),
        }?;
        match &self.batch.held {
            Some(hold) => write!(f, "; and it is held itself: {}", hold.reason),
            None => Ok(()),
        }
    }

    fn fmt_order(&self, f: &mut fmt::Formatter<'_>, ahead: &Ahead) -> fmt::Result {
        let Ahead { count, more, .. } = ahead;
        let (at_least, batches) =
            (if *more { "more than " } else { "" }, if *count == 1 { "batch" } else { "batches" });
        write!(f, "{at_least}{count} earlier {batches} of its service")?;
        match self.of_head() {
            Some(wait) => write!(f, "; the first one, {}, waits for {wait}", self.head_id()),
            None => Ok(()),
        }
    }

    /// Why the batch that it waits for waits itself.
    fn fmt_head(&self, f: &mut fmt::Formatter<'_>, ahead: &Ahead) -> fmt::Result {
        match self.of_head() {
            Some(wait) => write!(f, "; that one waits for {wait}"),
            None if ahead.head_waits => f.write_str("; that one waits for others"),
            None => Ok(()),
        }
    }

    fn head_id(&self) -> HeadId<'_> {
        HeadId { batch: self.batch, head: self.ahead.and_then(|ahead| ahead.head.as_ref()) }
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

/// The first digits of the batch that another one waits for, and its service if that is another one.
struct HeadId<'a> {
    batch: &'a StoredBatch,
    head: Option<&'a StoredBatch>,
}

impl fmt::Display for HeadId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(head) = self.head else { return f.write_str("that cannot be shown") };
        write!(f, "{:.12}", head.batch_id)?;
        if head.service_id != self.batch.service_id {
            write!(f, " of the service {}", head.service_id)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ItemId;
    use crate::batches::{AddressPrefix, Hold, Progress};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn batch(state: BatchState) -> StoredBatch {
        StoredBatch {
            progress: Progress::at(state),
            since: Some(at(2)),
            ..StoredBatch::new("a::b".parse().unwrap(), ItemId::from_bytes([0x5a; 64]), at(1))
        }
    }

    fn hold(until_decision: bool) -> Option<Hold> {
        Some(Hold { since: at(3), reason: "no evidence".to_owned(), until_decision })
    }

    fn ahead(head: StoredBatch, count: u64) -> Ahead {
        let reason = WaitReason::Behind;
        Ahead { reason, head: Some(head), head_waits: false, count, more: false }
    }

    #[test]
    fn every_open_state_has_a_cause() {
        let cause = |state| Wait::of(&batch(state), None).map(|wait| wait.reason.clone());
        let causes = BatchState::ALL.map(cause);
        assert_eq!(
            causes,
            [
                Some(WaitReason::Submission),
                Some(WaitReason::Submitter),
                Some(WaitReason::Delayed),
                Some(WaitReason::Evidence),
                Some(WaitReason::Submission),
                Some(WaitReason::Status),
                Some(WaitReason::Status),
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
            assert_eq!((wait.reason, wait.since), (&WaitReason::Held, at(3)), "{state}");
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
    fn late_arrival_differs_from_a_status() {
        let mut pending = batch(BatchState::Pending);
        pending.progress.earlier_may_arrive = true;
        assert_eq!(Wait::of(&pending, None).unwrap().reason, &WaitReason::Status);
        pending.progress.invalid_reported = true;
        assert_eq!(Wait::of(&pending, None).unwrap().reason, &WaitReason::LateArrival);
    }

    #[test]
    fn status_before_the_first_poll_is_not_a_report() {
        let told = |checked_at| {
            let pending = StoredBatch { checked_at, ..batch(BatchState::Pending) };
            Wait::of(&pending, None).unwrap().to_string()
        };
        for checked_at in [None, Some(at(1))] {
            assert!(told(checked_at).ends_with("was not asked about it yet"), "{checked_at:?}");
        }
        assert!(told(Some(at(2))).ends_with("it was last reported as pending"));
    }

    #[test]
    fn waiting_batch_says_why_the_first_one_waits() {
        let error = Some("401: no such key".to_owned());
        let first = ahead(StoredBatch { last_error: error, ..batch(BatchState::Delayed) }, 2);
        let waiting = StoredBatch { since: None, ..batch(BatchState::New) };
        let wait = Wait::of(&waiting, Some(&first)).unwrap();
        assert_eq!((wait.reason, wait.since), (&WaitReason::Behind, at(1)));
        assert_eq!(wait.of_head().unwrap().reason, &WaitReason::Delayed);
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

    /// What a new batch waits for with this reason, and a batch in this state before it.
    fn text(
        reason: WaitReason,
        head: Option<StoredBatch>,
        head_waits: bool,
    ) -> (&'static str, String) {
        let waiting = StoredBatch { since: None, ..batch(BatchState::New) };
        let ahead = Ahead { reason, head, head_waits, count: 1, more: false };
        let wait = Wait::of(&waiting, Some(&ahead)).unwrap();
        (wait.reason.name(), wait.to_string())
    }

    #[test]
    fn each_reason_of_a_turn_is_one_sentence() {
        let head = || Some(batch(BatchState::Pending));
        let other_service =
            StoredBatch { service_id: "c::d".parse().unwrap(), ..batch(BatchState::Submitting) };
        let transaction_id = ItemId::from_bytes([0xc3; 64]);
        let address = Some(AddressPrefix::new("1cf126"));
        let conflict = |address| WaitReason::Conflict { address };
        let missing =
            |invalid| WaitReason::MissingTransaction { transaction_id, since: at(4), invalid };
        let told = [
            text(conflict(address), head(), false),
            text(conflict(None), head(), true),
            text(WaitReason::Dependency { transaction_id }, Some(other_service), false),
            text(missing(false), None, false),
            text(missing(true), None, false),
            text(WaitReason::Halt { since: at(5) }, Some(batch(BatchState::Invalid)), false),
            text(WaitReason::Lane, None, false),
            text(WaitReason::InFlightWindow, None, false),
            text(WaitReason::NodePlace, None, false),
        ];
        let expected = [
            (
                "conflict",
                "the end of the earlier batch 5a5a5a5a5a5a, which it conflicts with at 1cf126; that one \
                 waits for the ledger's final status; a node has accepted it, and the ledger was not asked about it \
                 yet",
            ),
            (
                "conflict",
                "the end of the earlier batch 5a5a5a5a5a5a, which it conflicts with; that one waits for \
                 others",
            ),
            (
                "dependency",
                "the commit of the batch 5a5a5a5a5a5a of the service c::d, which has the transaction \
                 c3c3c3c3c3c3 that it depends on; that one waits for the end of its submission, which is \
                 under way",
            ),
            (
                "missing_transaction",
                "the transaction c3c3c3c3c3c3, which it depends on: no batch that can be submitted has it",
            ),
            (
                "missing_transaction",
                "the ledger's answer to whether it has the transaction c3c3c3c3c3c3, which the batch depends on: \
                 the batch with it is invalid",
            ),
            (
                "halt",
                "an operator's decision about the batch 5a5a5a5a5a5a, which is invalid and stops others",
            ),
            (
                "lane",
                "the end of another batch of its service: as many are under way as are allowed",
            ),
            (
                "in_flight_window",
                "a place in the in-flight window: the ledger has as many batches as it takes at present",
            ),
            (
                "node_place",
                "a place at its node: as many submissions are under way there as may be",
            ),
        ];
        assert_eq!(told, expected.map(|(cause, text)| (cause, text.to_owned())));
    }

    #[test]
    fn reason_that_has_a_time_says_since_when() {
        let transaction_id = ItemId::from_bytes([0xc3; 64]);
        let missing =
            WaitReason::MissingTransaction { transaction_id, since: at(4), invalid: false };
        let ahead = Ahead { reason: missing, head: None, head_waits: false, count: 0, more: false };
        let waiting = StoredBatch { since: None, ..batch(BatchState::New) };
        assert_eq!(Wait::of(&waiting, Some(&ahead)).unwrap().since, at(4));
        let held = StoredBatch { held: hold(true), ..waiting };
        let wait = Wait::of(&held, Some(&ahead)).unwrap();
        assert_eq!((wait.reason, wait.since), (&WaitReason::Held, at(3)));
        assert_eq!(wait.to_string(), "an operator's decision: no evidence");
    }
}
