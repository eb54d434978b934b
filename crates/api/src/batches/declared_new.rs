use crate::http::{ApiError, Query};

const PARAMETER: &str = "new";

/// Whether the query says that the ledger has never committed the batches of the request.
pub(crate) fn read_declared_new(query: &Query) -> Result<bool, ApiError> {
    match query.get(PARAMETER)? {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => {
            let rule = "it must be true or false".to_owned();
            Err(ApiError::invalid_value(PARAMETER, rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_new_only_if_the_query_says_so() {
        let read = |text| read_declared_new(&Query::parse(Some(text)).unwrap());
        assert_eq!(["", "new=false", "new=true"].map(read), [Ok(false), Ok(false), Ok(true)]);
        for invalid in ["new", "new=1", "new=true&new=false"] {
            assert!(read(invalid).is_err(), "{invalid}");
        }
    }
}
