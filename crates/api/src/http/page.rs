use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{PageLimit, PageStart};

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageJson<T> {
    pub(crate) data: Vec<T>,
    /// The parameter `after` of the next page; null after the last one.
    pub(crate) next: Option<String>,
}

/// The parameters of a list without filters.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    pub(crate) limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    pub(crate) after: Option<PageStart>,
}

impl<T> PageJson<T> {
    /// All items.
    pub(crate) fn all<I>(items: Vec<I>, json: impl FnMut(I) -> T) -> Self {
        Self { data: items.into_iter().map(json).collect(), next: None }
    }

    /// A page of what was read: one item more than the limit, if there is a next page. It begins after the last item of
    /// this one, which `cursor` names.
    pub(crate) fn cut<I>(
        mut items: Vec<I>,
        limit: PageLimit,
        cursor: impl FnOnce(&I) -> String,
        json: impl FnMut(I) -> T,
    ) -> Self {
        let next = limit.cut(&mut items).map(cursor);
        Self { next, ..Self::all(items, json) }
    }
}
