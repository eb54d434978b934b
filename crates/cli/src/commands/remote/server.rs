use std::{env, fs, path::PathBuf, time::Duration};

use clap::{Arg, ArgMatches};
use grid_batch_client::{Client, ClientOptions};
use grid_batch_support::redact_url;
use serde_json::Value;

use crate::commands::{failure::Failure, operator::json_flag};

/// The environment variables of these commands. They are no settings of a server.
pub(in crate::commands) const VARIABLES: [&str; 2] = [URL_VARIABLE, TOKEN_VARIABLE];

const URL_VARIABLE: &str = "GRID_BATCH_URL";
const TOKEN_VARIABLE: &str = "GRID_BATCH_TOKEN";

/// The flags that name a server and its token, and choose what is printed.
pub(in crate::commands) fn flags() -> [Arg; 3] {
    let [url, token] = server_flags();
    [json_flag().help("Print what the server answers as JSON"), url, token]
}

/// The flags that name a server and its token.
pub(in crate::commands) fn server_flags() -> [Arg; 2] {
    let default = ClientOptions::default().url;
    [
        Arg::new("url")
            .long("url")
            .value_name("URL")
            .help(format!("URL of the server [default: {URL_VARIABLE}, or {default}]")),
        Arg::new("token-file")
            .long("token-file")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help(format!(
                "File with the access token [default: the token in {TOKEN_VARIABLE}, if it is set]"
            )),
    ]
}

/// A running server.
pub(in crate::commands) struct Server {
    pub(in crate::commands) client: Client,
    url: String,
}

impl Server {
    pub(in crate::commands) fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let defaults = ClientOptions::default();
        let url = matches.get_one::<String>("url").cloned().or_else(|| env::var(URL_VARIABLE).ok());
        let url = url.unwrap_or(defaults.url);
        let options = ClientOptions {
            url: url.clone(),
            token: token(matches)?,
            timeout: Duration::from_secs(30),
        };
        Ok(Self { client: Client::new(options)?, url })
    }

    /// Its URL, without a password.
    pub(in crate::commands) fn url(&self) -> String {
        redact_url(&self.url)
    }

    /// Up to `most` entries of a list, and whether there are more. A page may be empty and not the last one.
    pub(in crate::commands) fn read_list(
        &self,
        path: &str,
        filters: &[(&str, &str)],
        most: usize,
    ) -> Result<(Vec<Value>, bool), Failure> {
        const PAGE: usize = 1_000;
        let (mut entries, mut after) = (Vec::new(), None::<String>);
        loop {
            let count = (most - entries.len()).min(PAGE).to_string();
            let next = after.as_deref().map(|after| ("after", after));
            let parameters = [filters, &[("limit", &count)], &Vec::from_iter(next)].concat();
            let mut page = self.client.get(path, &parameters)?;
            if let Some(found) = page["data"].as_array_mut() {
                entries.append(found);
            }
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() || entries.len() >= most {
                return Ok((entries, after.is_some()));
            }
        }
    }
}

/// The token is in no flag: other users of the machine see those.
fn token(matches: &ArgMatches) -> Result<Option<String>, Failure> {
    let Some(file) = matches.get_one::<PathBuf>("token-file") else {
        return Ok(env::var(TOKEN_VARIABLE).ok());
    };
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::configuration(format!("the token file {} cannot be read: {error}", file.display()))
    })?;
    Ok(Some(text.trim().to_owned()))
}
