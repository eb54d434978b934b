//! The parameters and the body of a request, in the types that declare them: the fields of a type are their names.

use std::{fmt, slice, str::FromStr};

use axum::{extract::FromRequestParts, http::request::Parts};
use grid_batch_core::Excerpt;
use serde::{
    Deserialize, Deserializer,
    de::{
        self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, Unexpected,
        Visitor, value::SeqDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{ApiError, Query, RequestError};

/// The parameters that the fields of a type declare. Others are refused: ignoring a filter would return too much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(request: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        read_params(request).map(Self)
    }
}

/// The parameters of a request that are the fields of a type.
pub(crate) fn read_params<T: DeserializeOwned>(request: &Parts) -> Result<T, ApiError> {
    Query::parse(request.uri.query())?.params()
}

/// Nothing.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct NoParams {}

impl Query {
    /// The parameters that the fields of a type declare. Others are refused.
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        read(Source::Query(self))
    }

    /// The parameters that the fields of a type declare. Others are ignored, as the interfaces of ledgers do.
    pub(crate) fn some_params<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        read(Source::SomeOfQuery(self))
    }
}

/// Reads a body that is a JSON object of the fields of a type.
pub(crate) fn read_json_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let UniqueFields(fields) = serde_json::from_slice(body)
        .map_err(|error| RequestError::InvalidJsonObject(error.to_string()))?;
    read(Source::Json(fields))
}

/// Parses a parameter or field. The error of its type says which rule it breaks.
pub(crate) fn parse_value<T: FromStr<Err: fmt::Display>>(
    name: &'static str,
    text: &str,
) -> Result<T, ApiError> {
    text.parse().map_err(|error: T::Err| ApiError::invalid_value(name, error.to_string()))
}

/// The names of the fields of a type.
pub(crate) fn names_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let unknown = Map::from_iter([(String::new(), Value::Null)]);
    let refused = read::<T>(Source::Json(unknown)).err();
    match refused.as_ref().and_then(ApiError::get) {
        Some(&RequestError::UnknownField { known, .. }) => known,
        _ => &[],
    }
}

fn read<T: DeserializeOwned>(source: Source<'_>) -> Result<T, ApiError> {
    T::deserialize(source).map_err(|error| error.of("request"))
}

/// The limit of the items of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLimit(pub(crate) usize);

impl PageLimit {
    const LARGEST: usize = 1_000;

    /// The limit, or this one if it is lower.
    pub(crate) fn at_most(self, limit: usize) -> Self {
        Self(self.0.min(limit))
    }

    /// Cuts what was read to a page. One item more than it has shows that there is a next page; then the last item of
    /// this one is returned.
    pub(crate) fn cut<T>(self, items: &mut Vec<T>) -> Option<&T> {
        let has_next = items.len() > self.0;
        items.truncate(self.0);
        items.last().filter(|_| has_next)
    }
}

impl Default for PageLimit {
    fn default() -> Self {
        Self(100)
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Option::<Value>::deserialize(deserializer)? {
            None => return Ok(Self::default()),
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        };
        let limit = text.parse().ok().filter(|limit| (1..=Self::LARGEST).contains(limit));
        limit.map(Self).ok_or_else(|| {
            let (given, largest) = (Excerpt::of(&text), Self::LARGEST);
            de::Error::custom(format!("it is {given}; it must be a number from 1 to {largest}"))
        })
    }
}

/// `next` of an earlier page.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct PageStart(String);

impl PageStart {
    /// The position at which a list continues.
    pub(crate) fn cursor<T: FromStr>(self) -> Result<T, ApiError> {
        self.0.parse().map_err(|_| {
            let given = Excerpt::of(&self.0);
            let rule = format!("it is {given}; it must be `next` of an earlier page");
            ApiError::invalid_value("after", rule)
        })
    }
}

#[derive(Debug, Error)]
enum FieldError {
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// What is wrong with the value of the field that is being read.
    #[error("{0}")]
    Rule(String),
    /// Its value has another type.
    #[error("it has another type")]
    Type,
}

impl FieldError {
    /// The error, if it is about the field of this name or about one in it.
    fn of(self, name: &'static str) -> ApiError {
        match self {
            Self::Refused(error) => error,
            error => ApiError::invalid_value(name, error.to_string()),
        }
    }
}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(rule: T) -> Self {
        Self::Rule(rule.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::Type
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::Type
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        let known = known.join(" or ");
        Self::Rule(format!("it is {}; it must be {known}", Excerpt::of(given)))
    }
}

