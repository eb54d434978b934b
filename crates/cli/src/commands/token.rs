//! `token`: creates, lists and revokes the access tokens of clients.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_core::tokens::AccessScope;
use grid_batch_service::{AccessToken, ServicePattern};
use humantime::{format_rfc3339_seconds, parse_duration};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{is_dry_run, json_flag, print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, action_path, age, field},
};

pub(crate) fn command() -> Command {
    Command::new("token")
        .about("Creates, lists and revokes the tokens with which clients use the HTTP interface")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(create_command())
        .subcommand(
            Command::new("list")
                .about("Lists all tokens, without their secrets")
                .arg(json_flag())
                .args(remote::flags_of_both()),
        )
        .subcommand(
            Command::new("revoke")
                .about("Revokes a token; every server refuses it within seconds")
                .arg(
                    Arg::new("token")
                        .required(true)
                        .value_name("TOKEN")
                        .help("Id or name of the token, as `token list` prints them"),
                )
                .args(remote::action_flags()),
        )
}

fn create_command() -> Command {
    Command::new("create")
        .about("Creates a token and prints it; it cannot be printed again")
        .arg(
            Arg::new("name")
                .long("name")
                .required(true)
                .value_name("TEXT")
                .help("Its name, such as that of the program that uses it"),
        )
        .arg(
            Arg::new("scope")
                .long("scope")
                .required(true)
                .value_name("SCOPES")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(|text: &str| text.parse::<AccessScope>())
                .help(
                    "What it allows, separated by commas: submit (batches, withdrawals), read (statuses and \
                     lists) and operate (what operators do). No scope includes another one",
                ),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("PATTERN")
                .action(ArgAction::Append)
                .value_parser(|text: &str| text.parse::<ServicePattern>())
                .help(
                    "Services that it is for, with * for any characters; can be given several times [default: *, \
                     all]",
                ),
        )
        .arg(
            Arg::new("expires")
                .long("expires")
                .value_name("TIME")
                .default_value("90d")
                .value_parser(parse_expiry)
                .help("Time after which it expires, such as 90d or 12h; or never"),
        )
        .args(remote::action_flags())
}

/// `None`: never.
#[derive(Debug, Clone, Copy)]
struct Expiry(Option<Duration>);

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    match text {
        "never" => Ok(Expiry(None)),
        text => match parse_duration(text) {
            Ok(duration) if !duration.is_zero() && duration <= LONGEST => {
                Ok(Expiry(Some(duration)))
            }
            _ => Err("it must be above zero, up to 100 years, such as 90d, or never".to_owned()),
        },
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("create", matches)) => create(matches),
        Some(("list", matches)) => list(matches),
        Some(("revoke", matches)) => revoke(matches),
        _ => Err(Failure::new("there is no such command; see grid-batch token --help")),
    }
}

fn create(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let services = matches.get_many::<ServicePattern>("service").into_iter().flatten();
    let scopes = matches.get_many::<AccessScope>("scope").into_iter().flatten();
    let expiry = matches.get_one::<Expiry>("expires").and_then(|expiry| expiry.0);
    let fields = json!({
        "name": matches.get_one::<String>("name"),
        "scopes": scopes.map(|scope| scope.as_str()).collect::<Vec<_>>(),
        "services": services.map(ToString::to_string).collect::<Vec<_>>(),
        "expires_at": expiry.map(|after| format_rfc3339_seconds(SystemTime::now() + after).to_string()),
    });
    let created = Server::to_act(matches)?.act(matches, "/v1/tokens", &[], fields);
    let created = created.map_err(Server::failed)?;
    if wants_json(matches) {
        print_json(&created);
    } else if is_dry_run(matches) {
        let name = field(&created, "name");
        print_stdout(format_args!("nothing changed: the token {name} would be created"));
    } else {
        print_stdout(field(&created, "token"));
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let name = matches.get_one::<String>("token").map_or("", String::as_str);
    // A whole token would be shown in logs.
    if name.parse::<AccessToken>().is_ok() {
        return Err(Failure::new("give the id or the name of the token, not the token itself"));
    }
    let path = action_path("tokens", name, "revoke");
    let revoked = Server::to_act(matches)?.act(matches, &path, &[], json!({}))?;
    if wants_json(matches) {
        print_json(&revoked);
    } else if is_dry_run(matches) {
        print_stdout(format_args!("nothing changed: the token {name} would be revoked"));
    } else {
        print_stdout(format_args!(
            "revoked the token {name}; every server refuses it within seconds"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::to_read(matches)?;
    let (tokens, _) = server.read_list("/v1/tokens", &[], usize::MAX)?;
    if wants_json(matches) {
        print_json(&json!({ "tokens": tokens }));
        return Ok(ExitCode::SUCCESS);
    }
    for token in &tokens {
        print_stdout(format_args!(
            "{} {}: {}",
            field(token, "id"),
            field(token, "name"),
            state(token)
        ));
        print_stdout(format_args!(
            "    {} for {}",
            texts(token, "scopes").join(", "),
            texts(token, "services").join(" ")
        ));
        let used = match age(token, "last_used_at") {
            age if age.is_empty() => "never used".to_owned(),
            age => format!("last used {age} ago"),
        };
        print_stdout(format_args!("    created {} ago, {used}", age(token, "created_at")));
    }
    let count = tokens.iter().filter(|token| token["accepted"] == true).count();
    let are = if count == 1 { "token is" } else { "tokens are" };
    print_stdout(format_args!("{count} {are} accepted{}", server.place()));
    Ok(ExitCode::SUCCESS)
}

fn texts<'a>(token: &'a Value, name: &str) -> Vec<&'a str> {
    token[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn state(token: &Value) -> String {
    match (token["revoked_at"].as_str(), token["expires_at"].as_str()) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) if token["accepted"] == true => format!("expires {at}"),
        (None, Some(at)) => format!("expired {at}"),
        (None, None) => "never expires".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_a_time_or_never() {
        assert_eq!(parse_expiry("12h").unwrap().0, Some(Duration::from_secs(12 * 3_600)));
        assert_eq!(parse_expiry("never").unwrap().0, None);
        for text in ["", "0s", "90", "200y", "-1d"] {
            assert!(parse_expiry(text).is_err(), "{text}");
        }
    }
}
