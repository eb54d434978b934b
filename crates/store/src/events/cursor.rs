//! The position of a reader.

use grid_batch_core::events::EventCursor;

use super::{rows::GroupRow, snapshot::Snapshot};
use crate::sql::StoreError;

/// What a reader has read: everything that `seen` sees and, of the groups that only `window` sees, all up to a
/// position, in the order of their numbers.
///
/// If a snapshot sees a change, it also sees all earlier changes of the same service, because each change waits for the
/// lock of the service, which is released when the previous change is visible. Numbers are allocated under this lock.
/// Therefore neither the boundary between two snapshots nor the order within a window reorders changes of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// When the database last went back. Positions from before then say nothing about it.
    pub(super) generation: i64,
    /// `None`: the reader begins with the oldest event that is kept.
    pub(super) seen: Option<Snapshot>,
    pub(super) window: Option<Window>,
}

/// A part of the feed that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) until: Snapshot,
    /// The last group that was read.
    pub(super) group: i64,
    /// How many of its events were read; 0 means all.
    pub(super) events: usize,
}

/// How much of the feed was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemovedUpTo {
    pub(super) seq: i64,
    pub(super) xid: i64,
}

impl Position {
    /// The position before the first event.
    pub(super) fn oldest(generation: i64) -> Self {
        Self { generation, seen: None, window: None }
    }

    /// Whether a group was read before the window.
    pub(super) fn has_seen(&self, group: &GroupRow) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.sees(group))
    }

    /// Groups up to this number were read before the window, except late ones.
    pub(super) fn last_seen(&self) -> i64 {
        self.seen.as_ref().map_or(0, |seen| seen.last_seq)
    }

    /// Whether everything that was removed had been read or is skipped on purpose.
    pub(super) fn is_kept(&self, removed: RemovedUpTo) -> bool {
        let is_behind = |snapshot: &Snapshot, seq: i64| {
            seq >= removed.seq
                && (snapshot.first_running > removed.xid || snapshot.first_invisible == 0)
        };
        let window = self.window.as_ref().filter(|window| window.group > 0);
        let by_window = window.map(|window| is_behind(&window.until, window.group));
        match &self.seen {
            Some(seen) => is_behind(seen, seen.last_seq) || by_window.unwrap_or(false),
            None => by_window.unwrap_or(true),
        }
    }

    /// This position with another window.
    pub(super) fn in_window(&self, window: &Window) -> Self {
        Self { generation: self.generation, seen: self.seen.clone(), window: Some(window.clone()) }
    }

    pub(super) fn encode(&self) -> Result<EventCursor, StoreError> {
        let mut text = format!(
            "e1.{}.{}",
            self.generation,
            self.seen.as_ref().map_or_else(|| OLDEST.to_owned(), encode_snapshot)
        );
        if let Some(Window { until, group, events }) = &self.window {
            text.push_str(&format!(".{}.{group}.{events}", encode_snapshot(until)));
        }
        text.parse().map_err(StoreError::corrupt)
    }

    /// `None`: this is not a cursor of a store.
    pub(super) fn decode(cursor: &EventCursor) -> Option<Self> {
        let mut parts = cursor.as_str().split('.');
        if parts.next()? != "e1" {
            return None;
        }
        let generation = number(parts.next()?)?;
        let seen = match parts.next()? {
            OLDEST => None,
            seen => Some(decode_snapshot(seen)?),
        };
        let window = match parts.next() {
            None => None,
            Some(until) => Some(Window {
                until: decode_snapshot(until)?,
                group: number(parts.next()?)?,
                events: parts.next()?.parse().ok()?,
            }),
        };
        parts.next().is_none().then_some(Self { generation, seen, window })
    }
}

/// Stands for a reader that has seen nothing.
const OLDEST: &str = "oldest";