/// Where the fields of a type are read.
enum Source<'a> {
    Query(&'a Query),
    SomeOfQuery(&'a Query),
    Json(Map<String, Value>),
}

impl<'a> Source<'a> {
    fn check_names(&self, known: &'static [&'static str]) -> Result<(), ApiError> {
        match self {
            Self::Query(query) => query.check_names(known),
            Self::SomeOfQuery(_) => Ok(()),
            Self::Json(fields) => {
                match fields.keys().find(|name| !known.contains(&name.as_str())) {
                    Some(name) => {
                        Err(RequestError::UnknownField { name: Excerpt::of(name), known }.into())
                    }
                    None => Ok(()),
                }
            }
        }
    }

    fn take(&mut self, name: &'static str) -> Result<Given<'a>, ApiError> {
        match self {
            Self::Query(query) => match query.get_all(name)[..] {
                [] => Ok(Given::Nothing),
                ref texts if texts.iter().any(|text| text.contains('\0')) => {
                    let rule = "it has a zero byte, which no stored text has";
                    Err(ApiError::invalid_value(name, rule))
                }
                [first, ref others @ ..] if others.iter().all(|other| *other == first) => {
                    Ok(Given::Text(first))
                }
                ref texts => Ok(Given::Texts(name, texts.to_vec())),
            },
            Self::SomeOfQuery(query) => Ok(query.get(name)?.map_or(Given::Nothing, Given::Text)),
            Self::Json(fields) => Ok(fields.remove(name).map_or(Given::Nothing, Given::Json)),
        }
    }
}

impl<'de> Deserializer<'de> for Source<'_> {
    type Error = FieldError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.check_names(names)?;
        visitor.visit_map(Fields { source: self, names: names.iter(), next: None })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, FieldError> {
        Err(FieldError::Type)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Visits every field of a type, also one that is not given.
struct Fields<'a> {
    source: Source<'a>,
    names: slice::Iter<'static, &'static str>,
    next: Option<&'static str>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldError> {
        self.next = self.names.next().copied();
        self.next.map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldError> {
        let name = self.next.take().unwrap_or_default();
        let given = self.source.take(name)?;
        seed.deserialize(given).map_err(|error| error.of(name).into())
    }
}

/// The value of a field.
enum Given<'a> {
    Nothing,
    Text(&'a str),
    /// Different values of one parameter, which must be a list.
    Texts(&'static str, Vec<&'a str>),
    Json(Value),
}

impl Given<'_> {
    fn visit<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        expected: &str,
    ) -> Result<V::Value, FieldError> {
        let (kind, text) = match &self {
            Self::Nothing => ("missing", None),
            Self::Text(text) => ("a string", Some(*text)),
            Self::Texts(..) => ("several strings", None),
            Self::Json(Value::Null) => ("null", None),
            Self::Json(Value::Bool(_)) => ("a boolean", None),
            Self::Json(Value::Number(_)) => ("a number", None),
            Self::Json(Value::String(_)) => ("a string", None),
            Self::Json(Value::Array(_)) => ("an array", None),
            Self::Json(Value::Object(_)) => ("an object", None),
        };
        let visited = match self {
            Self::Text(text) => visitor.visit_str(text),
            Self::Texts(name, _) => {
                Err(FieldError::Refused(RequestError::ContradictoryParameter(name).into()))
            }
            Self::Json(Value::Bool(value)) => visitor.visit_bool(value),
            Self::Json(Value::Number(number)) => {
                number.deserialize_any(visitor).map_err(|_| FieldError::Type)
            }
            Self::Json(Value::String(text)) => visitor.visit_string(text),
            Self::Json(Value::Array(items)) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Given::Json)))
            }
            Self::Nothing | Self::Json(Value::Null | Value::Object(_)) => Err(FieldError::Type),
        };
        visited.map_err(|error| match (error, text) {
            (FieldError::Type, Some(text)) => {
                FieldError::Rule(format!("it is {}; it must be {expected}", Excerpt::of(text)))
            }
            (FieldError::Type, None) => {
                FieldError::Rule(format!("it is {kind}; it must be {expected}"))
            }
            (error, _) => error,
        })
    }
}

