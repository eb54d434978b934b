//! `ledger`: which ledger a database is bound to.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_core::LedgerIdentity;
use grid_batch_service::{LedgerInspection, ToldIdentity};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn command() -> Command {
    Command::new("ledger")
        .about("Shows or changes the ledger that the database is bound to")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("show")
                .about("Shows the ledger of the database and those of the nodes")
                .args(flags::of_database()),
        )
        .subcommand(
            Command::new("adopt")
                .about("Binds the database to the ledger of the nodes, while no instance runs")
                .arg(Arg::new("yes").long("yes").action(ArgAction::SetTrue).help(
                    "Changes the database. Batches that are open are looked for at the ledger of \
                     the nodes, and submitted to it if it does not have them",
                ))
                .args(flags::of_database()),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("adopt", matches)) => adopt(matches),
        Some((_, matches)) => show(matches),
        None => Err(Failure::new("there is no such command; see grid-batch ledger --help")),
    }
}

fn show(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (_, inspection) = inspect(matches)?;
    describe(&inspection).iter().for_each(print_stdout);
    Ok(ExitCode::SUCCESS)
}

fn adopt(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (store, inspection) = inspect(matches)?;
    describe(&inspection).iter().for_each(print_stdout);
    match decide(&inspection, matches.get_flag("yes")) {
        Adoption::Unchanged => print_stdout("The database is bound to this ledger already."),
        Adoption::Refused(reason) => return Err(Failure::new(reason)),
        Adoption::Adopt(ledger) => {
            store.rebind_ledger(ledger)?;
            print_stdout("The database is bound to the ledger of the nodes now.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn inspect(matches: &ArgMatches) -> Result<(Store, LedgerInspection), Failure> {
    let config = flags::load(matches)?;
    let store = Store::open(&config.database, config.store.clone())?;
    let inspection = LedgerInspection::new(&config, &store)?;
    Ok((store, inspection))
}

/// What `adopt` does.
#[derive(Debug, PartialEq, Eq)]
enum Adoption<'a> {
    Unchanged,
    Refused(&'static str),
    Adopt(&'a LedgerIdentity),
}

fn decide(inspection: &LedgerInspection, is_confirmed: bool) -> Adoption<'_> {
    let Some(actual) = inspection.actual() else {
        return Adoption::Refused(
            "nothing changed: every node must answer, and all must belong to one ledger",
        );
    };
    if inspection.recorded.as_ref().is_some_and(|recorded| recorded.identity.agrees_with(actual)) {
        return Adoption::Unchanged;
    }
    if is_confirmed {
        Adoption::Adopt(actual)
    } else {
        Adoption::Refused("nothing changed: to bind the database to it, add --yes")
    }
}

/// The database first, then the nodes; each with its ledger below.
fn describe(inspection: &LedgerInspection) -> Vec<String> {
    let recorded = match &inspection.recorded {
        Some(recorded) => describe_identity(&recorded.identity),
        None => vec!["  is not bound to a ledger".to_owned()],
    };
    let mut lines = vec!["The database".to_owned()];
    lines.extend(recorded);
    for ToldIdentity { url, identity } in &inspection.nodes {
        lines.push(format!("The node {url}"));
        match identity {
            Ok(identity) => lines.extend(describe_identity(identity)),
            Err(error) => lines.push(format!("  does not report its ledger: {error}")),
        }
    }
    lines
}

fn describe_identity(identity: &LedgerIdentity) -> Vec<String> {
    let LedgerIdentity { kind, id, name } = identity;
    let mut lines = vec![format!("  kind: {kind}")];
    if !id.is_empty() {
        lines.extend(wrapped(&format!("  id: {id}")));
    }
    if !name.is_empty() {
        lines.push(format!("  name: {name}"));
    }
    lines
}

/// The text in lines of at most 80 columns; an id may be longer than a line.
fn wrapped(text: &str) -> Vec<String> {
    const COLUMNS: usize = 80;
    const INDENT: &str = "    ";
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= COLUMNS {
        return vec![text.to_owned()];
    }
    let (first, rest) = characters.split_at(COLUMNS);
    let rest = rest.chunks(COLUMNS - INDENT.len());
    let rest = rest.map(|part| format!("{INDENT}{}", part.iter().collect::<String>()));
    std::iter::once(first.iter().collect()).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{RecordedLedger, Timestamp};

    use super::*;

    fn identity(id: &str) -> LedgerIdentity {
        LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("sawtooth") }
    }

    fn recorded(id: &str) -> Option<RecordedLedger> {
        Some(RecordedLedger { identity: identity(id), recorded_at: Timestamp::default() })
    }

    fn node(identity: Result<LedgerIdentity, String>) -> ToldIdentity {
        ToldIdentity { url: "http://127.0.0.1:8008".to_owned(), identity }
    }

    #[test]
    fn adopt_changes_only_what_is_certain_and_wanted() {
        let one = || node(Ok(identity("a")));
        let agree = || vec![one(), one()];
        let disagree = || vec![one(), node(Ok(identity("b")))];
        let down = || vec![one(), node(Err("refused".to_owned()))];
        let uncertain =
            "nothing changed: every node must answer, and all must belong to one ledger";
        let unwanted = "nothing changed: to bind the database to it, add --yes";
        for (recorded, nodes, yes, expected) in [
            (recorded("a"), agree(), false, Adoption::Unchanged),
            (recorded("a"), agree(), true, Adoption::Unchanged),
            (recorded("b"), agree(), false, Adoption::Refused(unwanted)),
            (recorded("b"), agree(), true, Adoption::Adopt(&identity("a"))),
            (None, agree(), true, Adoption::Adopt(&identity("a"))),
            (recorded("a"), disagree(), true, Adoption::Refused(uncertain)),
            (recorded("a"), down(), true, Adoption::Refused(uncertain)),
        ] {
            let inspection = LedgerInspection { recorded, nodes };
            assert_eq!(decide(&inspection, yes), expected, "{inspection:?}");
        }
    }

    #[test]
    fn every_line_has_at_most_80_columns() {
        let id = format!("genesis block {}", "ab".repeat(64));
        let named = LedgerIdentity { name: "production".to_owned(), ..identity(&id) };
        let nodes = vec![node(Ok(named)), node(Err("connection refused".to_owned()))];
        let lines = describe(&LedgerInspection { recorded: None, nodes });
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert_eq!(
            lines.iter().map(String::as_str).collect::<Vec<_>>(),
            [
                "The database",
                "  is not bound to a ledger",
                "The node http://127.0.0.1:8008",
                "  kind: sawtooth",
                &*format!("  id: genesis block {}", "ab".repeat(30)),
                &*format!("    {}", "ab".repeat(34)),
                "  name: production",
                "The node http://127.0.0.1:8008",
                "  does not report its ledger: connection refused",
            ]
        );
    }
}
