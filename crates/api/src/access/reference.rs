//! `docs/reference/http.md`: all routes with what they need.

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

use axum::http::Method;
use serde_json::Value;

use super::routes::{Coverage, Needs, needs};

const INTRODUCTION: &str = "# Routes

Of the [HTTP interface](../http.md). Generated: `UPDATE_DOCS=1 cargo test -p grid-batch-api reference_of_routes`.

The scope is what a token must have while `access.mode` requires tokens ([security](../guides/security.md)). *All*: the
token must be for all services. *As configured*: `access.health` says who may read it.
";

fn scope(needs: Needs) -> String {
    let all = |coverage| if coverage == Coverage::All { ", all" } else { "" };
    match needs {
        Needs::Nothing => "none".to_owned(),
        Needs::Health(coverage) => format!("as configured{}", all(coverage)),
        Needs::Scope(scope, coverage) => format!("`{scope}`{}", all(coverage)),
    }
}

fn page() -> String {
    let document: Value = serde_json::from_str(&crate::openapi_json()).unwrap();
    let mut groups: BTreeMap<&str, BTreeMap<_, String>> = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(summary) = operation["summary"].as_str() else { continue };
            let method: Method = method.to_uppercase().parse().unwrap();
            let scope = scope(needs(&method, Some(path)));
            let group = groups.entry(operation["tags"][0].as_str().unwrap()).or_default();
            let group = group.entry(scope).or_default();
            writeln!(group, "- `{method} {path}`: {summary}").unwrap();
        }
    }
    let mut page = INTRODUCTION.to_owned();
    for (name, scopes) in groups {
        write!(page, "\n## {name}\n").unwrap();
        for (scope, rows) in scopes {
            write!(page, "\n{scope}:\n\n{rows}").unwrap();
        }
    }
    page
}

#[test]
fn reference_of_routes_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/http.md");
    let expected = page();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let present = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        present, expected,
        "UPDATE_DOCS=1 cargo test -p grid-batch-api reference_of_routes updates it"
    );
}
