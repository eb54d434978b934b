use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, ArgMatches};
use grid_batch_client::{Client, ClientError, ClientOptions};
use grid_batch_service::{Config, DatabaseInterface};
use grid_batch_store::{DatabaseUrl, Store, StoreError, StoreOptions};
use serde_json::Value;

use super::{Source, profile::Profile, user::user_name};
use crate::commands::{
    failure::Failure,
    flags,
    operator::{is_dry_run, json_flag, reason},
    variables,
};

/// The flags that name a server and its token, and choose what is printed.
pub(in crate::commands) fn flags() -> impl Iterator<Item = Arg> {
    std::iter::once(json_flag().help("Print the server's answer as JSON")).chain(server_flags())
}

/// The flags that name a server and its token.
pub(in crate::commands) fn server_flags() -> [Arg; 3] {
    let default = ClientOptions::default().url;
    let (url, token, profile) = (variables::URL, variables::TOKEN, variables::PROFILE);
    [
        Arg::new("url")
            .long("url")
            .value_name("URL")
            .help(format!("URL of the server [default: {url}, that of the profile, or {default}]")),
        Arg::new("token-file")
            .long("token-file")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help(format!("File with the access token [default: the token in {token}, or that of the profile]")),
        Arg::new("profile")
            .long("profile")
            .value_name("NAME")
            .help(format!("Section of ~/.config/grid-batch/profiles.toml with `url` and `token_file` [default: {profile}, or default]")),
    ]
}

/// A running server, or the same interface over a database in this process.
pub(in crate::commands) struct Server {
    pub(in crate::commands) client: Client,
    /// The name of the database; `None`: a server answers.
    pub(in crate::commands) database: Option<String>,
}

impl Server {
    /// The server or database that a flag or the environment names, for reading. A database needs only read permission.
    pub(in crate::commands) fn to_read(matches: &ArgMatches) -> Result<Self, Failure> {
        match Source::of(matches) {
            Source::Server => Self::of(matches),
            Source::Database => Self::over(flags::load(matches)?, Store::open_to_read),
        }
    }

    /// The same, for actions of an operator.
    pub(in crate::commands) fn to_act(matches: &ArgMatches) -> Result<Self, Failure> {
        match Source::of(matches) {
            Source::Server => Self::of(matches),
            Source::Database => Self::over(flags::load(matches)?, Store::open_for_command),
        }
    }

    /// The interface over the database of a configuration.
    pub(in crate::commands) fn over(
        config: Config,
        open: impl FnOnce(&DatabaseUrl, StoreOptions) -> Result<Store, StoreError>,
    ) -> Result<Self, Failure> {
        let store = open(&config.general.database, config.store_options())?;
        let name = config.general.database.to_string();
        let interface = DatabaseInterface::new(config, &store, user_name())?;
        Ok(Self { client: Client::over(interface), database: Some(name) })
    }

    pub(in crate::commands) fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        Self::with(matches, None)
    }

    /// The server, with this token instead of that of the flags, the environment or the profile.
    pub(in crate::commands) fn with_token(
        matches: &ArgMatches,
        token: String,
    ) -> Result<Self, Failure> {
        Self::with(matches, Some(token))
    }

    fn with(matches: &ArgMatches, given: Option<String>) -> Result<Self, Failure> {
        let url = matches.get_one::<String>("url").cloned();
        let url = url.or_else(|| env::var(variables::URL).ok());
        let profile = Profile::of(matches, url.is_some())?;
        let url = url.or(profile.url).unwrap_or_else(|| ClientOptions::default().url);
        let token = match given {
            Some(token) => Some(token),
            None => token(matches, profile.token_file.as_deref())?,
        };
        let options = ClientOptions { token, url, timeout: Duration::from_secs(30) };
        Ok(Self { client: Client::new(options)?, database: None })
    }

    /// The place in which something was found, if it is a database: ` in NAME`.
    pub(in crate::commands) fn place(&self) -> String {
        self.database.as_ref().map_or_else(String::new, |name| format!(" in {name}"))
    }

    /// Asks for something that is logged, with the reason, and as a dry run if the fields or the flag say so.
    pub(in crate::commands) fn act(
        &self,
        matches: &ArgMatches,
        path: &str,
        parameters: &[(&str, &str)],
        mut fields: Value,
    ) -> Result<Value, ClientError> {
        fields["reason"] = reason(matches).into();
        if fields["dry_run"].is_null() {
            fields["dry_run"] = is_dry_run(matches).into();
        }
        self.client.post(path, parameters, &fields)
    }

    /// Why an action failed.
    pub(in crate::commands) fn failed(error: ClientError) -> Failure {
        match error {
            ClientError::Refused { status: 409, problem } => {
                Failure::new(format!("nothing changed: {problem}"))
            }
            error => error.into(),
        }
    }

    /// Up to `most` entries of a list, and whether there are more. A page may be empty and not the last one.
    pub(in crate::commands) fn read_list(
        &self,
        path: &str,
        filters: &[(&str, &str)],
        most: usize,
    ) -> Result<(Vec<Value>, bool), Failure> {
        const PAGE: usize = 1_000;
        let (mut entries, mut next) = (Vec::new(), None::<Continuation>);
        loop {
            let count = (most - entries.len()).min(PAGE).to_string();
            let from = next.as_ref().map(|next| (next.parameter, next.value.as_str()));
            let parameters = [filters, &[("limit", &count)], &Vec::from_iter(from)].concat();
            let mut page = self.client.get(path, &parameters)?;
            next = Continuation::of(&page);
            if let Some(found) = page["data"].as_array_mut() {
                entries.append(found);
            }
            if next.is_none() || entries.len() >= most {
                return Ok((entries, next.is_some()));
            }
        }
    }
}

/// How a list continues after a page.
struct Continuation {
    parameter: &'static str,
    value: String,
}

impl Continuation {
    /// Lists of withdrawals have the URL of the next page, which starts before the last entry.
    fn of(page: &Value) -> Option<Self> {
        if let Some(after) = page["next"].as_str() {
            return Some(Self { parameter: "after", value: after.to_owned() });
        }
        page["paging"]["next"].as_str()?;
        let last = page["data"].as_array()?.last()?["id"].as_str()?;
        Some(Self { parameter: "before", value: last.to_owned() })
    }
}

/// The token is in no flag: other users of the machine see those.
fn token(matches: &ArgMatches, of_profile: Option<&Path>) -> Result<Option<String>, Failure> {
    let named = matches.get_one::<PathBuf>("token-file").map(PathBuf::as_path);
    let in_environment = || env::var(variables::TOKEN).ok();
    let file = match (named, in_environment(), of_profile) {
        (Some(file), ..) => file,
        (None, Some(token), _) => return Ok(Some(token)),
        (None, None, Some(file)) => file,
        (None, None, None) => return Ok(None),
    };
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::configuration(format!("the token file {} cannot be read: {error}", file.display()))
    })?;
    Ok(Some(text.trim().to_owned()))
}
