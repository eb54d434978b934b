use std::str::FromStr;

use axum::extract::{Path, rejection::PathRejection};
use grid_batch_withdrawals::ShortIdError;

use crate::error::ApiError;

/// What stands in an address where an id is expected. It is read after the body, so that who sends
/// both is heard to the end.
pub(crate) type PathId = Result<Path<String>, PathRejection>;

pub(crate) fn parse<T: FromStr<Err = ShortIdError>>(path: PathId) -> Result<T, ApiError> {
    let Path(text) = path.map_err(|_| ApiError::NotFound)?;
    text.parse().map_err(ApiError::ShortId)
}