impl<'de> Deserializer<'de> for Given<'_> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit(visitor, "a string")
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            Self::Text("true") => visitor.visit_bool(true),
            Self::Text("false") => visitor.visit_bool(false),
            other => other.visit(visitor, "true or false"),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit(visitor, "a whole number from 0 to 4294967295")
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.visit(visitor, "a whole number from 0 on")
    }

    /// A list in a query has one value separated by commas, or several values.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let texts = match self {
            Self::Text(text) => vec![text],
            Self::Texts(_, texts) => texts,
            other => return other.visit(visitor, "an array"),
        };
        let items = texts.iter().flat_map(|text| text.split(',')).map(Given::Text);
        visitor.visit_seq(SeqDeserializer::new(items))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self {
            Self::Nothing | Self::Json(Value::Null) => visitor.visit_none(),
            given => visitor.visit_some(given),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_enum(String::deserialize(self)?.into_deserializer())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self {
            Self::Json(Value::Object(fields)) => {
                Source::Json(fields).deserialize_struct(name, names, visitor)
            }
            other => other.visit(visitor, "an object"),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, FieldError> for Given<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Refuses duplicate fields: `serde_json` would drop one silently.
struct UniqueFields(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueFields(Map::new()))
    }
}

impl<'de> Visitor<'de> for UniqueFields {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            let excerpt = Excerpt::of(&name);
            if self.0.insert(name, value).is_some() {
                return Err(de::Error::custom(format_args!("duplicate field {excerpt}")));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Example {
        text: Option<String>,
        flag: Option<bool>,
        limit: PageLimit,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Body {
        a: String,
        b: Option<bool>,
        number: Option<u32>,
        list: Option<Vec<Inner>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        c: String,
    }

    fn read(text: &str) -> Result<Example, String> {
        Query::parse(Some(text)).unwrap().params().map_err(|error| error.to_string())
    }

    fn parse(text: &str) -> Result<Body, String> {
        read_json_object(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_are_the_fields_of_a_type() {
        let all = Example { text: Some("a b".into()), flag: Some(true), limit: PageLimit(7) };
        assert_eq!(read("limit=7&flag=true&text=a+b"), Ok(all));
        assert_eq!(read(""), Ok(Example { text: None, flag: None, limit: PageLimit(100) }));
        let true_text = Query::parse(Some("text=true&colour=blue")).unwrap();
        assert_eq!(true_text.some_params::<Example>().unwrap().text.unwrap(), "true");
    }

    #[test]
    fn errors_name_the_parameter_and_its_rule() {
        for (query, expected) in [
            ("flag=yes", "invalid flag: it is \"yes\"; it must be true or false"),
            ("limit=0", "invalid limit: it is \"0\"; it must be a number from 1 to 1000"),
            ("limit=1001", "it must be a number from 1 to 1000"),
            ("limit=1&limit=2", "the query parameter limit occurs several times"),
            ("text=%00", "invalid text: it has a zero byte"),
            ("colour=blue", "unknown query parameter \"colour\"; allowed: text, flag, limit"),
        ] {
            let error = read(query).unwrap_err();
            assert!(error.contains(expected), "{query}: {error}");
        }
    }

    #[test]
    fn body_is_the_fields_of_a_type() {
        let text = r#"{"a":"x","b":false,"number":5,"list":[{"c":"y"}]}"#;
        let list = Some(vec![Inner { c: "y".into() }]);
        assert_eq!(parse(text), Ok(Body { a: "x".into(), b: Some(false), number: Some(5), list }));
        let only_a = Body { a: "x".into(), b: None, number: None, list: None };
        assert_eq!(parse(r#"{"a":"x","b":null}"#), Ok(only_a));
        assert_eq!(names_of::<Body>(), ["a", "b", "number", "list"]);
    }

    #[test]
    fn invalid_object_is_refused_with_the_reason() {
        for (text, words) in [
            ("", "EOF"),
            ("[]", "expected an object"),
            ("{} {}", "trailing"),
            (r#"{"a":"x","a":"x"}"#, "duplicate field \"a\""),
            (r#"{"c":1}"#, "unknown field \"c\"; allowed: a, b, number, list"),
            (r#"{"a":"x","list":[{"d":1}]}"#, "unknown field \"d\"; allowed: c"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn invalid_field_is_named_with_its_rule() {
        for (text, message) in [
            ("{}", "invalid a: it is missing; it must be a string"),
            (r#"{"a":5}"#, "invalid a: it is a number; it must be a string"),
            (r#"{"a":null}"#, "invalid a: it is null; it must be a string"),
            (r#"{"a":"x","b":"true"}"#, "invalid b: it is a string; it must be true or false"),
            (
                r#"{"a":"x","number":-1}"#,
                "invalid number: it is a number; it must be a whole number from 0 to 4294967295",
            ),
            (r#"{"a":"x","list":{}}"#, "invalid list: it is an object; it must be an array"),
            (r#"{"a":"x","list":[{}]}"#, "invalid c: it is missing; it must be a string"),
        ] {
            assert_eq!(parse(text), Err(message.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_object_or_an_error(text in "[{}\\[\\]\":,ab0-9eé\\\\ntrue]{0,40}") {
            let _ = parse(&text);
        }
    }
}
