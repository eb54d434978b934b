use std::str::FromStr;

use axum::extract::{Path, rejection::PathRejection};

use crate::http::{ApiError, RequestError};

/// The id in the path of a request. Handlers parse it after they have read the body, so that a
/// request with a wrong id is read to its end before it is answered.
pub(crate) type PathId = Result<Path<String>, PathRejection>;

pub(crate) fn path_text(path: PathId) -> Result<String, ApiError> {
    let Path(text) = path.map_err(|_| RequestError::NotFound)?;
    Ok(text)
}

pub(crate) fn parse_path_id<T: FromStr<Err: Into<ApiError>>>(path: PathId) -> Result<T, ApiError> {
    path_text(path)?.parse().map_err(Into::into)
}
