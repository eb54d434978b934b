use std::collections::BTreeSet;

use grid_batch_core::Excerpt;
use grid_batch_core::batches::BatchState;

use crate::http::ApiError;

/// Stands for all open states.
pub(crate) const OPEN: &str = "open";
pub(crate) const ENDED: &str = "ended";

/// The states with these names, for a filter of batches.
pub(crate) fn parse_states<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<BatchState>, ApiError> {
    parse_states_of(names, BatchState::ALL, BatchState::as_str, BatchState::is_terminal)
}

/// Like [`parse_states`], for a filter of something else with these states.
pub(crate) fn parse_states_of<'a, S: Copy + Ord, const N: usize>(
    names: impl IntoIterator<Item = &'a str>,
    all: [S; N],
    name_of: fn(S) -> &'static str,
    has_ended: fn(S) -> bool,
) -> Result<BTreeSet<S>, ApiError> {
    let mut states = BTreeSet::new();
    for name in names {
        let is_meant = |state: &S| match name {
            OPEN => !has_ended(*state),
            ENDED => has_ended(*state),
            name => name_of(*state) == name,
        };
        let meant: Vec<S> = all.into_iter().filter(is_meant).collect();
        if meant.is_empty() {
            let (given, names) = (Excerpt::of(name), all.map(name_of).join(", "));
            let rule = format!(
                "it has {given}; it must be one or several of {names}, {OPEN} and {ENDED}, separated by commas"
            );
            return Err(ApiError::invalid_value("state", rule));
        }
        states.extend(meant);
    }
    Ok(states)
}
