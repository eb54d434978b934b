use std::{error::Error, fmt};

/// Why the program ends, for the person who started it.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error with all that caused it.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let cause = error.to_string();
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
            source = error.source();
        }
        Self(text)
    }
}
