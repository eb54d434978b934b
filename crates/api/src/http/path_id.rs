use std::str::FromStr;

use axum::extract::{Path, rejection::PathRejection};
use grid_batch_withdrawals::ShortIdError;

use crate::http::{ApiError, RequestError};

/// The id in the path of a request. Handlers parse it after they have read the body, so that a
/// request with a wrong id is read to its end before it is answered.
pub(crate) type PathId = Result<Path<String>, PathRejection>;

pub(crate) fn parse_path_id<T: FromStr<Err = ShortIdError>>(path: PathId) -> Result<T, ApiError> {
    let Path(text) = path.map_err(|_| RequestError::NotFound)?;
    Ok(text.parse()?)
}
