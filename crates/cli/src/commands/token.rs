//! `token`: creates, lists and revokes the access tokens of clients.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand};
use grid_batch_core::tokens::AccessScope;
use grid_batch_service::{AccessToken, ServicePattern};
use humantime::{format_rfc3339_seconds, parse_duration};
use serde_json::{Value, json};

use crate::commands::{
    arguments::{ActionArgs, ReadArgs},
    failure::Failure,
    print::print_stdout,
    remote::{Server, action_path, age, entries, field, time},
};

/// Creates, lists and revokes the tokens with which clients use the HTTP interface
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Creates a token and prints it; it cannot be printed again
    Create(CreateArgs),
    /// Lists all tokens, without their secrets
    List(ReadArgs),
    /// Revokes a token; every server refuses it within seconds
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name, such as that of the program that uses it
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// What it allows, separated by commas: submit (batches, withdrawals), read (statuses and lists) and operate (what
    /// operators do). No scope includes another one
    #[arg(long, value_name = "SCOPES", required = true, value_delimiter = ',')]
    scope: Vec<AccessScope>,
    /// Services that it is for, with * for any characters; can be given several times [default: *, all]
    #[arg(long, value_name = "PATTERN")]
    service: Vec<ServicePattern>,
    /// What it may send beside withdrawals, in the words of the gas admins' setting, such as an address, or 5ether/day
    /// as a limit; can be given several times [default: what the gas admins may]
    #[arg(long, value_name = "RULE")]
    may_send: Vec<String>,
    /// Time after which it expires, such as 90d or 12h; or never
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = parse_expiry)]
    expires: Expiry,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Id or name of the token, as `token list` prints them
    token: String,
    #[command(flatten)]
    action: ActionArgs,
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

pub(crate) fn run(command: &TokenCommand) -> Result<ExitCode, Failure> {
    match command {
        TokenCommand::Create(args) => create(args),
        TokenCommand::List(args) => list(args),
        TokenCommand::Revoke(args) => revoke(args),
    }
}

fn create(args: &CreateArgs) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = &args.action;
    let expires_at = |after| format_rfc3339_seconds(SystemTime::now() + after).to_string();
    let fields = json!({
        "name": args.name,
        "scopes": args.scope.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(),
        "services": args.service.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "may_send": args.may_send,
        "expires_at": args.expires.0.map(expires_at),
    });
    let created = Server::to_act(source)?.act(asked, "/v1/tokens", &[], fields);
    let created = created.map_err(Server::failed)?;
    Ok(output.show(&created, || {
        if asked.is_dry_run() {
            let name = field(&created, "name");
            print_stdout(format_args!("nothing changed: the token {name} would be created"));
        } else {
            print_stdout(field(&created, "token"));
        }
    }))
}

fn revoke(RevokeArgs { token: name, action }: &RevokeArgs) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = action;
    // A whole token would be shown in logs.
    if name.parse::<AccessToken>().is_ok() {
        return Err(Failure::new("give the id or the name of the token, not the token itself"));
    }
    let path = action_path("tokens", name, "revoke");
    let revoked = Server::to_act(source)?.act(asked, &path, &[], json!({}))?;
    Ok(output.show(&revoked, || {
        if asked.is_dry_run() {
            print_stdout(format_args!("nothing changed: the token {name} would be revoked"));
        } else {
            print_stdout(format_args!(
                "revoked the token {name}; every server refuses it within seconds"
            ));
        }
    }))
}

fn list(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&args.source)?;
    let (tokens, _) = server.read_list("/v1/tokens", &[], usize::MAX)?;
    Ok(args.output.show_list("tokens", &tokens, || {
        tokens.iter().for_each(print);
        let count = tokens.iter().filter(|token| token["accepted"] == true).count();
        let are = if count == 1 { "token is" } else { "tokens are" };
        print_stdout(format_args!("{count} {are} accepted{}", server.place()));
    }))
}

fn print(token: &Value) {
    let (id, name) = (field(token, "id"), field(token, "name"));
    print_stdout(format_args!("{id} {name}: {}", state(token)));
    let texts = |name| Vec::from_iter(entries(token, name).iter().filter_map(Value::as_str));
    let (scopes, services) = (texts("scopes").join(", "), texts("services").join(" "));
    print_stdout(format_args!("    {scopes} for {services}"));
    let may_send = texts("may_send").join(" ");
    if !may_send.is_empty() {
        print_stdout(format_args!("    may send {may_send}"));
    }
    let used = match age(token, "last_used_at") {
        age if age.is_empty() => "never used".to_owned(),
        age => format!("last used {age} ago"),
    };
    print_stdout(format_args!("    created {} ago, {used}", age(token, "created_at")));
}

fn state(token: &Value) -> String {
    let at = |name| time(token, name).map(format_rfc3339_seconds);
    match (at("revoked_at"), at("expires_at")) {
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
