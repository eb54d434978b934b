//! The parameters of a request, in the type that declares them: its fields are their names.

use std::{fmt, slice, str::FromStr};

use grid_batch_core::Excerpt;
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor},
    forward_to_deserialize_any,
};
use thiserror::Error;
use utoipa::ToSchema;

use super::{ApiError, Query};

impl Query {
    /// The parameters that the fields of a type declare. Others are refused: ignoring a filter would return too much.
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        T::deserialize(Params(self)).map_err(|error| match error {
            ParamError::Refused(error) => error,
            ParamError::Rule(rule) => ApiError::invalid_value("query", rule),
        })
    }

    /// Refuses all parameters.
    pub(crate) fn refuse_all(&self) -> Result<(), ApiError> {
        self.check_names(&[])
    }
}

/// The limit of the items of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
pub(crate) struct PageLimit(pub(crate) usize);

impl PageLimit {
    const LARGEST: usize = 1_000;

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
        let text = String::deserialize(deserializer)?;
        let limit = text.parse().ok().filter(|limit| (1..=Self::LARGEST).contains(limit));
        limit.map(Self).ok_or_else(|| {
            let largest = Self::LARGEST;
            de::Error::custom(format!(
                "it is {}; it must be a number from 1 to {largest}",
                Excerpt::of(&text)
            ))
        })
    }
}

/// `next` of an earlier page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageStart<T>(pub(crate) T);

impl<'de, T: FromStr> Deserialize<'de> for PageStart<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| {
            let given = Excerpt::of(&text);
            de::Error::custom(format!("it is {given}; it must be `next` of an earlier page"))
        })
    }
}

#[derive(Debug, Error)]
enum ParamError {
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// What is wrong with the value of the parameter that is being read.
    #[error("{0}")]
    Rule(String),
}

impl de::Error for ParamError {
    fn custom<T: fmt::Display>(rule: T) -> Self {
        Self::Rule(rule.to_string())
    }
}

struct Params<'q>(&'q Query);

impl<'de> Deserializer<'de> for Params<'_> {
    type Error = ParamError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ParamError> {
        self.0.check_names(names)?;
        visitor.visit_map(GivenParams { query: self.0, names: names.iter(), value: None })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, ParamError> {
        Err(de::Error::custom("parameters are the fields of a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct GivenParams<'q> {
    query: &'q Query,
    names: slice::Iter<'static, &'static str>,
    value: Option<Value<'q>>,
}

impl<'de> MapAccess<'de> for GivenParams<'_> {
    type Error = ParamError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ParamError> {
        for name in self.names.by_ref().copied() {
            if let Some(text) = self.query.get(name)? {
                self.value = Some(Value { name, text });
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ParamError> {
        let Some(value) = self.value.take() else {
            return Err(de::Error::custom("a value is read after its name"));
        };
        let name = value.name;
        seed.deserialize(value).map_err(|error| match error {
            ParamError::Rule(rule) => ApiError::invalid_value(name, rule).into(),
            refused @ ParamError::Refused(_) => refused,
        })
    }
}

#[derive(Clone, Copy)]
struct Value<'q> {
    name: &'static str,
    text: &'q str,
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = ParamError;

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParamError> {
        match self.text {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            text => {
                let rule = format!("it is {}; it must be true or false", Excerpt::of(text));
                Err(ParamError::Rule(rule))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParamError> {
        visitor.visit_some(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParamError> {
        if self.text.contains('\0') {
            return Err(de::Error::custom("it has a zero byte, which no stored text has"));
        }
        visitor.visit_str(self.text)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Example {
        text: Option<String>,
        flag: Option<bool>,
        #[serde(default)]
        limit: PageLimit,
    }

    fn read(text: &str) -> Result<Example, String> {
        Query::parse(Some(text)).unwrap().params().map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_are_the_fields_of_a_type() {
        let all = Example { text: Some("a b".into()), flag: Some(true), limit: PageLimit(7) };
        assert_eq!(read("limit=7&flag=true&text=a+b"), Ok(all));
        assert_eq!(read(""), Ok(Example { text: None, flag: None, limit: PageLimit(100) }));
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
}
