use std::collections::BTreeSet;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::{BatchQueryStore, BatchSelection, ListCursor, PageOrder};

use super::requests::FilterRequest;
use crate::http::{ApiError, names_of, parse_states};

/// How many pages a request reads at most. Each examines a limited number of batches.
const MOST_PAGES: usize = 4;

/// The open batches that an action is about.
#[derive(Debug)]
pub(super) struct Selection {
    batches: BatchSelection,
}

/// The batches that were selected.
pub(super) struct Selected {
    pub(super) batches: Vec<StoredBatch>,
    /// After which batch there may be more.
    pub(super) next: Option<ListCursor>,
}

impl Selection {
    /// The filter of a request. It must name something.
    pub(super) fn read(filter: FilterRequest) -> Result<Self, ApiError> {
        let mut batches = BatchSelection {
            service_id: filter.service_id.as_deref().map(str::parse).transpose()?,
            states: filter.state.as_deref().map(open_states).transpose()?.unwrap_or_default(),
            error_contains: filter.error_contains,
            held: filter.held,
            label: filter.label.as_deref().map(str::parse).transpose()?,
            ..BatchSelection::default()
        };
        if batches == BatchSelection::default() {
            let fields = names_of::<FilterRequest>().join(", ");
            let rule = format!("at least one of {fields} is required");
            return Err(ApiError::invalid_value("filter", rule));
        }
        if batches.states.is_empty() {
            batches.states = open().collect();
        }
        Ok(Self { batches })
    }

    /// The only service whose batches are selected.
    pub(super) fn service_id(&self) -> Option<&ServiceId> {
        self.batches.service_id.as_ref()
    }

    /// Up to `limit` batches after `after`, the oldest first.
    pub(super) fn find(
        &self,
        store: &dyn BatchQueryStore,
        mut after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Selected, ApiError> {
        let mut selected = Vec::new();
        for _ in 0..MOST_PAGES {
            let rest = limit - selected.len();
            let page = store.batch_page(&self.batches, PageOrder::OldestFirst, after, rest);
            let page = page.map_err(ApiError::read_failed)?;
            selected.extend(page.batches.into_iter().map(|listed| listed.batch));
            after = page.next;
            if after.is_none() || selected.len() >= limit {
                break;
            }
        }
        Ok(Selected { batches: selected, next: after })
    }
}

fn open() -> impl Iterator<Item = BatchState> {
    BatchState::ALL.into_iter().filter(|state| !state.is_terminal())
}

/// Parses states, none of which is one of ended batches: an operator can do nothing about those.
fn open_states(text: &str) -> Result<BTreeSet<BatchState>, ApiError> {
    let states = parse_states(text)?;
    if states.iter().any(|state| state.is_terminal()) {
        let rule = "it has a state of batches that have ended".to_owned();
        return Err(ApiError::invalid_value("state", rule));
    }
    Ok(states)
}
