//! The arguments that name batches.

use std::{error::Error, str::FromStr};

use clap::Args;
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

// The arguments that name batches.
#[derive(Debug, Args)]
pub(in crate::commands) struct BatchesArgs {
    #[arg(required = true, value_name = "BATCH", help = words_help())]
    pub(in crate::commands) batch: Vec<Word>,
    /// The service of the batches, or a pattern [default: any]
    #[arg(long, value_name = "SERVICE")]
    service: Option<ServiceSelection>,
}

fn words_help() -> String {
    format!(
        "Ids of batches, or at least their first {} characters. Their service, or a pattern with *, can come first",
        ItemIdPrefix::SHORTEST
    )
}

#[derive(Debug, Clone, Copy, Args)]
pub(in crate::commands) struct AttemptArg {
    /// The attempt that the decision is about, as `show` and `held` print it; 0 if the batch was never tried. Nothing
    /// changes if the batch has another attempt by now. Name batches with different attempts as ID@ATTEMPT
    #[arg(long, value_name = "NUMBER")]
    pub(in crate::commands) attempt: Option<u32>,
}

impl NamedBatches {
    /// The batches, each with the attempt that is given for it or for all.
    pub(in crate::commands) fn of(
        args: &BatchesArgs,
        attempt: Option<u32>,
    ) -> Result<Self, Failure> {
        let (service, words) = match (args.service.as_ref(), args.batch.as_slice()) {
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
    pub(in crate::commands) fn of_attempts(
        args: &BatchesArgs,
        AttemptArg { attempt }: AttemptArg,
    ) -> Result<Self, Failure> {
        let named = Self::of(args, attempt)?;
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
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Example {
        #[command(flatten)]
        batches: BatchesArgs,
        #[command(flatten)]
        attempt: AttemptArg,
    }

    fn parse(arguments: &[&str]) -> Result<NamedBatches, Failure> {
        let Example { batches, attempt } = Example::try_parse_from(arguments).unwrap();
        NamedBatches::of(&batches, attempt.attempt)
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
