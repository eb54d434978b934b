use std::sync::Arc;

use grid_batch_core::{BatchPageStore, BatchQueryStore};

use super::HistorySource;
use crate::state::ApiState;

/// What the handlers below `/v1` need.
pub(crate) struct ReadContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) batches: Arc<dyn BatchQueryStore>,
    pub(crate) pages: Arc<dyn BatchPageStore>,
    /// `None`: the history is what the rows of the batch tell.
    pub(crate) history: Option<Arc<HistorySource>>,
}
