/// The selected entry of a list. It stays selected while the order of the list changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    id: Option<String>,
    /// Its last position, which is used when it is not in the list any more.
    position: usize,
}

impl Selection {
    /// The position of the selected entry in a list.
    pub(super) fn position<'a>(&self, ids: impl ExactSizeIterator<Item = &'a str>) -> usize {
        let last = ids.len().saturating_sub(1);
        let same = |id| self.id.as_deref() == Some(id);
        ids.into_iter().position(same).unwrap_or(self.position.min(last))
    }

    /// Selects the entry this many places further down.
    pub(super) fn move_by(&mut self, offset: isize, ids: &[&str]) {
        let from = self.position(ids.iter().copied());
        self.position = from.saturating_add_signed(offset).min(ids.len().saturating_sub(1));
        self.id = ids.get(self.position).map(|id| (*id).to_owned());
    }
}

/// The first row to show so that the selected one is visible.
pub(super) fn first_shown(selected: usize, rows: usize, entries: usize) -> usize {
    let middle = selected.saturating_sub(rows / 2);
    middle.min(entries.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(selection: &Selection, ids: &[&str]) -> usize {
        selection.position(ids.iter().copied())
    }

    #[test]
    fn selected_entry_stays_selected() {
        let mut selection = Selection::default();
        assert_eq!(position(&selection, &["a", "b", "c"]), 0);
        selection.move_by(1, &["a", "b", "c"]);
        assert_eq!(position(&selection, &["b", "c", "a"]), 0);
        assert_eq!(position(&selection, &["c", "a", "d"]), 1);
        assert_eq!(position(&selection, &["c"]), 0);
        selection.move_by(100, &["a", "b", "c"]);
        assert_eq!(position(&selection, &["a", "b", "c"]), 2);
        selection.move_by(-100, &["a", "b", "c"]);
        assert_eq!(position(&selection, &["a", "b", "c"]), 0);
        selection.move_by(1, &[]);
        assert_eq!(position(&selection, &[]), 0);
    }

    #[test]
    fn selected_row_is_shown() {
        assert_eq!(first_shown(0, 10, 100), 0);
        assert_eq!(first_shown(50, 10, 100), 45);
        assert_eq!(first_shown(99, 10, 100), 90);
        assert_eq!(first_shown(3, 10, 5), 0);
        assert_eq!(first_shown(3, 0, 5), 3);
    }
}
