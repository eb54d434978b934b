use std::{collections::BTreeMap, fmt};

use grid_batch_core::Excerpt;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::Value;

use crate::error::ApiError;

/// The members of a JSON object: each is known, and there once.
#[derive(Debug, Default)]
pub(crate) struct Members(BTreeMap<String, Value>);

impl Members {
    /// Reads an object that has no other members than `known`.
    pub(crate) fn parse(body: &[u8], known: &'static [&'static str]) -> Result<Self, ApiError> {
        let Self(members) =
            serde_json::from_slice(body).map_err(|error| ApiError::Json(error.to_string()))?;
        if let Some(other) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(ApiError::UnknownMember { name: Excerpt::of(other), known });
        }
        Ok(Self(members))
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<String, ApiError> {
        let rule = "it is missing; it is a text";
        self.optional_text(name)?.ok_or(ApiError::Value { name, rule: rule.to_owned() })
    }

    /// A text that may be missing, or null.
    pub(crate) fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_kind(name, &other, "a text")),
        }
    }

    /// Yes or no, and `default` where it is missing, or null.
    pub(crate) fn flag(&mut self, name: &'static str, default: bool) -> Result<bool, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong_kind(name, &other, "true or false")),
        }
    }
}

fn wrong_kind(name: &'static str, value: &Value, kind: &str) -> ApiError {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    ApiError::Value { name, rule: format!("it is {is}; it must be {kind}, in JSON") }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EachOnce)
    }
}

/// Of two members of one name, `serde_json` would drop one; which of them was meant nobody knows.
struct EachOnce;

impl<'de> Visitor<'de> for EachOnce {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            let excerpt = Excerpt::of(&name);
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom(format_args!("the member {excerpt} is there twice")));
            }
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Members, ApiError> {
        Members::parse(text.as_bytes(), &["a", "b"])
    }

    #[test]
    fn texts_and_flags_are_taken_by_name() {
        let mut members = parse(r#"{"a":"x","b":false}"#).unwrap();
        assert_eq!(members.text("a"), Ok("x".to_owned()));
        assert_eq!(members.flag("b", true), Ok(false));
        assert_eq!(members.flag("b", true), Ok(true));
        assert_eq!(parse(r#"{"a":null}"#).unwrap().optional_text("a"), Ok(None));
    }

    #[test]
    fn a_wrong_body_is_refused_and_says_why() {
        for (text, words) in [
            ("", "EOF"),
            ("[]", "expected an object"),
            ("{} {}", "trailing"),
            (r#"{"a":"x","a":"x"}"#, "\"a\" is there twice"),
            (r#"{"c":1}"#, "\"c\", which is not known here; it may have a, b"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_wrong_member_is_named_with_its_rule() {
        let mut members = parse(r#"{"a":5,"b":"yes"}"#).unwrap();
        let message = |error: ApiError| error.to_string();
        assert_eq!(
            members.text("a").map_err(message),
            Err("the a cannot be taken: it is a number; it must be a text, in JSON".to_owned())
        );
        assert_eq!(
            members.flag("b", true).map_err(message),
            Err("the b cannot be taken: it is a text; it must be true or false, in JSON".to_owned())
        );
        assert_eq!(
            members.text("b").map_err(message),
            Err("the b cannot be taken: it is missing; it is a text".to_owned())
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_object_or_an_error(text in "[{}\\[\\]\":,ab0-9eé\\\\ntrue]{0,40}") {
            let _ = parse(&text);
        }
    }
}
