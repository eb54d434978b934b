use grid_batch_core::{Outcome, SubmissionAnswer};
use grid_batch_http::{Answer, HttpError};

use crate::api_error::{ApiError, message};

/// What can come of a POST of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// An answer with a status from the first to the second, and with this code, where it matters.
    Answer(u16, u16, Option<u16>),
    NotSent,
    Unusable,
    NoAnswer,
}

/// The first row that fits counts. The README says why each is as it is.
const TABLE: &[(Case, Outcome)] = &[
    (status(202), Outcome::Accepted),
    (status(200), Outcome::Accepted),
    (status(429), Outcome::Busy),
    (code(503, 15), Outcome::Busy),
    (code(408, 19), Outcome::NotSent),
    (status(408), Outcome::Ambiguous),
    (code(400, 30), Outcome::Rejected),
    (code(400, 34), Outcome::Rejected),
    (code(400, 35), Outcome::Rejected),
    (status(413), Outcome::Rejected),
    (statuses(400, 499), Outcome::Refused),
    (statuses(300, 399), Outcome::Refused),
    (statuses(0, u16::MAX), Outcome::Ambiguous),
    (Case::NotSent, Outcome::NotSent),
    (Case::Unusable, Outcome::Refused),
    (Case::NoAnswer, Outcome::Ambiguous),
];

const fn status(status: u16) -> Case {
    statuses(status, status)
}

const fn statuses(first: u16, last: u16) -> Case {
    Case::Answer(first, last, None)
}

const fn code(status: u16, code: u16) -> Case {
    Case::Answer(status, status, Some(code))
}

impl Case {
    fn of(result: &Result<Answer, HttpError>) -> Self {
        match result {
            Ok(answer) => {
                let code = ApiError::of(answer).map(|error| error.code);
                Self::Answer(answer.status, answer.status, code)
            }
            Err(HttpError::NotSent(_)) => Self::NotSent,
            Err(HttpError::Client(_) | HttpError::Request(_)) => Self::Unusable,
            Err(_) => Self::NoAnswer,
        }
    }

    /// Whether this case is one of those that `row` is about.
    fn is_of(self, row: Self) -> bool {
        match (self, row) {
            (Self::Answer(status, _, code), Self::Answer(first, last, wanted)) => {
                (first..=last).contains(&status) && (wanted.is_none() || wanted == code)
            }
            (case, row) => case == row,
        }
    }

    fn outcome(self) -> Outcome {
        let row = TABLE.iter().find(|(row, _)| self.is_of(*row));
        row.map_or(Outcome::Ambiguous, |(_, outcome)| *outcome)
    }
}

/// What came of a POST of a batch.
pub(crate) fn submission_answer(result: Result<Answer, HttpError>) -> SubmissionAnswer {
    let outcome = Case::of(&result).outcome();
    match result {
        Ok(answer) => SubmissionAnswer {
            outcome,
            status: Some(answer.status),
            message: (outcome != Outcome::Accepted).then(|| message(&answer)),
            retry_after: answer.retry_after,
        },
        Err(error) => SubmissionAnswer {
            outcome,
            status: None,
            message: Some(error.to_string()),
            retry_after: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row as it stands in the README, without the reason.
    fn written((case, outcome): &(Case, Outcome)) -> String {
        let any = || "any".to_owned();
        let (answer, code) = match *case {
            Case::Answer(0, u16::MAX, None) => ("any other".to_owned(), any()),
            Case::Answer(first, last, code) if first == last => {
                (first.to_string(), code.map_or_else(any, |code| code.to_string()))
            }
            Case::Answer(first, last, _) => (format!("{first} to {last}"), any()),
            Case::NotSent => ("none: not sent".to_owned(), "-".to_owned()),
            Case::Unusable => ("none: cannot be sent".to_owned(), "-".to_owned()),
            Case::NoAnswer => ("none, or not whole".to_owned(), "-".to_owned()),
        };
        format!("| {answer} | {code} | {outcome} |")
    }

    #[test]
    fn the_table_of_the_readme_is_the_table() {
        let readme = include_str!("../README.md");
        let head = "| answer | code | outcome | why |\n|---|---|---|---|\n";
        let (_, rows) = readme.split_once(head).unwrap();
        let rows = rows.lines().take_while(|line| line.starts_with('|'));
        let without_reason = rows.map(|row| row.rsplitn(3, '|').nth(2).unwrap().to_owned() + "|");
        let table: Vec<String> = TABLE.iter().map(written).collect();
        assert_eq!(without_reason.collect::<Vec<_>>(), table, "\n{}", table.join("\n"));
    }

    #[test]
    fn each_row_counts_somewhere() {
        let codes = (0..100).map(Some).chain([None]);
        let answers = codes.flat_map(|code| {
            [0, 100, 200, 202, 204, 300, 400, 404, 408, 413, 429, 499, 500, 503, 599, 999]
                .map(|status| Case::Answer(status, status, code))
        });
        let cases = answers.chain([Case::NotSent, Case::Unusable, Case::NoAnswer]);
        let first = |case: Case| TABLE.iter().position(|(row, _)| case.is_of(*row)).unwrap();
        let met: std::collections::BTreeSet<usize> = cases.map(first).collect();
        assert_eq!(met.into_iter().collect::<Vec<_>>(), (0..TABLE.len()).collect::<Vec<_>>());
    }

    #[test]
    fn only_a_certain_refusal_or_acceptance_of_the_batch_itself_ends_or_advances_it() {
        for status in 0..=u16::MAX {
            let outcome = Case::Answer(status, status, None).outcome();
            let (first, last) = match outcome {
                Outcome::Accepted => (200, 202),
                Outcome::Rejected => (413, 413),
                Outcome::Busy => (429, 429),
                Outcome::Refused => (300, 499),
                Outcome::NotSent | Outcome::Parked => panic!("{status} came from somebody"),
                Outcome::Ambiguous => continue,
            };
            assert!((first..=last).contains(&status), "{status} is {outcome}");
        }
    }
}
