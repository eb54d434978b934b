//! Arguments that several commands have. They are flattened into those of the commands, whose help a documentation of
//! these types would replace.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use grid_batch_client::ClientOptions;
use serde_json::{Value, json};

use crate::commands::{
    flags::{OfSource, SettingFlags},
    print::print_json,
    variables,
};

/// Parses a time, such as 90s.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text)
        .map_err(|_| "it must be a number with a unit, such as 30s, 15m or 2h")
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print a JSON object instead of text, with the fields of the interface (docs/http.md)
    #[arg(long)]
    pub(crate) json: bool,
}

impl Output {
    /// Prints the document if JSON is asked for, and otherwise what `text` prints.
    pub(crate) fn show(&self, document: &Value, text: impl FnOnce()) -> ExitCode {
        if self.json {
            print_json(document);
        } else {
            text();
        }
        ExitCode::SUCCESS
    }

    /// Like [`show`](Self::show), for a document whose only field is a list.
    pub(crate) fn show_list(&self, name: &str, entries: &[Value], text: impl FnOnce()) -> ExitCode {
        self.show(&json!({ name: entries }), text)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    #[arg(long, value_name = "URL", help = url_help())]
    pub(crate) url: Option<String>,
    #[arg(long, value_name = "FILE", help = token_help())]
    pub(crate) token_file: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = profile_help())]
    pub(crate) profile: Option<String>,
}

fn url_help() -> String {
    let (url, default) = (variables::URL, ClientOptions::default().url);
    format!("URL of the server [default: {url}, that of the profile, or {default}]")
}

fn token_help() -> String {
    let token = variables::TOKEN;
    format!("File with the access token [default: the token in {token}, or that of the profile]")
}

fn profile_help() -> String {
    let profile = variables::PROFILE;
    format!(
        "Section of ~/.config/grid-batch/profiles.toml with `url` and `token_file` [default: {profile}, or default]"
    )
}

// A running server.
#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help("Print the server's answer as JSON")))]
pub(crate) struct RemoteArgs {
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

// A server, or the database.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) settings: SettingFlags<OfSource>,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

// What is said to a server with an action.
#[derive(Debug, Clone, Args)]
pub(crate) struct Asked {
    /// Reason, for the log of operators' actions
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) run: DryRun,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DryRun {
    /// Only prints what would be changed, or why it is refused
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl DryRun {
    /// What comes before a change that a dry run has not made.
    pub(crate) fn would(self) -> &'static str {
        if self.dry_run { "nothing changed; without --dry-run: " } else { "" }
    }
}

impl Asked {
    pub(crate) fn is_dry_run(&self) -> bool {
        self.run.dry_run
    }
}

#[derive(Debug, Args)]
pub(crate) struct ActionArgs {
    #[command(flatten)]
    pub(crate) asked: Asked,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}
