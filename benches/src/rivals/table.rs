//! The table of the rates of all queues.

use std::fmt::Write;

use super::{Case, Outcome, queues::LIMIT_SECONDS};

/// What cannot be compared fairly.
const REMARKS: &str = "\
The queues get units that do nothing, in statements of 1,000. The store stores the bytes of a batch and the ids
of its transactions, and records three steps. The end-to-end run also verifies signatures, sends each batch to a
ledger over HTTP and asks for its status; it takes one unit a request, and adds and works at the same time. The
others add all units before they work. Each has an empty PostgreSQL server with the same settings. The queues
run in Node and Python, which share the processors.";

/// What one queue has done in each case.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) outcomes: Vec<Outcome>,
}

impl Row {
    /// The faster outcome of each case.
    pub(super) fn or_faster(self, other: Self) -> Self {
        let outcomes = self.outcomes.into_iter().zip(other.outcomes);
        Self {
            outcomes: outcomes.map(|(outcome, other)| outcome.or_faster(other)).collect(),
            ..self
        }
    }
}

pub(super) fn text(cases: &[Case], rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, cells: Vec<String>| {
        let _ = writeln!(text, "{name:<16}{}", cells.concat());
    };
    let wide = |text: String| format!("{text:>16}");
    line("", cases.iter().map(|case| wide(format!("{} units", case.units))).collect());
    let keys = cases.first().map_or(0, |case| case.keys);
    let arrangements = cases.iter().map(|case| wide(case.arrangement.name().to_owned()));
    line(&format!("{keys} keys"), arrangements.collect());
    line("", cases.iter().map(|_| "  adding working".to_owned()).collect());
    for Row { name, outcomes } in rows {
        line(
            name,
            cases.iter().zip(outcomes).map(|(case, outcome)| cells(*case, *outcome)).collect(),
        );
    }
    for Row { name, outcomes } in rows {
        for (case, outcome) in cases.iter().zip(outcomes).filter(|(_, it)| it.out_of_order > 0) {
            let Case { units, arrangement, .. } = case;
            let (arrangement, count) = (arrangement.name(), outcome.out_of_order);
            let _ = writeln!(text, "{name}: {count} of {units} {arrangement} were out of order");
        }
    }
    let unit = format!("Units a second; with *, the queue was stopped after {LIMIT_SECONDS} s.");
    format!("{text}\n{unit}\n{REMARKS}")
}

fn cells(case: Case, outcome: Outcome) -> String {
    let adding = match outcome.adding_seconds {
        0.0 => "-".to_owned(),
        seconds => format!("{:.0}", case.units as f64 / seconds),
    };
    let stopped = if outcome.done < case.units { "*" } else { "" };
    format!("{adding:>8}{:>8}", format!("{:.0}{stopped}", outcome.rate()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrangement::Arrangement;

    #[test]
    fn faster_round_does_not_hide_an_error_of_order() {
        let slow = Outcome { done: 10, out_of_order: 1, adding_seconds: 1.0, working_seconds: 2.0 };
        let fast = Outcome { out_of_order: 0, working_seconds: 1.0, ..slow };
        let [slow, fast] = [slow, fast].map(|it| Row { name: "", outcomes: vec![it] });
        let best = slow.or_faster(fast).outcomes[0];
        assert_eq!((best.rate(), best.out_of_order), (10.0, 1));
    }

    #[test]
    fn rate_is_that_of_the_units_that_were_done() {
        let case = Case { units: 1_000, keys: 10, arrangement: Arrangement::Bursts };
        let all =
            Outcome { done: 1_000, out_of_order: 0, adding_seconds: 0.0, working_seconds: 2.0 };
        let stopped = Outcome { done: 100, out_of_order: 3, adding_seconds: 0.5, ..all };
        let rows = [("all", all), ("stopped", stopped)]
            .map(|(name, outcome)| Row { name, outcomes: vec![outcome] });
        let text = text(&[case], &rows);
        let expected = "\
1000 units
10 keys                in bursts
                  adding working
all                    -     500
stopped             2000     50*
stopped: 3 of 1000 in bursts were out of order
";
        assert!(text.trim_start().starts_with(expected), "{text}");
    }
}
