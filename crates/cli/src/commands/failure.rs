use std::{error::Error, fmt, process::ExitCode};

use grid_batch_client::ClientError;
use grid_batch_service::{ConfigError, LedgerMismatchError, StartError};
use grid_batch_store::{StoreError, UrlError};
use grid_batch_support::ErrorChain;

use crate::commands::{exit::Exit, printable::printable};

/// Why a command failed, as one line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    exit: Exit,
}

/// The exit code that says what must change before the command can succeed.
fn exit_of(error: &(dyn Error + 'static)) -> Exit {
    if let Some(ClientError::Unreachable { .. } | ClientError::Busy { .. }) = error.downcast_ref() {
        return Exit::Unreachable;
    }
    let (is_unavailable, is_configuration) = if let Some(error) = error.downcast_ref::<StartError>()
    {
        (error.is_unavailable(), error.is_configuration())
    } else if let Some(error) = error.downcast_ref::<StoreError>() {
        (error.is_unavailable(), error.is_configuration())
    } else {
        let is_configuration = error.is::<ConfigError>()
            || error.is::<UrlError>()
            || error.is::<LedgerMismatchError>();
        (false, is_configuration)
    };
    match (is_unavailable, is_configuration) {
        (true, _) => Exit::Unavailable,
        (_, true) => Exit::Configuration,
        _ => Exit::Failed,
    }
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Failed }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::WrongArguments }
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Configuration }
    }

    /// The same failure, with its subject before the message.
    pub(crate) fn about(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// The same failure, with its place after the message.
    pub(crate) fn at(self, place: &str) -> Self {
        Self { message: format!("{}{place}", self.message), ..self }
    }

    /// Whether a server does not answer, or cannot do it now.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.exit == Exit::Unreachable
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        self.exit.into()
    }
}

/// libpq's messages have several lines.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.message.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join(" ");
        f.write_str(&printable(&line))
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { message: ErrorChain(&error).to_string(), exit: exit_of(&error) }
    }
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
