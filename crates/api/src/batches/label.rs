use std::str;

use axum::http::HeaderMap;
use grid_batch_core::batches::{BatchLabel, BatchLabelError, TraceContext};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    batches::BatchRequestError,
    http::{ApiError, Query, read_trace},
};

const HEADER: &str = "grid-batch-label";

/// What a client says about the batches that it sends.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MarkParams {
    /// A text by which the client finds the batches again
    pub(crate) label: Option<String>,
    /// The ledger has never committed the batches
    pub(crate) new: Option<bool>,
}

/// What a request says about its batches, in its query and its headers.
pub(crate) struct BatchMarks {
    pub(crate) label: Option<BatchLabel>,
    pub(crate) declared_new: bool,
    pub(crate) trace: Option<TraceContext>,
}

impl BatchMarks {
    pub(crate) fn read(headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        let MarkParams { label, new } = query.some_params()?;
        let label = read_label(headers, label.as_deref())?;
        Ok(Self { label, declared_new: new.unwrap_or(false), trace: read_trace(headers) })
    }
}

/// The label that a request gives to its batches, in a header or in the query.
fn read_label(headers: &HeaderMap, in_query: Option<&str>) -> Result<Option<BatchLabel>, ApiError> {
    let mut label: Option<BatchLabel> = in_query.map(str::parse).transpose()?;
    for value in headers.get_all(HEADER) {
        let text = str::from_utf8(value.as_bytes()).map_err(|_| BatchLabelError)?;
        let given = text.parse()?;
        if label.as_ref().is_some_and(|label| *label != given) {
            return Err(BatchRequestError::DifferentLabels.into());
        }
        label = Some(given);
    }
    Ok(label)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::http::Query;

    fn read(headers: &[&[u8]], query: &str) -> Result<Option<BatchLabel>, ApiError> {
        let value = |bytes: &&[u8]| HeaderValue::from_bytes(bytes).unwrap();
        let headers = headers.iter().map(|bytes| (HEADER.parse().unwrap(), value(bytes)));
        let marks: MarkParams = Query::parse(Some(query)).unwrap().some_params()?;
        read_label(&HeaderMap::from_iter(headers), marks.label.as_deref())
    }

    #[test]
    fn batches_are_new_only_if_the_query_says_so() {
        let read = |text| {
            let marks: Result<MarkParams, _> = Query::parse(Some(text)).unwrap().some_params();
            marks.map(|marks| marks.new)
        };
        assert_eq!(
            ["", "new=false", "new=true"].map(|text| read(text).unwrap()),
            [None, Some(false), Some(true)]
        );
        for invalid in ["new", "new=1", "new=true&new=false"] {
            assert!(read(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn label_is_in_the_header_or_in_the_query() {
        let label = |text: &str| Ok(Some(text.parse().unwrap()));
        assert_eq!(read(&[], ""), Ok(None));
        assert_eq!(read(&["é 1".as_bytes()], ""), label("é 1"));
        assert_eq!(read(&[], "label=%C3%A9+1"), label("é 1"));
        assert_eq!(read(&[b"a", b"a"], "label=a"), label("a"));
    }

    #[test]
    fn different_or_invalid_labels_are_refused() {
        assert_eq!(read(&[b"a"], "label=b"), Err(BatchRequestError::DifferentLabels.into()));
        assert_eq!(read(&[b"a", b"b"], ""), Err(BatchRequestError::DifferentLabels.into()));
        let long = "x".repeat(256);
        for invalid in [&b"\xff"[..], b"", long.as_bytes()] {
            assert_eq!(
                read(&[invalid], ""),
                Err(BatchRequestError::InvalidLabel(BatchLabelError).into())
            );
        }
        assert_eq!(
            read(&[], "label=%0a"),
            Err(BatchRequestError::InvalidLabel(BatchLabelError).into())
        );
    }
}
