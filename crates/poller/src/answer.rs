use std::collections::{HashMap, HashSet};

use grid_batch_core::{BatchError, BatchResult, BatchStatus, Excerpt};

/// A ledger's answer that fits its question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer<T> {
    /// What it says, in the order that was asked in.
    pub(crate) said: Vec<T>,
    /// Of which batches it says nothing.
    pub(crate) unknown: Vec<String>,
}

impl<T: BatchStatus + PartialEq> Answer<T> {
    /// Holds an answer against the ids that were asked for: an answer that cannot be right in one
    /// place is not believed in any.
    pub(crate) fn validate(ids: &[String], statuses: Vec<T>) -> BatchResult<Self> {
        let asked: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let mut by_id: HashMap<String, T> = HashMap::new();
        for status in statuses {
            let id = status.get_id();
            if !asked.contains(id) {
                return Err(invalid(id, "was not asked for"));
            }
            match by_id.get(id) {
                Some(other) if *other != status => return Err(invalid(id, "has two statuses")),
                Some(_) => {}
                None => drop(by_id.insert(id.to_owned(), status)),
            }
        }
        let mut answer = Self { said: Vec::new(), unknown: Vec::new() };
        for id in ids {
            match by_id.remove(id) {
                Some(status) if !status.is_unknown() => answer.said.push(status),
                _ => answer.unknown.push(id.clone()),
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
    use grid_batch_core::{
        LedgerStatus::{self, Committed, NotReported, Pending},
        StatusReport,
    };

    use super::*;

    fn report((id, status): (&str, LedgerStatus)) -> StatusReport {
        StatusReport { batch_id: id.to_owned(), status, receipts: Vec::new() }
    }

    fn validate(statuses: &[(&str, LedgerStatus)]) -> BatchResult<Answer<StatusReport>> {
        let ids = ["a", "b"].map(str::to_owned);
        Answer::validate(&ids, statuses.iter().copied().map(report).collect())
    }

    #[test]
    fn what_is_unknown_and_what_is_missing_are_the_same() {
        for answer in [&[("b", Pending), ("a", NotReported)][..], &[("b", Pending)]] {
            let expected =
                Answer { said: vec![report(("b", Pending))], unknown: vec!["a".to_owned()] };
            assert_eq!(validate(answer), Ok(expected));
        }
    }

    #[test]
    fn the_order_of_the_answer_does_not_matter_nor_does_saying_it_twice() {
        let answer = validate(&[("b", Pending), ("a", Committed), ("b", Pending)]).unwrap();
        assert_eq!(answer.said, [("a", Committed), ("b", Pending)].map(report));
    }

    #[test]
    fn a_batch_that_was_not_asked_for_spoils_the_whole_answer() {
        let error = validate(&[("a", Committed), ("c", Pending)]).unwrap_err().to_string();
        assert_eq!(error, "the answer cannot be used: the batch \"c\" was not asked for");
    }

    #[test]
    fn two_statuses_of_one_batch_spoil_the_whole_answer() {
        let error = validate(&[("a", Committed), ("a", NotReported)]).unwrap_err().to_string();
        assert_eq!(error, "the answer cannot be used: the batch \"a\" has two statuses");
    }
}
