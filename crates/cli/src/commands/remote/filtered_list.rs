//! Lists of what a running server has: their filters, and how many entries are read.

use clap::{Arg, ArgMatches, value_parser};
use serde_json::Value;

use super::Server;
use crate::commands::{failure::Failure, operator::wants_json, print::print_stdout};

/// A flag that selects entries of a list.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct ListFilter {
    flag: &'static str,
    parameter: &'static str,
    value: &'static str,
    help: &'static str,
}

impl ListFilter {
    /// A flag, and the request parameter that it sets.
    pub(in crate::commands) const fn new(
        flag: &'static str,
        parameter: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        Self { flag, parameter, value, help }
    }

    fn argument(&self) -> Arg {
        Arg::new(self.flag).long(self.flag).value_name(self.value).help(self.help)
    }

    fn given<'a>(&self, matches: &'a ArgMatches) -> Option<(&'static str, &'a str)> {
        Some((self.parameter, matches.get_one::<String>(self.flag)?.as_str()))
    }
}

/// The flags of a list: its filters, and the maximum number of entries.
pub(in crate::commands) fn list_flags(
    filters: &[ListFilter],
    limit_help: &'static str,
) -> impl Iterator<Item = Arg> {
    let limit = Arg::new("limit")
        .long("limit")
        .value_name("NUMBER")
        .default_value("20")
        .value_parser(value_parser!(u32).range(1..))
        .help(limit_help);
    filters.iter().map(ListFilter::argument).chain([limit])
}

/// The entries that were read from a list.
pub(in crate::commands) struct Listed {
    pub(in crate::commands) entries: Vec<Value>,
    limit: usize,
    has_more: bool,
}

impl Server {
    /// The entries of a list that the flags select.
    pub(in crate::commands) fn read_filtered(
        &self,
        path: &str,
        filters: &[ListFilter],
        matches: &ArgMatches,
    ) -> Result<Listed, Failure> {
        let limit = *matches.get_one::<u32>("limit").unwrap_or(&20) as usize;
        let given: Vec<_> = filters.iter().filter_map(|filter| filter.given(matches)).collect();
        let (entries, has_more) = self.read_list(path, &given, limit)?;
        Ok(Listed { entries, limit, has_more })
    }
}

impl Listed {
    /// Tells a person if there are more entries.
    pub(in crate::commands) fn print_rest(&self, matches: &ArgMatches) {
        if self.has_more && !wants_json(matches) {
            print_stdout(format_args!("There are more; --limit is {}.", self.limit));
        }
    }
}
