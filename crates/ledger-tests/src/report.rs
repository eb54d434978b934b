use std::fmt;

/// The results of the cases. It is displayed as a table of at most 80 columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// A row for each case.
    pub rows: Vec<Row>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of the case.
    pub case: &'static str,
    /// The facts or the methods of the ledger that the case tests.
    pub tests: &'static str,
    /// The result.
    pub result: CaseResult,
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// The server kept its promises.
    Passed,
    /// The server did not keep a promise, or the harness panicked. The text says what went wrong.
    Failed(String),
    /// The case was not run, because the ledger does not have the feature that it tests, or the harness cannot do what
    /// it needs. The text says why.
    NotRun(String),
}

impl Report {
    /// The names of the cases that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        let failed = |row: &&Row| matches!(row.result, CaseResult::Failed(_));
        self.rows.iter().filter(failed).map(|row| row.case).collect()
    }

    /// The names of the cases that were not run.
    pub fn not_run(&self) -> Vec<&'static str> {
        let not_run = |row: &&Row| matches!(row.result, CaseResult::NotRun(_));
        self.rows.iter().filter(not_run).map(|row| row.case).collect()
    }

    /// Panics with the table if a case failed. Otherwise prints the table, so that cases that were not run are seen.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.failed().is_empty(), "\n{self}");
        println!("{self}");
    }

    /// As [`assert_passed`](Self::assert_passed), but also panics unless the cases that were not run are exactly those
    /// of this list.
    #[track_caller]
    pub fn assert_passed_but(&self, not_run: &[&str]) {
        self.assert_passed();
        let listed = |row: &Row| not_run.contains(&row.case);
        let expected: Vec<_> =
            self.rows.iter().filter(|row| listed(row)).map(|row| row.case).collect();
        assert_eq!(
            self.not_run(),
            expected,
            "other cases were not run than those that are listed\n{self}"
        );
    }
}

const WIDTH: usize = 80;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { case, tests, result } in &self.rows {
            let (word, reason) = match result {
                CaseResult::Passed => ("passed", None),
                CaseResult::Failed(reason) => ("FAILED", Some(reason)),
                CaseResult::NotRun(reason) => ("not run", Some(reason)),
            };
            writeln!(f, "{case:37} {tests:33} {word}")?;
            for line in reason.into_iter().flat_map(|reason| wrap(reason, WIDTH - 4)) {
                writeln!(f, "    {line}")?;
            }
        }
        Ok(())
    }
}

/// The lines of a text, with at most this many characters each.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut wrapped = String::new();
        for word in line.split_whitespace() {
            let letters: Vec<char> = word.chars().collect();
            for part in letters.chunks(width) {
                if !wrapped.is_empty() && wrapped.chars().count() + 1 + part.len() > width {
                    lines.push(std::mem::take(&mut wrapped));
                }
                if !wrapped.is_empty() {
                    wrapped.push(' ');
                }
                wrapped.extend(part);
            }
        }
        lines.push(wrapped);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_80_columns() {
        let row = |result| Row { case: "a_case", tests: "statuses_survive_restart", result };
        let long = format!("a batch {} was applied twice", "5a".repeat(64));
        let report = Report {
            rows: vec![
                row(CaseResult::Passed),
                row(CaseResult::Failed(long)),
                row(CaseResult::NotRun("no events".to_owned())),
            ],
        };
        let text = report.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\n    no events\n"), "{text}");
        assert_eq!(report.failed(), ["a_case"]);
        assert_eq!(report.not_run(), ["a_case"]);
    }

    fn report(result: CaseResult) -> Report {
        Report { rows: vec![Row { case: "a", tests: "b", result }] }
    }

    #[test]
    #[should_panic = "FAILED"]
    fn failed_case_panics() {
        report(CaseResult::Failed("it was applied twice".to_owned())).assert_passed();
    }

    #[test]
    #[should_panic = "other cases were not run than those that are listed"]
    fn case_that_is_silently_not_run_panics() {
        report(CaseResult::NotRun("no events".to_owned())).assert_passed_but(&["c"]);
    }

    #[test]
    #[should_panic = "other cases were not run than those that are listed"]
    fn case_that_is_run_although_it_is_listed_panics() {
        report(CaseResult::Passed).assert_passed_but(&["a"]);
    }
}
