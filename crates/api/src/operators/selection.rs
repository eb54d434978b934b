use std::collections::BTreeSet;

use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::{BatchQueryStore, BatchSelection, ListCursor, PageOrder};

use super::requests::FilterRequest;
use crate::http::{ApiError, names_of, parse_states};

/// How many pages a request reads at most. Each examines a limited number of batches.
const MOST_PAGES: usize = 4;

/// The open batches that the filter of a request selects. It must name something.
pub(super) fn read_filter(filter: FilterRequest) -> Result<BatchSelection, ApiError> {
    let mut selection = BatchSelection {
        service_id: filter.service_id.as_deref().map(str::parse).transpose()?,
        states: filter.state.as_deref().map(open_states).transpose()?.unwrap_or_default(),
        error_contains: filter.error_contains,
        held: filter.held,
        label: filter.label.as_deref().map(str::parse).transpose()?,
        ..BatchSelection::default()
    };
    if selection == BatchSelection::default() {
        let fields = names_of::<FilterRequest>().join(", ");
        let rule = format!("at least one of {fields} is required");
        return Err(ApiError::invalid_value("filter", rule));
    }
    if selection.states.is_empty() {
        selection.states = open().collect();
    }
    Ok(selection)
}

/// Up to `limit` selected batches after `after`, the oldest first, and after which one there may be more.
pub(super) fn find_selected(
    selection: &BatchSelection,
    store: &dyn BatchQueryStore,
    mut after: Option<ListCursor>,
    limit: usize,
) -> Result<(Vec<StoredBatch>, Option<ListCursor>), ApiError> {
    let mut selected = Vec::new();
    for _ in 0..MOST_PAGES {
        let rest = limit - selected.len();
        let page = store.batch_page(selection, PageOrder::OldestFirst, after, rest);
        let page = page.map_err(ApiError::read_failed)?;
        selected.extend(page.batches.into_iter().map(|listed| listed.batch));
        after = page.next;
        if after.is_none() || selected.len() >= limit {
            break;
        }
    }
    Ok((selected, after))
}

fn open() -> impl Iterator<Item = BatchState> {
    BatchState::ALL.into_iter().filter(|state| !state.is_terminal())
}

/// Parses states, none of which is one of ended batches: an operator can do nothing about those.
fn open_states(text: &str) -> Result<BTreeSet<BatchState>, ApiError> {
    let states = parse_states(text.split(','))?;
    if states.iter().any(|state| state.is_terminal()) {
        let rule = "it has a state of batches that have ended".to_owned();
        return Err(ApiError::invalid_value("state", rule));
    }
    Ok(states)
}
