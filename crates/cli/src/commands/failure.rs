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
    cause: Cause,
}

/// What must change before the command can succeed. Each kind has an exit code of `sysexits.h`, which supervisors such
/// as systemd know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The arguments.
    Usage,
    /// A setting, a key file, or what they name.
    Configuration,
    /// Nothing: the database or something else that is needed cannot be reached now.
    Unavailable,
    /// Nothing: a server does not answer now.
    Unreachable,
    /// Something else.
    Other,
}

impl Cause {
    fn of(error: &(dyn Error + 'static)) -> Self {
        if let Some(ClientError::Unreachable { .. } | ClientError::Busy { .. }) =
            error.downcast_ref()
        {
            return Self::Unreachable;
        }
        let (is_unavailable, is_configuration) =
            if let Some(error) = error.downcast_ref::<StartError>() {
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
            (true, _) => Self::Unavailable,
            (_, true) => Self::Configuration,
            _ => Self::Other,
        }
    }
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Other }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Usage }
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Configuration }
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
        self.cause == Cause::Unreachable
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        let exit = match self.cause {
            Cause::Usage => Exit::WrongArguments,
            Cause::Configuration => Exit::Configuration,
            Cause::Unavailable => Exit::Unavailable,
            Cause::Unreachable => Exit::Unreachable,
            Cause::Other => Exit::Failed,
        };
        exit.into()
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
        Self { message: ErrorChain(&error).to_string(), cause: Cause::of(&error) }
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
