//! The cases, grouped by what happens in them.

pub(crate) mod applying;
pub(crate) mod deadlines;
pub(crate) mod kills;
pub(crate) mod lost;
pub(crate) mod nodes;
pub(crate) mod order;
pub(crate) mod taking;

use crate::NotPossible;

/// The result of a case that has not panicked.
type Done = Result<(), NotPossible>;