/// Transaction ids are written as differences, because there may be hundreds of them, with many digits.
fn encode_snapshot(snapshot: &Snapshot) -> String {
    let Snapshot { first_running, first_invisible, running, last_seq, last_visible } = snapshot;
    let from_first = |xid: &i64| xid.saturating_sub(*first_running);
    let running: String = running.iter().map(|xid| format!("-{}", from_first(xid))).collect();
    let invisible = from_first(first_invisible);
    format!("{last_seq}-{last_visible}-{first_running}-{invisible}{running}")
}

fn decode_snapshot(text: &str) -> Option<Snapshot> {
    let mut numbers = text.split('-').map(number);
    let (last_seq, last_visible) = (numbers.next()??, numbers.next()??);
    let first_running = numbers.next()??;
    let mut xids = numbers.map(|number| first_running.checked_add(number?));
    Some(Snapshot {
        last_seq,
        last_visible,
        first_running,
        first_invisible: xids.next()??,
        running: xids.collect::<Option<_>>()?,
    })
}

/// Parses a non-negative number in its written form.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshots() -> impl Strategy<Value = Snapshot> {
        let xids = prop::collection::vec(0..i64::MAX / 2, 1..5);
        let numbers = (0_i64.., 0_i64.., 0..i64::MAX / 2, xids);
        numbers.prop_map(|(last_seq, last_visible, first_running, xids)| {
            let mut xids = xids.into_iter().map(|xid| first_running + xid);
            let first_invisible = xids.next().unwrap();
            let running = xids.collect();
            Snapshot { first_running, first_invisible, running, last_seq, last_visible }
        })
    }

    proptest! {
        #[test]
        fn cursor_names_its_position(
            generation in 0_i64..,
            seen in prop::option::of(snapshots()),
            window in prop::option::of((snapshots(), 0_i64.., 0_usize..)),
        ) {
            let window = window.map(|(until, group, events)| Window { until, group, events });
            let position = Position { generation, seen, window };
            prop_assert_eq!(Position::decode(&position.encode().unwrap()), Some(position));
        }

        #[test]
        fn any_text_is_decoded_or_refused(text in "[0-9a-z.-]{1,60}") {
            let _ = Position::decode(&text.parse().unwrap());
        }
    }

    #[test]
    fn cursor_has_room_for_many_running_transactions() {
        let first_running = 4_000_000_000;
        let snapshot = |last_seq| Snapshot {
            first_running,
            first_invisible: first_running + 9_999,
            running: (first_running + 5_000..first_running + 5_700).collect(),
            last_seq,
            last_visible: last_seq,
        };
        let window = Window { until: snapshot(2_000_000_000), group: 1_999_999_999, events: 7 };
        let seen = Some(snapshot(1_000_000_000));
        let position = Position { generation: i64::MAX, seen, window: Some(window) };
        assert_eq!(Position::decode(&position.encode().unwrap()), Some(position));
    }

    #[test]
    fn position_before_what_was_removed_is_not_kept() {
        let snapshot = |last_seq, first_running| {
            Some(Snapshot {
                first_running,
                first_invisible: first_running + 1,
                running: Vec::new(),
                last_seq,
                last_visible: last_seq,
            })
        };
        let removed = RemovedUpTo { seq: 10, xid: 100 };
        let at = |seen, window| Position { generation: 0, seen, window };
        assert!(at(snapshot(10, 101), None).is_kept(removed));
        assert!(!at(snapshot(9, 101), None).is_kept(removed));
        assert!(!at(snapshot(10, 100), None).is_kept(removed), "it may not have seen 100");
        let window = |group| Some(Window { until: snapshot(30, 300).unwrap(), group, events: 1 });
        assert!(at(snapshot(5, 50), window(10)).is_kept(removed));
        assert!(!at(snapshot(5, 50), window(9)).is_kept(removed));
        assert!(Position::oldest(0).is_kept(removed));
        assert!(at(None, window(0)).is_kept(removed), "nothing was read");
        assert!(!at(None, window(9)).is_kept(removed));
    }
}
