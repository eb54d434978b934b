//! The command line: each command is a file.

mod actions;
mod batch;
mod columns;
mod completions;
mod config;
mod decide;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod events;
mod exit;
mod explain;
mod failure;
mod flags;
mod gas_admins;
mod halts;
mod health;
mod held;
mod hold;
mod key;
mod ledger;
#[cfg(feature = "demo")]
mod ledger_sim;
mod list;
mod logging;
mod man;
mod migrate;
#[cfg(feature = "evm")]
mod move_withdrawals;
mod nonce;
mod operator;
mod pause;
mod print;
mod printable;
mod remote;
mod restored;
mod retention;
mod retry;
mod serve;
mod services;
mod show;
mod signals;
mod submit;
mod token;
mod top;
mod usage;
mod variables;
mod wait;
mod webhooks;
mod withdrawal;

use std::{ffi::OsString, process::ExitCode};

use clap::{ArgMatches, Command};
use grid_batch_service::LedgerType;

use failure::Failure;

/// Parses the command line and runs its command, with these ledgers in addition to the compiled ones.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>, ledgers: &[LedgerType]) -> ExitCode {
    flags::register(ledgers);
    let arguments: Vec<OsString> = arguments.collect();
    let matches = match program().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return usage::print(&error, &arguments),
    };
    let ended = dispatch(&matches);
    // Repeated lines are still to be summed up.
    log::logger().flush();
    match ended {
        Ok(code) => code,
        Err(failure) => {
            print::print_stderr(format_args!("grid-batch: {failure}"));
            failure.exit_code()
        }
    }
}

fn program() -> Command {
    let program = Command::new("grid-batch")
        .about("Stores batches, submits them to a distributed ledger in order, and follows each to its end")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(config::command())
        .subcommand(doctor::command())
        .subcommand(migrate::command())
        .subcommand(submit::command())
        .subcommand(list::status_command())
        .subcommand(list::list_command())
        .subcommand(explain::command())
        .subcommand(services::command())
        .subcommand(top::command())
        .subcommand(events::command())
        .subcommand(health::command())
        .subcommand(key::command())
        .subcommand(batch::command())
        .subcommand(show::command())
        .subcommand(held::command())
        .subcommand(hold::hold_command())
        .subcommand(hold::release_command())
        .subcommand(decide::command())
        .subcommand(decide::resubmit_command())
        .subcommand(decide::cancel_command())
        .subcommand(actions::command())
        .subcommand(halts::list_command())
        .subcommand(halts::continue_command())
        .subcommand(halts::end_command())
        .subcommand(pause::pause_command())
        .subcommand(pause::resume_command())
        .subcommand(pause::drain_command())
        .subcommand(pause::release_claim_command())
        .subcommand(retry::command())
        .subcommand(withdrawal::command());
    #[cfg(feature = "evm")]
    let program = program.subcommand(withdrawal::retry_withdrawals_command());
    let program = program
        .subcommand(ledger::command())
        .subcommand(restored::command())
        .subcommand(retention::command())
        .subcommand(token::command())
        .subcommand(nonce::command())
        .subcommand(gas_admins::command())
        .subcommand(webhooks::command())
        .subcommand(completions::command())
        .subcommand(man::command());
    #[cfg(feature = "evm")]
    let program = program.subcommand(move_withdrawals::command());
    #[cfg(feature = "demo")]
    let program = program.subcommand(demo::command()).subcommand(ledger_sim::command());
    program
}

