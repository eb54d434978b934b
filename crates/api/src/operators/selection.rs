use grid_batch_core::{
    BatchFilter, BatchQueryStore, BatchState, Excerpt, PageCursor, ServiceId, StoredBatch,
    Timestamp,
};

use crate::http::{ApiError, JsonObject};

/// How many batches of one state a request examines at most, with a page of so many at once.
const MOST_EXAMINED: usize = 10_000;
const PAGE: usize = 500;

/// The open batches that an action is about.
#[derive(Debug)]
pub(super) struct Selection {
    service_id: Option<ServiceId>,
    state: Option<BatchState>,
    /// What the last error contains.
    error: Option<String>,
    held: Option<bool>,
    /// Only batches that were not submitted after this time.
    as_of: Option<Timestamp>,
}

/// The batches that were selected.
pub(super) struct Selected {
    pub(super) batches: Vec<StoredBatch>,
    /// Whether there may be more.
    pub(super) has_more: bool,
}

impl Selection {
    /// The filter of a request. It must name something.
    pub(super) fn read(mut filter: JsonObject, as_of: Option<Timestamp>) -> Result<Self, ApiError> {
        let service_id = filter.optional_string("service_id")?;
        let state = filter.optional_string("state")?;
        let selection = Self {
            service_id: service_id.map(|text| text.parse()).transpose()?,
            state: state.as_deref().map(parse_state).transpose()?,
            error: filter.optional_string("error")?,
            held: filter.optional_boolean("held")?,
            as_of,
        };
        let Self { service_id, state, error, held, .. } = &selection;
        if service_id.is_none() && state.is_none() && error.is_none() && held.is_none() {
            let rule = "at least one of service_id, state, error and held is required";
            return Err(ApiError::InvalidValue { name: "filter", rule: rule.to_owned() });
        }
        Ok(selection)
    }

    /// Up to `limit` batches, by state, service and age.
    pub(super) fn find(
        &self,
        store: &dyn BatchQueryStore,
        limit: usize,
    ) -> Result<Selected, ApiError> {
        let open = BatchState::ALL.into_iter().filter(|state| !state.is_terminal());
        let mut selected = Selected { batches: Vec::new(), has_more: false };
        for state in open.filter(|state| self.state.is_none_or(|only| only == *state)) {
            self.find_in_state(store, state, limit, &mut selected)?;
        }
        Ok(selected)
    }

    fn find_in_state(
        &self,
        store: &dyn BatchQueryStore,
        state: BatchState,
        limit: usize,
        selected: &mut Selected,
    ) -> Result<(), ApiError> {
        let filter = BatchFilter { service_id: self.service_id.clone(), state: Some(state) };
        let (mut after, mut examined) = (None, 0);
        loop {
            let page = store.list(&filter, after.as_ref(), PAGE).map_err(ApiError::read_failed)?;
            after = page.last().map(PageCursor::after);
            examined += page.len();
            let is_last = page.len() < PAGE;
            for batch in page.into_iter().filter(|batch| self.selects(batch)) {
                if selected.batches.len() >= limit {
                    selected.has_more = true;
                    return Ok(());
                }
                selected.batches.push(batch);
            }
            if is_last {
                return Ok(());
            }
            if examined >= MOST_EXAMINED {
                selected.has_more = true;
                return Ok(());
            }
        }
    }

    fn selects(&self, batch: &StoredBatch) -> bool {
        let contains = |text: &String| {
            batch.last_error.as_ref().is_some_and(|error| error.contains(text.as_str()))
        };
        let is_older = |as_of: Timestamp| batch.submitted_at.is_none_or(|at| at <= as_of);
        self.error.as_ref().is_none_or(contains)
            && self.held.is_none_or(|held| batch.held.is_some() == held)
            && self.as_of.is_none_or(is_older)
    }
}

fn parse_state(text: &str) -> Result<BatchState, ApiError> {
    let mut open = BatchState::ALL.into_iter().filter(|state| !state.is_terminal());
    open.find(|state| state.to_string() == text).ok_or_else(|| {
        let states = BatchState::ALL.into_iter().filter(|state| !state.is_terminal());
        let states: Vec<String> = states.map(|state| state.to_string()).collect();
        let shown = Excerpt::of(text);
        let rule = format!("it is {shown}; it must be one of {}", states.join(", "));
        ApiError::InvalidValue { name: "state", rule }
    })
}
