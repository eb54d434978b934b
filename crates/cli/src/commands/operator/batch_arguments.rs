//! The arguments that name batches.

use std::{error::Error, str::FromStr};

use clap::{Arg, ArgMatches, builder::ValueParser, value_parser};
use grid_batch_core::queries::ItemIdPrefix;

use super::{BatchName, ServiceSelection};
use crate::commands::failure::Failure;

/// One argument: a batch, or the service of the batches that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Word {
    Batch(BatchName),
    Service(ServiceSelection),
}

impl FromStr for Word {
    type Err = Box<dyn Error + Send + Sync>;

    /// Ids that are not hex digits look like names of services. With an attempt, they are ids.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match text.parse::<BatchName>() {
            Ok(name) if is_hex || name.attempt.is_some() => Ok(Self::Batch(name)),
            _ => Ok(Self::Service(text.parse()?)),
        }
    }
}

impl Word {
    /// The batch, if the word can name one.
    pub(in crate::commands) fn batch_name(&self) -> Option<BatchName> {
        match self {
            Self::Batch(name) => Some(name.clone()),
            Self::Service(service) => service.to_string().parse().ok(),
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
            "Ids of batches, or at least their first {} characters. Their service, or a pattern with *, can come \
             first",
            ItemIdPrefix::SHORTEST
        ));
    [words, service_flag()]
}

/// The flag with the service, for a service whose id looks like that of a batch.
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
        "The attempt that the decision is about, as `show` and `held` print it; 0 if the batch was never tried. \
         Nothing changes if the batch has another attempt by now. Name batches with different attempts as ID@ATTEMPT",
    )
}

impl NamedBatches {
    pub(in crate::commands) fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let words: Vec<&Word> = matches.get_many::<Word>("batch").into_iter().flatten().collect();
        let attempt = matches.try_get_one::<u32>("attempt").ok().flatten().copied();
        let (service, words) = match (matches.get_one("service"), words.as_slice()) {
            (None, [Word::Service(first), others @ ..]) if !others.is_empty() => {
                (Some(first), others)
            }
            (flag, words) => (flag, words),
        };
        let names = words.iter().map(|word| {
            let name = word.batch_name().ok_or_else(|| {
                Failure::usage(
                    "expected ids of batches, or the first 8 to 128 characters of each; only the first of several \
                     arguments can be a service",
                )
            })?;
            Ok(BatchName { attempt: name.attempt.or(attempt), ..name })
        });
        Ok(Self { service: service.cloned(), names: names.collect::<Result<_, Failure>>()? })
    }

    /// For decisions, which are about one attempt.
    pub(in crate::commands) fn of_attempts(matches: &ArgMatches) -> Result<Self, Failure> {
        let named = Self::of(matches)?;
        match named.names.iter().find(|name| name.attempt.is_none()) {
            Some(name) => Err(Failure::usage(format!(
                "the decision about {name:.32} needs an attempt: give --attempt <NUMBER>, or name the batch as \
                 ID@ATTEMPT"
            ))),
            None => Ok(named),
        }
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
    }

    #[test]
    fn ids_need_not_be_hex_digits() {
        let read = |arguments: &[&str]| {
            let NamedBatches { service, names } = parse(arguments).unwrap();
            let names: Vec<_> = names.iter().map(|name| (name.to_string(), name.attempt)).collect();
            (service.map(|it| it.to_string()), names)
        };
        let name = |id: &str, attempt| (id.to_owned(), attempt);
        let (first, second) = (name("tx.number-1", Some(2)), name("tx.number-2", None));
        let service = Some("my-service".to_owned());
        let both = vec![first.clone(), second.clone()];
        assert_eq!(
            read(&["my-service", "tx.number-1@2", "tx.number-2"]),
            (service.clone(), both.clone())
        );
        assert_eq!(read(&["tx.number-1@2", "tx.number-2"]), (None, both.clone()));
        assert_eq!(read(&["tx.number-2"]), (None, vec![second.clone()]));
        let with_flag = ["tx.number-2", "tx.number-1@2", "--service", "my-service"];
        assert_eq!(read(&with_flag), (service, vec![second, first]));
    }

    #[test]
    fn batch_must_be_named() {
        for arguments in [&["a::b"][..], &["5a5a5a5a", "a::b"], &["a::b", "c::d"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
