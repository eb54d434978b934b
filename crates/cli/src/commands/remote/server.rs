use std::{env, fs, path::Path, time::Duration};

use grid_batch_client::{Client, ClientError, ClientOptions};
use grid_batch_core::batches::TraceContext;
use grid_batch_service::{Config, DatabaseInterface};
use grid_batch_store::{DatabaseUrl, Store, StoreError, StoreOptions};
use serde_json::Value;

use super::{Source, profile::Profile, user::user_name};
use crate::commands::{
    arguments::{Asked, ServerArgs, SourceArgs},
    failure::Failure,
    variables,
};

/// A running server, or the same interface over a database in this process.
pub(in crate::commands) struct Server {
    pub(in crate::commands) client: Client,
    /// The name of the database; `None`: a server answers.
    pub(in crate::commands) database: Option<String>,
}

impl Server {
    /// The server or database that a flag or the environment names, for reading. A database needs only read permission.
    pub(in crate::commands) fn to_read(args: &SourceArgs) -> Result<Self, Failure> {
        Self::at(args, Store::open_to_read)
    }

    /// The same, for actions of an operator.
    pub(in crate::commands) fn to_act(args: &SourceArgs) -> Result<Self, Failure> {
        Self::at(args, Store::open_for_command)
    }

    /// The server or database that a flag or the environment names.
    pub(in crate::commands) fn at(
        args: &SourceArgs,
        open: impl FnOnce(&DatabaseUrl, StoreOptions) -> Result<Store, StoreError>,
    ) -> Result<Self, Failure> {
        match Source::of(args) {
            Source::Server => Self::of(&args.server),
            Source::Database => Self::over(args.settings.load()?, open),
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

    pub(in crate::commands) fn of(args: &ServerArgs) -> Result<Self, Failure> {
        Self::with_token(args, None)
    }

    /// The server. A given token is used instead of that of the flags, the environment or the profile.
    pub(in crate::commands) fn with_token(
        args: &ServerArgs,
        given: Option<String>,
    ) -> Result<Self, Failure> {
        let url = args.url.clone().or_else(|| env::var(variables::URL).ok());
        let profile = Profile::of(args.profile.clone(), url.is_some())?;
        let url = url.or(profile.url).unwrap_or_else(|| ClientOptions::default().url);
        let token = match given {
            Some(token) => Some(token),
            None => token(args.token_file.as_deref(), profile.token_file.as_deref())?,
        };
        let (timeout, trace) = (Duration::from_secs(30), trace_of_environment());
        let options = ClientOptions { url, token, timeout, trace };
        Ok(Self { client: Client::new(options)?, database: None })
    }

    /// The place in which something was found, if it is a database: ` in NAME`.
    pub(in crate::commands) fn place(&self) -> String {
        self.database.as_ref().map_or_else(String::new, |name| format!(" in {name}"))
    }

    /// Asks for something that is logged, with the reason, and as a dry run if the flag says so.
    pub(in crate::commands) fn act(
        &self,
        asked: &Asked,
        path: &str,
        parameters: &[(&str, &str)],
        mut fields: Value,
    ) -> Result<Value, ClientError> {
        fields["reason"] = asked.reason.as_str().into();
        fields["dry_run"] = asked.is_dry_run().into();
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
fn token(named: Option<&Path>, of_profile: Option<&Path>) -> Result<Option<String>, Failure> {
    if named.is_none()
        && let Ok(token) = env::var(variables::TOKEN)
    {
        return Ok(Some(token));
    }
    let Some(file) = named.or(of_profile) else { return Ok(None) };
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::configuration(format!("the token file {} cannot be read: {error}", file.display()))
    })?;
    Ok(Some(text.trim().to_owned()))
}

/// The trace of the process that called this one, by a convention of OpenTelemetry.
fn trace_of_environment() -> Option<TraceContext> {
    let state = env::var(variables::TRACESTATE).ok();
    TraceContext::from_headers(&env::var(variables::TRACEPARENT).ok()?, state.as_deref())
}
