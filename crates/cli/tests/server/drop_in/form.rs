//! The form of a JSON document: its keys, and the kinds of its values.

use std::collections::BTreeMap;

use grid_batch_test_support::http::Response;
use serde_json::Value;

/// How an answer differs from that of the ledger, in what clients may depend on.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub status: bool,
    /// Keys that the ledger has and this server has not, or values of another kind.
    pub missing: Vec<String>,
    /// Keys that only this server has.
    pub added: Vec<String>,
}

impl Difference {
    pub fn between(theirs: &Response, ours: &Response) -> Self {
        let [theirs_form, ours_form] = [theirs, ours].map(|response| form_of(&response.body));
        let missing = theirs_form.iter().filter(|(key, kind)| ours_form.get(*key) != Some(kind));
        let added = ours_form.keys().filter(|key| !theirs_form.contains_key(*key));
        Self {
            status: theirs.status != ours.status,
            missing: missing.map(|(key, _)| key.clone()).collect(),
            added: outermost(added.cloned().collect()),
        }
    }
}

/// Leaves out keys below another key of the list.
fn outermost(keys: Vec<String>) -> Vec<String> {
    let is_below = |key: &str| keys.iter().any(|other| key.starts_with(&format!("{other}.")));
    keys.iter().filter(|key| !is_below(key)).cloned().collect()
}

/// The kind of each value, by its path. Elements of lists share their path. Statuses count as values.
fn form_of(body: &str) -> BTreeMap<String, String> {
    let mut form = BTreeMap::new();
    match serde_json::from_str(body) {
        Ok(json) => collect(&json, String::new(), &mut form),
        Err(_) if body.is_empty() => {}
        Err(_) => drop(form.insert(String::new(), "text".to_owned())),
    }
    form
}

fn collect(json: &Value, path: String, form: &mut BTreeMap<String, String>) {
    let kind = match json {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if path.ends_with("error.code") => number.to_string(),
        Value::Number(_) => "number".to_owned(),
        Value::String(text) if path.ends_with("status") || path.ends_with("statusType") => {
            text.clone()
        }
        Value::String(_) => "text".to_owned(),
        Value::Array(elements) => {
            elements.iter().for_each(|element| collect(element, format!("{path}[]"), form));
            "list".to_owned()
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                collect(value, format!("{path}{dot}{name}"), form);
            }
            "object".to_owned()
        }
    };
    form.insert(path, kind);
}
