//! Pages of batches, in the order in which they were stored.

use std::{collections::BTreeSet, fmt, str::FromStr};

use thiserror::Error;

use crate::batches::{BatchLabel, BatchState, StoredBatch};
use crate::{ServiceId, Timestamp};

/// Which batches a page has. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchSelection {
    /// Only batches of this service.
    pub service_id: Option<ServiceId>,
    /// Only batches of services whose id contains this text.
    pub service_contains: Option<String>,
    /// Only batches in one of these states; empty: in any.
    pub states: BTreeSet<BatchState>,
    /// Only batches that were stored at this time or later.
    pub stored_from: Option<Timestamp>,
    /// Only batches that were stored before this time.
    pub stored_before: Option<Timestamp>,
    /// Only batches that have an error, or only those that have none.
    pub has_error: Option<bool>,
    /// Only batches whose error contains this text.
    pub error_contains: Option<String>,
    /// Only batches that are held for an operator, or only those that are not.
    pub held: Option<bool>,
    /// Only batches with this label.
    pub label: Option<BatchLabel>,
    /// Only batches whose label contains this text.
    pub label_contains: Option<String>,
}

impl BatchSelection {
    /// Whether this batch is selected.
    pub fn selects(&self, listed: &ListedBatch) -> bool {
        let ListedBatch { batch, label, error } = listed;
        let has_text = |text: &String| error.as_ref().is_some_and(|error| error.contains(text));
        let is_labelled =
            |text: &String| label.as_ref().is_some_and(|label| label.as_str().contains(text));
        let is_in = |text: &String| batch.service_id.as_str().contains(text);
        self.service_contains.as_ref().is_none_or(is_in)
            && self.label_contains.as_ref().is_none_or(is_labelled)
            && self.service_id.as_ref().is_none_or(|service_id| *service_id == batch.service_id)
            && (self.states.is_empty() || self.states.contains(&batch.progress.state))
            && self.stored_from.is_none_or(|from| batch.created_at >= from)
            && self.stored_before.is_none_or(|before| batch.created_at < before)
            && self.has_error.is_none_or(|has_error| error.is_some() == has_error)
            && self.error_contains.as_ref().is_none_or(has_text)
            && self.held.is_none_or(|held| batch.held.is_some() == held)
            && (self.label.is_none() || self.label == *label)
    }

    /// Whether only open batches are selected.
    pub fn is_of_open(&self) -> bool {
        let are_open = self.states.iter().all(|state| !state.is_terminal());
        self.held == Some(true) || (!self.states.is_empty() && are_open)
    }
}

/// The order of the pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PageOrder {
    /// The batch that was stored last comes first.
    #[default]
    NewestFirst,
    /// The batch that was stored first comes first.
    OldestFirst,
}

/// A batch of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBatch {
    /// The batch.
    pub batch: StoredBatch,
    /// The label that its client gave it.
    pub label: Option<BatchLabel>,
    /// Its last error, or why it is invalid.
    pub error: Option<String>,
}

/// A batch of a page, as the start of the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListCursor {
    /// Its number.
    pub number: i64,
    /// When it was stored.
    pub stored_at: Timestamp,
}

/// A text that is not a [`ListCursor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it must be the `next` of an earlier page")]
pub struct ListCursorError;

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.number, self.stored_at.as_micros())
    }
}

impl FromStr for ListCursor {
    type Err = ListCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text| i64::from_str_radix(text, 16).map_err(|_| ListCursorError);
        let (first, second) = text.split_once('-').ok_or(ListCursorError)?;
        let stored_at = Timestamp::from_micros(number(second)?);
        Ok(Self { number: number(first)?, stored_at })
    }
}

/// A page of batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchPage {
    /// The batches, in order.
    pub batches: Vec<ListedBatch>,
    /// Where the next page starts; `None` after the last page. A page that is not the last may have fewer batches than
    /// requested, or even none, because only a limited number of batches is examined for each page.
    pub next: Option<ListCursor>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ItemId;
    use crate::batches::{Hold, Progress};

    fn listed() -> ListedBatch {
        let batch = StoredBatch {
            progress: Progress::at(BatchState::Delayed),
            ..StoredBatch::new(
                "a::b".parse().unwrap(),
                ItemId::from_bytes([1; 64]),
                Timestamp::from_micros(5),
            )
        };
        let label = Some("mine".parse().unwrap());
        ListedBatch { batch, label, error: Some("401: no such key".to_owned()) }
    }

    #[test]
    fn batch_must_meet_every_condition() {
        let all = BatchSelection::default;
        let at = Timestamp::from_micros;
        let states = |states: &[BatchState]| states.iter().copied().collect();
        let selecting = [
            all(),
            BatchSelection { service_id: Some("a::b".parse().unwrap()), ..all() },
            BatchSelection { states: states(&[BatchState::New, BatchState::Delayed]), ..all() },
            BatchSelection { stored_from: Some(at(5)), stored_before: Some(at(6)), ..all() },
            BatchSelection { has_error: Some(true), held: Some(false), ..all() },
            BatchSelection { error_contains: Some("such".to_owned()), ..all() },
            BatchSelection { label: Some("mine".parse().unwrap()), ..all() },
            BatchSelection { label_contains: Some("in".to_owned()), ..all() },
            BatchSelection { service_contains: Some("::b".to_owned()), ..all() },
        ];
        let others = [
            BatchSelection { service_id: Some("a::c".parse().unwrap()), ..all() },
            BatchSelection { states: states(&[BatchState::New]), ..all() },
            BatchSelection { stored_from: Some(at(6)), ..all() },
            BatchSelection { stored_before: Some(at(5)), ..all() },
            BatchSelection { has_error: Some(false), ..all() },
            BatchSelection { error_contains: Some("404".to_owned()), ..all() },
            BatchSelection { held: Some(true), ..all() },
            BatchSelection { label: Some("other".parse().unwrap()), ..all() },
            BatchSelection { label_contains: Some("other".to_owned()), ..all() },
            BatchSelection { service_contains: Some("::c".to_owned()), ..all() },
        ];
        for selection in selecting {
            assert!(selection.selects(&listed()), "{selection:?}");
        }
        for selection in others {
            assert!(!selection.selects(&listed()), "{selection:?}");
        }
    }

    #[test]
    fn held_batches_and_open_states_are_open() {
        let of = |states: &[BatchState]| BatchSelection {
            states: states.iter().copied().collect(),
            ..BatchSelection::default()
        };
        assert!(!of(&[]).is_of_open());
        assert!(of(&[BatchState::New, BatchState::Pending]).is_of_open());
        assert!(!of(&[BatchState::New, BatchState::Invalid]).is_of_open());
        assert!(BatchSelection { held: Some(true), ..of(&[]) }.is_of_open());
        let hold =
            Hold { since: Timestamp::from_micros(1), reason: "r".into(), until_decision: true };
        let mut held = listed();
        held.batch.held = Some(hold);
        assert!(BatchSelection { held: Some(true), ..of(&[]) }.selects(&held));
    }

    proptest! {
        #[test]
        fn cursor_is_read_as_it_is_written(number: i64, micros: i64) {
            prop_assume!(number >= 0 && micros >= 0);
            let cursor = ListCursor { number, stored_at: Timestamp::from_micros(micros) };
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }

        #[test]
        fn any_text_is_a_cursor_or_an_error(text in "[-0-9a-z]{0,20}") {
            let _ = text.parse::<ListCursor>();
        }
    }
}
