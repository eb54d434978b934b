use std::{collections::BTreeMap, fmt};

use grid_batch_core::Excerpt;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::Value;

use crate::http::{ApiError, RequestError};

/// The fields of a JSON object in a request. Unknown and duplicate fields are errors.
#[derive(Debug, Default)]
pub(crate) struct JsonObject(BTreeMap<String, Value>);

impl JsonObject {
    /// Parses an object that has no fields other than `known`.
    pub(crate) fn parse(body: &[u8], known: &'static [&'static str]) -> Result<Self, ApiError> {
        let Self(fields) = serde_json::from_slice(body)
            .map_err(|error| RequestError::InvalidJsonObject(error.to_string()))?;
        if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(RequestError::UnknownField { name: Excerpt::of(name), known }.into());
        }
        Ok(Self(fields))
    }

    /// Takes a required string.
    pub(crate) fn string(&mut self, name: &'static str) -> Result<String, ApiError> {
        let rule = "it is missing; it must be a string";
        let missing = || ApiError::invalid_value(name, rule);
        self.optional_string(name)?.ok_or_else(missing)
    }

    /// Takes a string that may be missing or null.
    pub(crate) fn optional_string(
        &mut self,
        name: &'static str,
    ) -> Result<Option<String>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, &other, "a string")),
        }
    }

    /// Takes an array of strings; empty, if it is missing or null.
    pub(crate) fn strings(&mut self, name: &'static str) -> Result<Vec<String>, ApiError> {
        let refused = || {
            let rule = "it must be an array of strings".to_owned();
            ApiError::invalid_value(name, rule)
        };
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(values)) => values
                .into_iter()
                .map(|value| value.as_str().map(str::to_owned).ok_or_else(refused))
                .collect(),
            Some(_) => Err(refused()),
        }
    }

    /// Takes a boolean; `default`, if it is missing or null.
    pub(crate) fn boolean(&mut self, name: &'static str, default: bool) -> Result<bool, ApiError> {
        Ok(self.optional_boolean(name)?.unwrap_or(default))
    }

    /// Takes a boolean that may be missing or null.
    pub(crate) fn optional_boolean(
        &mut self,
        name: &'static str,
    ) -> Result<Option<bool>, ApiError> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(name, &other, "true or false")),
        }
    }

    /// Takes a number that may be missing or null.
    pub(crate) fn optional_u32(&mut self, name: &'static str) -> Result<Option<u32>, ApiError> {
        const RANGE: &str = "a whole number from 0 to 4294967295";
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(other) => match other.as_u64().map(u32::try_from) {
                Some(Ok(number)) => Ok(Some(number)),
                _ => Err(wrong_type(name, &other, RANGE)),
            },
        }
    }

    /// Takes a required number.
    pub(crate) fn u64(&mut self, name: &'static str) -> Result<u64, ApiError> {
        const RANGE: &str = "a whole number from 0 on";
        let value = self.0.remove(name).unwrap_or_default();
        value.as_u64().ok_or_else(|| wrong_type(name, &value, RANGE))
    }

    /// Takes a required object that has no fields other than `known`.
    pub(crate) fn object(
        &mut self,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, ApiError> {
        let value = self.0.remove(name).unwrap_or(Value::Null);
        Self::of_value(name, value, known)
    }

    /// Takes an array of objects that have no fields other than `known`; empty, if it is missing or null.
    pub(crate) fn objects(
        &mut self,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Self>, ApiError> {
        match self.0.remove(name).unwrap_or(Value::Null) {
            Value::Null => Ok(Vec::new()),
            Value::Array(values) => {
                values.into_iter().map(|value| Self::of_value(name, value, known)).collect()
            }
            other => Err(wrong_type(name, &other, "an array of objects")),
        }
    }

    /// Whether a field has a value and was not taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    fn of_value(
        name: &'static str,
        value: Value,
        known: &'static [&'static str],
    ) -> Result<Self, ApiError> {
        match value {
            Value::Object(fields) => {
                let fields: BTreeMap<String, Value> = fields.into_iter().collect();
                match fields.keys().find(|name| !known.contains(&name.as_str())) {
                    Some(name) => {
                        Err(RequestError::UnknownField { name: Excerpt::of(name), known }.into())
                    }
                    None => Ok(Self(fields)),
                }
            }
            other => Err(wrong_type(name, &other, "an object")),
        }
    }
}

fn wrong_type(name: &'static str, value: &Value, expected: &str) -> ApiError {
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    ApiError::invalid_value(name, format!("it is {actual}; it must be {expected}"))
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueFields)
    }
}

/// Refuses duplicate fields: `serde_json` would drop one silently.
struct UniqueFields;

impl<'de> Visitor<'de> for UniqueFields {
    type Value = JsonObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonObject, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            let excerpt = Excerpt::of(&name);
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom(format_args!("duplicate field {excerpt}")));
            }
        }
        Ok(JsonObject(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<JsonObject, ApiError> {
        JsonObject::parse(text.as_bytes(), &["a", "b"])
    }

    #[test]
    fn fields_are_taken_by_name() {
        let mut object = parse(r#"{"a":"x","b":false}"#).unwrap();
        assert_eq!(object.string("a"), Ok("x".to_owned()));
        assert_eq!(object.boolean("b", true), Ok(false));
        assert_eq!(object.boolean("b", true), Ok(true));
        assert_eq!(parse(r#"{"a":null}"#).unwrap().optional_string("a"), Ok(None));
    }

    #[test]
    fn invalid_object_is_refused_with_the_reason() {
        for (text, words) in [
            ("", "EOF"),
            ("[]", "expected an object"),
            ("{} {}", "trailing"),
            (r#"{"a":"x","a":"x"}"#, "duplicate field \"a\""),
            (r#"{"c":1}"#, "unknown field \"c\"; allowed: a, b"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn invalid_field_is_named_with_its_rule() {
        let mut object = parse(r#"{"a":5,"b":"yes"}"#).unwrap();
        let message = |error: ApiError| error.to_string();
        assert_eq!(
            object.string("a").map_err(message),
            Err("invalid a: it is a number; it must be a string".to_owned())
        );
        assert_eq!(
            object.boolean("b", true).map_err(message),
            Err("invalid b: it is a string; it must be true or false".to_owned())
        );
        assert_eq!(
            object.string("b").map_err(message),
            Err("invalid b: it is missing; it must be a string".to_owned())
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_object_or_an_error(text in "[{}\\[\\]\":,ab0-9eé\\\\ntrue]{0,40}") {
            let _ = parse(&text);
        }
    }
}
