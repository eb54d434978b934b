use std::collections::{HashMap, HashSet};

use grid_batch_core::polling::BatchStatus;
use grid_batch_core::{BatchError, BatchResult, Excerpt};

/// A ledger's answer to a status request, checked against the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatusAnswer<T> {
    /// The reported statuses, in the order of the request.
    pub(crate) reported: Vec<T>,
    /// The batches without a reported status.
    pub(crate) not_reported: Vec<String>,
}

impl<T: BatchStatus + PartialEq> StatusAnswer<T> {
    /// Checks an answer against the requested ids. One mistake makes the whole answer invalid.
    pub(crate) fn validate(ids: &[String], statuses: Vec<T>) -> BatchResult<Self> {
        let requested: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let mut by_id: HashMap<String, T> = HashMap::new();
        for status in statuses {
            let id = status.get_id();
            if !requested.contains(id) {
                return Err(invalid(id, "was not asked for"));
            }
            match by_id.get(id) {
                Some(other) if *other != status => return Err(invalid(id, "has two statuses")),
                Some(_) => {}
                None => drop(by_id.insert(id.to_owned(), status)),
            }
        }
        let mut answer = Self { reported: Vec::new(), not_reported: Vec::new() };
        for id in ids {
            match by_id.remove(id) {
                Some(status) if !status.is_unknown() => answer.reported.push(status),
                _ => answer.not_reported.push(id.clone()),
            }
        }
        Ok(answer)
    }
}

fn invalid(id: &str, what: &str) -> BatchError {
    BatchError::InvalidAnswer(format!("the batch {} {what}", Excerpt::of(id)))
}

#[cfg(test)]
mod tests {
    use grid_batch_core::batches::{
        LedgerStatus::{self, Committed, NotReported, Pending},
        StatusReport,
    };

    use super::*;

    fn report(id: &str, status: LedgerStatus) -> StatusReport {
        StatusReport { batch_id: id.to_owned(), status, receipts: Vec::new() }
    }

    fn validate(statuses: &[(&str, LedgerStatus)]) -> BatchResult<StatusAnswer<StatusReport>> {
        let ids = ["a", "b"].map(str::to_owned);
        StatusAnswer::validate(
            &ids,
            statuses.iter().map(|(id, status)| report(id, *status)).collect(),
        )
    }

    #[test]
    fn missing_status_is_not_reported() {
        for answer in [&[("b", Pending), ("a", NotReported)][..], &[("b", Pending)]] {
            let expected = StatusAnswer {
                reported: vec![report("b", Pending)],
                not_reported: vec!["a".to_owned()],
            };
            assert_eq!(validate(answer), Ok(expected));
        }
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let answer = validate(&[("b", Pending), ("a", Committed), ("b", Pending)]).unwrap();
        assert_eq!(answer.reported, [report("a", Committed), report("b", Pending)]);
    }

    #[test]
    fn answer_about_another_batch_is_invalid() {
        let error = validate(&[("a", Committed), ("c", Pending)]).unwrap_err().to_string();
        assert_eq!(error, "the answer cannot be used: the batch \"c\" was not asked for");
    }

    #[test]
    fn two_statuses_of_one_batch_are_invalid() {
        let error = validate(&[("a", Committed), ("a", NotReported)]).unwrap_err().to_string();
        assert_eq!(error, "the answer cannot be used: the batch \"a\" has two statuses");
    }
}
