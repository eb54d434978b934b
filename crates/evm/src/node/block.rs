use serde::{Serialize, Serializer};

/// The block as of which a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockTag {
    /// The last one.
    Latest,
    /// The one of this number.
    Number(u64),
}

impl Serialize for BlockTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => serializer.serialize_str("latest"),
            Self::Number(number) => serializer.serialize_str(&format!("{number:#x}")),
        }
    }
}
