//! Times in requests and answers.

use std::time::UNIX_EPOCH;

use grid_batch_core::{Excerpt, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type},
};

/// A time, in the format of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Timestamp);

impl Time {
    /// A time since 1970.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let since_epoch = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self(Timestamp::from_micros(since_epoch.as_micros().try_into().ok()?)))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let given = Excerpt::of(&text);
            de::Error::custom(format!(
                "it is {given}; it must be a time such as 2027-11-22T09:30:00Z"
            ))
        })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.rfc3339_micros())
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Time {}
