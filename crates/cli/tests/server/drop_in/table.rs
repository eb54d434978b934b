//! The tables of docs/drop-in.md.

use std::{env, fs};

use grid_batch_test_support::http::Response;

use super::{Difference, Recorded};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/drop-in.md");

#[derive(Debug)]
pub struct Row {
    client: &'static str,
    request: String,
    theirs: String,
    ours: String,
    difference: Difference,
    /// Why the difference is intended.
    differs: &'static str,
}

impl Row {
    pub fn new(
        recorded: &Recorded,
        theirs: &Response,
        ours: &Response,
        difference: Difference,
    ) -> Self {
        let Recorded { client, method, path, differs, .. } = recorded;
        Self {
            client,
            request: format!("{method} {path}"),
            theirs: summary(theirs),
            ours: summary(ours),
            difference,
            differs,
        }
    }

    /// Whether clients get what they expect: a difference is explained, and nothing else is.
    pub fn is_as_expected(&self) -> bool {
        let differs = self.difference.status || !self.difference.missing.is_empty();
        differs != self.differs.is_empty()
    }

    fn line(&self) -> String {
        let Self { client, request, theirs, ours, difference, differs } = self;
        let form = match (differs, &difference.added[..]) {
            (&"", []) => "same form".to_owned(),
            (&"", added) => format!("and `{}`", added.join("`, `")),
            (reason, _) => (*reason).to_owned(),
        };
        format!("| {client} | `{request}` | {theirs} | {ours}, {form} |\n")
    }
}

/// The status, and what the body says first of all.
fn summary(response: &Response) -> String {
    let json: Option<serde_json::Value> = serde_json::from_str(&response.body).ok();
    let code = json.as_ref().and_then(|json| json.pointer("/error/code"));
    let status = response.status;
    match (code, &json) {
        (Some(code), _) => format!("{status}, code {code}"),
        (None, Some(_)) => status.to_string(),
        (None, None) => format!("{status}, text"),
    }
}

/// Compares a section of the document with these rows, or updates it.
pub fn check(section: &str, rows: &[Row]) {
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- end of {section} -->\n"));
    let text = fs::read_to_string(FILE).unwrap();
    let (before, rest) = text.split_once(&begin).expect("the section begins");
    let (present, after) = rest.split_once(&end).expect("the section ends");
    let head = "| Client | Request | The ledger | Here |\n|---|---|---|---|\n".to_owned();
    let expected = rows.iter().fold(head, |table, row| table + &row.line());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(FILE, [before, &begin, &expected, &end, after].concat()).unwrap();
    } else {
        assert_eq!(present, expected, "run this test with UPDATE_DOCS=1 to update docs/drop-in.md");
    }
}