fn dispatch(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("config", matches)) => config::run(matches),
        Some(("doctor", matches)) => doctor::run(matches),
        Some(("migrate", matches)) => migrate::run(matches),
        Some(("completions", matches)) => completions::run(matches),
        Some(("man", matches)) => man::run(matches),
        Some(("submit", matches)) => submit::run(matches),
        Some(("status", matches)) => list::status(matches),
        Some(("list", matches)) => list::list(matches),
        Some(("explain", matches)) => explain::run(matches),
        Some(("services", matches)) => services::run(matches),
        Some(("top", matches)) => top::run(matches),
        Some(("events", matches)) => events::run(matches),
        Some(("health", matches)) => health::run(matches),
        Some(("key", matches)) => key::run(matches),
        Some(("batch", matches)) => batch::run(matches),
        Some(("show", matches)) => show::run(matches),
        Some(("held", matches)) => held::run(matches),
        Some(("hold", matches)) => hold::hold(matches),
        Some(("release", matches)) => hold::release(matches),
        Some(("decide", matches)) => decide::run(matches),
        Some(("resubmit", matches)) => decide::resubmit(matches),
        Some(("cancel", matches)) => decide::cancel(matches),
        Some(("actions", matches)) => actions::run(matches),
        Some(("halts", matches)) => halts::list(matches),
        Some(("continue", matches)) => halts::continue_after(matches),
        Some(("end-following", matches)) => halts::end_following(matches),
        Some(("pause", matches)) => pause::pause(matches),
        Some(("resume", matches)) => pause::resume(matches),
        Some(("drain", matches)) => pause::drain(matches),
        Some(("release-claim", matches)) => pause::release_claim(matches),
        Some(("retry", matches)) => retry::run(matches),
        Some(("withdrawal", matches)) => withdrawal::run(matches),
        #[cfg(feature = "evm")]
        Some(("retry-withdrawals", matches)) => withdrawal::retry_filtered(matches),
        Some(("ledger", matches)) => ledger::run(matches),
        Some(("restored", matches)) => restored::run(matches),
        Some(("retention", matches)) => retention::run(matches),
        Some(("token", matches)) => token::run(matches),
        Some(("nonce", matches)) => nonce::run(matches),
        Some(("gas-admins", matches)) => gas_admins::run(matches),
        Some(("webhooks", matches)) => webhooks::run(matches),
        #[cfg(feature = "evm")]
        Some(("move-withdrawals", matches)) => move_withdrawals::run(matches),
        #[cfg(feature = "demo")]
        Some(("demo", matches)) => demo::run(matches),
        #[cfg(feature = "demo")]
        Some(("ledger-sim", matches)) => ledger_sim::run(matches),
        _ => Err(Failure::new("there is no such command; see grid-batch --help")),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "evm")]
    use std::collections::BTreeMap;

    #[cfg(feature = "evm")]
    use clap::Arg;

    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        program().debug_assert();
    }

    /// A section for each command, with its help. The settings of a server have a page of their own, and options that at
    /// least three commands have with the same help are described once.
    #[cfg(feature = "evm")]
    fn reference() -> String {
        let mut program = program();
        program.build();
        let mut sections = Vec::new();
        collect_sections(&program, "grid-batch", &mut sections);
        let mut commands: BTreeMap<(String, String), usize> = BTreeMap::new();
        for option in sections.iter().flat_map(|(_, command)| shown(command)) {
            *commands.entry(name_and_help(option)).or_default() += 1;
        }
        commands.retain(|(name, _), commands| *commands > 2 && !name.is_empty());
        let mut page = "# Commands\n\nThe help of all commands but `serve` and `config`, whose flags are the \
            [settings](../settings.md). This page is\ngenerated: `UPDATE_DOCS=1 cargo test -p grid-batch reference_of_commands`.\n\n\
            ## Options of many commands\n\n"
            .to_owned();
        for (name, help) in commands.keys().filter(|(name, _)| name != "help") {
            page.push_str(&format!("- `--{name}`: {help}\n"));
        }
        for (name, mut command) in sections {
            let heading = "#".repeat(name.split(' ').count());
            if command.has_subcommands() {
                // Each has a section of its own.
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                page.push_str(&format!("\n{heading} {name}\n\n{about}.\n"));
                continue;
            }
            let options = shown(&command).filter(|it| commands.contains_key(&name_and_help(it)));
            let options: Vec<_> =
                options.map(|it| (it.get_id().clone(), name_and_help(it).0)).collect();
            for (id, _) in &options {
                command = command.mut_arg(id, |option| option.hide(true));
            }
            let help = command.bin_name(&name).term_width(100).render_long_help().to_string();
            let help = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
            page.push_str(&format!("\n{heading} {name}\n\n```text\n{}\n```\n", help.trim()));
            let names = options.iter().filter(|(_, name)| name != "help");
            let names: Vec<_> = names.map(|(_, name)| format!("`--{name}`")).collect();
            if !names.is_empty() {
                page.push_str(&format!("\nAlso {}.\n", names.join(", ")));
            }
        }
        page
    }

    #[cfg(feature = "evm")]
    fn collect_sections(command: &Command, name: &str, sections: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands() {
            // Two of them are in no release.
            if ["serve", "config", "demo", "ledger-sim", "help"].contains(&sub.get_name()) {
                continue;
            }
            let name = format!("{name} {}", sub.get_name());
            sections.push((name.clone(), sub.clone()));
            collect_sections(sub, &name, sections);
        }
    }

    /// Without the settings of a server that a command accepts, which are hidden.
    #[cfg(feature = "evm")]
    fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
        command.get_arguments().filter(|it| !it.is_hide_set())
    }

    #[cfg(feature = "evm")]
    fn name_and_help(option: &Arg) -> (String, String) {
        let help = option.get_long_help().or(option.get_help());
        let name = option.get_long().unwrap_or_default().to_owned();
        (name, help.map(ToString::to_string).unwrap_or_default())
    }

    /// With the commands of a build for an EVM chain.
    #[cfg(feature = "evm")]
    #[test]
    fn reference_of_commands_is_up_to_date() {
        use std::{env, fs, path::Path};

        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&file, reference()).unwrap();
        }
        let present = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            present,
            reference(),
            "UPDATE_DOCS=1 cargo test -p grid-batch --features evm reference_of updates it"
        );
    }
}
