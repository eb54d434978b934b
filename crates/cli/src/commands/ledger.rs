//! `ledger`: which ledger a database is bound to.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::commands::{
    arguments::{ActionArgs, ReadArgs},
    failure::Failure,
    print::print_stdout,
    remote::{Server, entries, field},
};

/// Shows or changes the ledger that the database is bound to
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Shows the ledger of the database and those of the nodes
    Show(ReadArgs),
    /// Binds the database to the ledger of the nodes, while no instance runs
    ///
    /// Open batches are looked for at that ledger, and submitted to it if it does not have them.
    Adopt(ActionArgs),
}

pub(crate) fn run(command: &LedgerCommand) -> Result<ExitCode, Failure> {
    match command {
        LedgerCommand::Show(args) => show(args),
        LedgerCommand::Adopt(args) => adopt(args),
    }
}

fn show(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let binding = Server::to_read(&args.source)?.client.get("/v1/database/ledger", &[])?;
    Ok(args.output.show(&binding, || describe(&binding).iter().for_each(print_stdout)))
}

fn adopt(ActionArgs { asked, output, source }: &ActionArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_act(source)?;
    let binding = server.act(asked, "/v1/database/adopt-ledger", &[], json!({}));
    let binding = binding.map_err(Server::failed)?;
    let refused = binding["refused"].as_str();
    let done = output.show(&binding, || {
        describe(&binding).iter().for_each(print_stdout);
        match (binding["changed"] == true, asked.is_dry_run()) {
            _ if refused.is_some() => {}
            (false, _) => print_stdout("The database is bound to this ledger already."),
            (true, true) => {
                print_stdout("Nothing changed: it would be bound to the ledger of the nodes.");
            }
            (true, false) => print_stdout("The database is bound to the ledger of the nodes now."),
        }
    });
    match refused {
        Some(reason) => Err(Failure::new(format!("nothing changed: {reason}"))),
        None => Ok(done),
    }
}

/// The database first, then the nodes; each with its ledger below.
fn describe(binding: &Value) -> Vec<String> {
    let mut lines = vec!["The database".to_owned()];
    match &binding["database"] {
        Value::Null => lines.push("  is not bound to a ledger".to_owned()),
        ledger => lines.extend(describe_identity(ledger)),
    }
    for node in entries(binding, "nodes") {
        lines.push(format!("The node {}", field(node, "url")));
        match node["error"].as_str() {
            None => lines.extend(describe_identity(&node["ledger"])),
            Some(error) => lines.push(format!("  does not report its ledger: {error}")),
        }
    }
    lines
}

fn describe_identity(ledger: &Value) -> Vec<String> {
    let parts = ["kind", "id", "name"].map(|name| (name, field(ledger, name)));
    let given = parts.into_iter().filter(|(_, value)| !value.is_empty());
    given.flat_map(|(name, value)| wrapped(&format!("  {name}: {value}"))).collect()
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
    use super::*;

    #[test]
    fn every_line_has_at_most_80_columns() {
        let id = format!("genesis block {}", "ab".repeat(64));
        let ledger = json!({ "kind": "sawtooth", "id": id, "name": "production" });
        let url = "http://127.0.0.1:8008";
        let lines = describe(&json!({
            "database": null,
            "nodes": [
                { "url": url, "ledger": ledger, "error": null },
                { "url": url, "ledger": null, "error": "connection refused" },
            ],
        }));
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
