use std::{error::Error, fmt};

use grid_batch_support::ErrorChain;

/// Why a command failed, as one line for the user.
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

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(on_one_line(&ErrorChain(&error).to_string()))
    }
}

/// Errors of databases and parsers have several lines.
fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_one_line() {
        let error = std::io::Error::other("refused\n  DETAIL: no\u{1b}[2J entry\n");
        assert_eq!(Failure::from(error).to_string(), "refused DETAIL: no [2J entry");
    }
}
