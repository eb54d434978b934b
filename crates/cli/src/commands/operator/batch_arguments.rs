//! The arguments that name batches.

use std::{error::Error, str::FromStr};

use clap::{Arg, ArgMatches, builder::ValueParser, value_parser};
use grid_batch_core::ItemIdPrefix;

use super::{BatchName, ServiceSelection};
use crate::commands::failure::Failure;

/// One argument: a batch, or the service of those that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Word {
    Batch(BatchName),
    Service(ServiceSelection),
}

impl FromStr for Word {
    type Err = Box<dyn Error + Send + Sync>;

    /// Names of services can look like ids that are not hex digits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_hex = text.bytes().take_while(|byte| *byte != b'@').all(is_digit);
        match text.parse() {
            Ok(name) if is_hex => Ok(Self::Batch(name)),
            _ => Ok(Self::Service(text.parse()?)),
        }
    }
}

/// The batches that the arguments name.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct NamedBatches {
    /// `None`: any.
    pub(in crate::commands) service: Option<ServiceSelection>,
    /// Each with the attempt that was given for it or for all.
    pub(in crate::commands) names: Vec<BatchName>,
}

/// The arguments that name batches.
pub(in crate::commands) fn batch_arguments() -> [Arg; 2] {
    let words = Arg::new("batch")
        .required(true)
        .num_args(1..)
        .value_name("BATCH")
        .value_parser(ValueParser::new(str::parse::<Word>))
        .help(format!(
            "Ids of batches, or their first digits, at least {}. The first argument can be the id of \
             their service, or a pattern in which * stands for any characters",
            ItemIdPrefix::SHORTEST
        ));
    [words, service_flag()]
}

/// The flag with the service, for one whose id looks like that of a batch.
fn service_flag() -> Arg {
    Arg::new("service")
        .long("service")
        .value_name("SERVICE")
        .value_parser(ValueParser::new(str::parse::<ServiceSelection>))
        .help("The service of the batches, or a pattern [default: any]")
}

/// The flag with the attempt that a decision is about.
pub(in crate::commands) fn attempt_flag() -> Arg {
    Arg::new("attempt").long("attempt").value_name("NUMBER").value_parser(value_parser!(u32)).help(
        "Number of the attempt that the decision is about, as `show` and `held` print it, 0 for a \
             batch that was never tried; nothing changes if the batch is at another one by now. For \
             batches at different attempts, name each as ID@ATTEMPT",
    )
}

impl NamedBatches {
    pub(in crate::commands) fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let words = matches.get_many::<Word>("batch").into_iter().flatten().cloned();
        let attempt = matches.try_get_one::<u32>("attempt").ok().flatten().copied();
        let mut named = Self { service: matches.get_one("service").cloned(), names: Vec::new() };
        let expected = |_| {
            Failure::usage(
                "after the first argument, ids of batches are expected, or the first 8 to 128 digits of each",
            )
        };
        for word in words {
            let name: BatchName = match word {
                Word::Batch(name) => name,
                Word::Service(service) if named.is_empty() => {
                    named.service = Some(service);
                    continue;
                }
                Word::Service(id) => id.to_string().parse().map_err(expected)?,
            };
            named.names.push(BatchName { attempt: name.attempt.or(attempt), ..name });
        }
        if named.names.is_empty() {
            return Err(Failure::usage("the id of a batch is missing, or its first 8 digits"));
        }
        Ok(named)
    }

    /// For decisions, which are about one attempt.
    pub(in crate::commands) fn of_attempts(matches: &ArgMatches) -> Result<Self, Failure> {
        let named = Self::of(matches)?;
        match named.names.iter().find(|name| name.attempt.is_none()) {
            Some(name) => Err(Failure::usage(format!(
                "the attempt that the decision about {name:.32} is for is missing: give --attempt \
                 <NUMBER>, or the batch as ID@ATTEMPT"
            ))),
            None => Ok(named),
        }
    }

    fn is_empty(&self) -> bool {
        self.service.is_none() && self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<NamedBatches, Failure> {
        let command = Command::new("x").no_binary_name(true).args(batch_arguments());
        let matches = command.arg(attempt_flag()).try_get_matches_from(arguments).unwrap();
        NamedBatches::of(&matches)
    }

    #[test]
    fn service_can_come_first_or_in_a_flag() {
        let named = parse(&["a::b", "5a5a5a5a", "5b5b5b5b@2", "--attempt", "1"]).unwrap();
        let attempts: Vec<_> = named.names.iter().map(|name| name.attempt).collect();
        assert_eq!(attempts, [Some(1), Some(2)]);
        assert_eq!(named.service, Some("a::b".parse().unwrap()));
        assert_eq!(parse(&["5a5a5a5a"]).unwrap().service, None);
        let flag = parse(&["5a5a5a5a", "--service", "deadbeef"]).unwrap();
        assert_eq!(flag.service, Some("deadbeef".parse().unwrap()));
        let other = parse(&["my-service", "tx.number-1@2", "tx.number-2"]).unwrap();
        assert_eq!(other.service, Some("my-service".parse().unwrap()));
        let names: Vec<_> = other.names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["tx.number-1", "tx.number-2"]);
    }

    #[test]
    fn batch_must_be_named() {
        for arguments in [&["a::b"][..], &["5a5a5a5a", "a::b"], &["a::b", "c::d"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
