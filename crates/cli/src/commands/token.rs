//! `token`: creates, lists and revokes the access tokens of clients.

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_core::{AccessScope, NewToken, StoredToken, Timestamp};
use grid_batch_service::{AccessToken, ServicePattern};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    flags,
    operator::{Database, ago, json_flag, print_json, wants_json},
    print::print_stdout,
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
                .args(flags::of_database()),
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
                .args(flags::of_database()),
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
                .value_parser(parse_name)
                .help("What people call it, such as the name of the program that has it"),
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
                    "Services for which it is, with * for any characters; can be given several times \
                     [default: *, all]",
                ),
        )
        .arg(
            Arg::new("expires")
                .long("expires")
                .value_name("TIME")
                .default_value("90d")
                .value_parser(parse_expiry)
                .help("After which time it expires, such as 90d or 12h; or never"),
        )
        .arg(json_flag())
        .args(flags::of_database())
}

/// `None`: never.
#[derive(Debug, Clone, Copy)]
struct Expiry(Option<Duration>);

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    match text {
        "never" => Ok(Expiry(None)),
        text => match humantime::parse_duration(text) {
            Ok(duration) if !duration.is_zero() && duration <= LONGEST => {
                Ok(Expiry(Some(duration)))
            }
            _ => Err("it must be above zero, up to 100 years, such as 90d, or never".to_owned()),
        },
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    const LONGEST: usize = 100;
    let is_printable = !text.is_empty() && !text.chars().any(char::is_control);
    if is_printable && text.len() <= LONGEST && text.trim() == text {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "it must have 1 to {LONGEST} bytes, no control characters, and no space at either end"
        ))
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
    let database = Database::to_write(matches)?;
    let secret = AccessToken::generate()?;
    let services = matches.get_many::<ServicePattern>("service");
    let services: Vec<String> = services.into_iter().flatten().map(ToString::to_string).collect();
    let expiry = matches.get_one::<Expiry>("expires").copied().unwrap_or(Expiry(None));
    let token = NewToken {
        id: secret.id(),
        name: matches.get_one::<String>("name").cloned().unwrap_or_default(),
        secret_hash: secret.secret_hash(),
        scopes: matches.get_many("scope").into_iter().flatten().copied().collect(),
        services: if services.is_empty() { vec!["*".to_owned()] } else { services },
        expires_at: expiry.0.map(|after| database.now().plus(after)),
    };
    if !database.store.create_token(&token)? {
        return Err(Failure::new(format!(
            "there is a token with the name {:?}; revoke it first, or choose another name",
            token.name
        )));
    }
    if wants_json(matches) {
        let mut object = token_json(&token);
        object["token"] = secret.secret().into();
        print_json(&object);
    } else {
        print_stdout(secret.secret());
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_write(matches)?;
    let name = matches.get_one::<String>("token").map_or("", String::as_str);
    // A whole token would be shown in the error.
    if name.parse::<AccessToken>().is_ok() {
        return Err(Failure::new("give the id or the name of the token, not the token itself"));
    }
    if !database.store.revoke_token(name)? {
        return Err(Failure::new(format!("there is no token {name:?} that is not revoked")));
    }
    print_stdout(format_args!("revoked the token {name}; every server refuses it within seconds"));
    Ok(ExitCode::SUCCESS)
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let tokens = read(&database)?;
    let now = database.now();
    if wants_json(matches) {
        let tokens: Vec<Value> = tokens.iter().map(|stored| stored_json(stored, now)).collect();
        print_json(&json!({
            "database": database.name(),
            "read_at": now.rfc3339(),
            "tokens": tokens,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    for stored in &tokens {
        let StoredToken { token, .. } = stored;
        print_stdout(format_args!("{} {}: {}", token.id, token.name, state(stored, now)));
        print_stdout(format_args!(
            "    {} for {}",
            names(&token.scopes).join(", "),
            token.services.join(" ")
        ));
        let used = stored
            .last_used_at
            .map_or("never used".to_owned(), |at| format!("last used {}", ago(at, now)));
        let created = ago(stored.created_at, now);
        print_stdout(format_args!("    created {created}, {used}"));
    }
    match tokens.iter().filter(|stored| stored.is_active(now)).count() {
        1 => print_stdout(format_args!("1 token is accepted in {}", database.name())),
        count => print_stdout(format_args!("{count} tokens are accepted in {}", database.name())),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(database: &Database) -> Result<Vec<StoredToken>, Failure> {
    const PAGE: usize = 500;
    let mut tokens: Vec<StoredToken> = Vec::new();
    loop {
        let after = tokens.last().map(|stored| stored.token.id);
        let page = database.store.tokens(after, PAGE)?;
        let is_last = page.len() < PAGE;
        tokens.extend(page);
        if is_last {
            return Ok(tokens);
        }
    }
}

fn state(stored: &StoredToken, now: Timestamp) -> String {
    match (stored.revoked_at, stored.token.expires_at) {
        (Some(at), _) => format!("revoked {}", at.rfc3339()),
        (None, Some(at)) if at <= now => format!("expired {}", at.rfc3339()),
        (None, Some(at)) => format!("expires {}", at.rfc3339()),
        (None, None) => "never expires".to_owned(),
    }
}

fn names(scopes: &BTreeSet<AccessScope>) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.as_str()).collect()
}

fn token_json(token: &NewToken) -> Value {
    json!({
        "id": token.id.to_string(),
        "name": token.name,
        "scopes": names(&token.scopes),
        "services": token.services,
        "expires_at": token.expires_at.map(Timestamp::rfc3339),
    })
}

fn stored_json(stored: &StoredToken, now: Timestamp) -> Value {
    let mut object = token_json(&stored.token);
    object["created_at"] = stored.created_at.rfc3339().into();
    object["last_used_at"] = stored.last_used_at.map(Timestamp::rfc3339).into();
    object["revoked_at"] = stored.revoked_at.map(Timestamp::rfc3339).into();
    object["accepted"] = stored.is_active(now).into();
    object
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

    #[test]
    fn name_is_printable() {
        assert!(parse_name("the ci").is_ok());
        for text in ["", " ci", "ci\n", &"x".repeat(101)] {
            assert!(parse_name(text).is_err(), "{text:?}");
        }
    }
}
