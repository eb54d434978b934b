use std::collections::BTreeSet;

use grid_batch_core::Excerpt;
use grid_batch_core::batches::BatchState;

use crate::http::ApiError;

/// Stands for all open states.
const OPEN: &str = "open";
const ENDED: &str = "ended";

/// The states in a list separated by commas, for a filter of batches.
pub(crate) fn parse_states(text: &str) -> Result<BTreeSet<BatchState>, ApiError> {
    let mut states = BTreeSet::new();
    for name in text.split(',') {
        let of = |ended: bool| move |state: &BatchState| state.is_terminal() == ended;
        match name {
            OPEN => states.extend(BatchState::ALL.into_iter().filter(of(false))),
            ENDED => states.extend(BatchState::ALL.into_iter().filter(of(true))),
            name => {
                states.insert(BatchState::named(name).ok_or_else(|| unknown_state(name))?);
            }
        }
    }
    Ok(states)
}

fn unknown_state(name: &str) -> ApiError {
    let names = BatchState::ALL.map(BatchState::as_str).join(", ");
    let rule = format!(
        "it has {}; it must be one or several of {names}, {OPEN} and {ENDED}, separated by commas",
        Excerpt::of(name)
    );
    ApiError::invalid_value("state", rule)
}
