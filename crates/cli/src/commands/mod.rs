//! The command line: each command is a file.

mod actions;
mod amount;
mod arguments;
mod batch;
mod columns;
mod completions;
mod config;
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
mod input;
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
#[cfg(all(test, feature = "evm", feature = "demo"))]
mod named_commands;
mod nonce;
mod operator;
mod pause;
mod print;
mod printable;
mod private_file;
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
mod transaction;
mod usage;
mod variables;
mod verbs;
mod wait;
mod webhooks;
mod window;
mod withdrawal;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use grid_batch_core::operators::OperatorVerb;
use grid_batch_service::LedgerType;

use failure::Failure;

/// Stores batches, submits them to a distributed ledger in order, and follows each to its end
#[derive(Debug, Parser)]
#[command(name = "grid-batch", version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Migrate(migrate::MigrateArgs),
    Submit(submit::SubmitArgs),
    Status(list::StatusArgs),
    List(list::ListArgs),
    Explain(explain::ExplainArgs),
    Services(services::ServicesArgs),
    Top(top::TopArgs),
    Events(events::EventsArgs),
    Health(health::HealthArgs),
    #[command(subcommand)]
    Key(key::KeyCommand),
    #[command(subcommand)]
    Batch(batch::BatchCommand),
    Show(show::ShowArgs),
    Held(held::HeldArgs),
    /// Holds open batches: they are not sent, or not sent again, until they are released or decided
    ///
    /// Later batches of the service wait. A batch that is at the ledger is followed, and ends when the ledger reports a
    /// final status. A batch that is being sent is not stopped; one that was taken and is not sent yet goes back to the
    /// queue. A batch that waits behind another one is held when its turn comes.
    Hold(verbs::VerbArgs),
    /// Ends the holds of batches: they continue by the ordinary rules, which may hold them again
    Release(verbs::VerbArgs),
    /// Records an operator's decision about open batches
    Decide(verbs::DecideArgs),
    /// Sends batches again, because the ledger does not have them; the same as `decide ... absent`
    Resubmit(verbs::ResubmitArgs),
    /// Ends batches as invalid without sending them; refused for a batch that may be at the ledger
    Cancel(verbs::VerbArgs),
    Actions(actions::ActionsArgs),
    Halts(halts::HaltsArgs),
    /// Lets batches continue that invalid batches stop; those that depend on an invalid batch end as invalid
    Continue(verbs::VerbArgs),
    /// Ends the batches that invalid batches stop, as invalid and without sending them
    ///
    /// With the strategy parallel, these are the batches that wait for the invalid one, and those that wait for these;
    /// otherwise, all batches of the service that were never sent. Batches added later are not affected.
    EndFollowing(verbs::VerbArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Drain(pause::DrainArgs),
    ReleaseClaim(pause::ReleaseClaimArgs),
    Retry(retry::RetryArgs),
    #[command(subcommand, visible_alias = "withdrawals")]
    Withdrawal(withdrawal::WithdrawalCommand),
    #[cfg(feature = "evm")]
    RetryWithdrawals(withdrawal::FilteredArgs),
    #[command(subcommand, visible_alias = "transactions")]
    Transaction(transaction::TransactionCommand),
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    Restored(restored::RestoredArgs),
    Retention(retention::RetentionArgs),
    #[command(subcommand)]
    Token(token::TokenCommand),
    Nonce(nonce::NonceArgs),
    /// Lists the gas admins with their balances and queues; with a configuration, only their addresses
    ///
    /// A running server also shows the gas price. With a configuration, lists their names and addresses without a
    /// server, and checks the keys; remote signers are not asked.
    GasAdmins(arguments::ReadArgs),
    #[command(subcommand, visible_alias = "webhook")]
    Webhooks(webhooks::WebhookCommand),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[cfg(feature = "evm")]
    /// Moves open withdrawals to the gas admins that their pools have in the settings now
    ///
    /// They go to the end of its queue and keep their order, if all nodes show that the former gas admin has sent
    /// nothing that is not stored. Only withdrawals for which nothing was signed are moved; the others end at their
    /// former gas admin, whose key should stay in `gas_admins.*.key` until then. Servers may be running.
    MoveWithdrawals(arguments::ActionArgs),
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
    #[cfg(feature = "demo")]
    LedgerSim(ledger_sim::LedgerSimArgs),
}

impl Command {
    fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Serve(args) => serve::run(args),
            Self::Config(args) => config::run(args),
            Self::Doctor(args) => doctor::run(args),
            Self::Migrate(args) => migrate::run(args),
            Self::Submit(args) => submit::run(args),
            Self::Status(args) => list::status(args),
            Self::List(args) => list::list(args),
            Self::Explain(args) => explain::run(args),
            Self::Services(args) => services::run(args),
            Self::Top(args) => top::run(args),
            Self::Events(args) => events::run(args),
            Self::Health(args) => health::run(args),
            Self::Key(command) => key::run(command),
            Self::Batch(command) => batch::run(command),
            Self::Show(args) => show::run(args),
            Self::Held(args) => held::run(args),
            Self::Hold(args) => verbs::act(args, OperatorVerb::Hold),
            Self::Release(args) => verbs::act(args, OperatorVerb::Release),
            Self::Decide(args) => verbs::decide(args),
            Self::Resubmit(args) => verbs::resubmit(args),
            Self::Cancel(args) => verbs::act(args, OperatorVerb::Cancel),
            Self::Actions(args) => actions::run(args),
            Self::Halts(args) => halts::run(args),
            Self::Continue(args) => verbs::act(args, OperatorVerb::Continue),
            Self::EndFollowing(args) => verbs::act(args, OperatorVerb::EndFollowing),
            Self::Pause(args) => pause::pause(args),
            Self::Resume(args) => pause::resume(args),
            Self::Drain(args) => pause::drain(args),
            Self::ReleaseClaim(args) => pause::release_claim(args),
            Self::Retry(args) => retry::run(args),
            Self::Withdrawal(command) => withdrawal::run(command),
            #[cfg(feature = "evm")]
            Self::RetryWithdrawals(args) => withdrawal::retry_filtered(&args.filter),
            Self::Transaction(command) => transaction::run(command),
            Self::Ledger(command) => ledger::run(command),
            Self::Restored(args) => restored::run(args),
            Self::Retention(args) => retention::run(args),
            Self::Token(command) => token::run(command),
            Self::Nonce(args) => nonce::run(args),
            Self::GasAdmins(args) => gas_admins::run(args),
            Self::Webhooks(command) => webhooks::run(command),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
            #[cfg(feature = "evm")]
            Self::MoveWithdrawals(args) => move_withdrawals::run(args),
            #[cfg(feature = "demo")]
            Self::Demo(args) => demo::run(args),
            #[cfg(feature = "demo")]
            Self::LedgerSim(args) => ledger_sim::run(args),
        }
    }
}

/// Parses the command line and runs its command, with these ledgers beside those that are compiled in.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>, ledgers: &[LedgerType]) -> ExitCode {
    flags::register(ledgers);
    let arguments: Vec<OsString> = arguments.collect();
    let command = match Program::try_parse_from(&arguments) {
        Ok(Program { command }) => command,
        Err(error) => return usage::print(&error, &arguments),
    };
    let ended = command.run();
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

fn program() -> clap::Command {
    Program::command()
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
            [settings](../settings.md).\nGenerated: `UPDATE_DOCS=1 cargo test -p grid-batch reference_of_commands`.\n\n\
            ## Options of many commands\n\n"
            .to_owned();
        for (first, others) in WITH {
            let others = others.iter().map(|name| format!("`--{name}`")).collect::<Vec<_>>();
            page.push_str(&format!(
                "Commands with `--{first}` also have {}.\n",
                others.join(" and ")
            ));
        }
        page.push('\n');
        for (name, help) in commands.keys().filter(|(name, _)| name != "help") {
            page.push_str(&format!("- `--{name}`: {help}\n"));
        }
        for (name, mut command) in sections {
            let heading = "#".repeat(name.split(' ').count());
            let heading = format!("{heading} {}", name.trim_start_matches("grid-batch "));
            if command.has_subcommands() {
                // Each has a section of its own.
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                page.push_str(&format!("\n{heading}\n\n{about}.\n"));
                continue;
            }
            let options = shown(&command).filter(|it| commands.contains_key(&name_and_help(it)));
            let options: Vec<_> =
                options.map(|it| (it.get_id().clone(), name_and_help(it).0)).collect();
            for (id, _) in &options {
                command = command.mut_arg(id, |option| option.hide(true));
            }
            let arguments: String = command.get_positionals().map(|it| format!(" {it}")).collect();
            let help = command.bin_name(&name).term_width(100).render_long_help().to_string();
            let help = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
            let help = short_usage(&help, &name, &arguments);
            page.push_str(&format!("\n{heading}\n\n```text\n{}\n```\n", help.trim()));
            let names: Vec<&str> = options.iter().map(|(_, name)| name.as_str()).collect();
            let names = names.iter().filter(|name| **name != "help" && !is_with(name, &names));
            let names: Vec<_> = names.map(|name| format!("`--{name}`")).collect();
            if !names.is_empty() {
                page.push_str(&format!("\nAlso {}.\n", names.join(", ")));
            }
        }
        page
    }

    /// The usage without what the heading and the rest of the section say.
    #[cfg(feature = "evm")]
    fn short_usage(help: &str, name: &str, arguments: &str) -> String {
        let help = help.replace(&format!("Usage: {name}"), "Usage:");
        let help = help.replace("Usage: [OPTIONS]", "Usage:");
        let help = format!("{}\n\n", help.replace("Usage: --reason <TEXT>", "Usage:"));
        help.replace(&format!("Usage:{arguments}\n\n"), "").replace("Usage:\n\n", "")
    }

    /// Options that every command has which has the first one.
    #[cfg(feature = "evm")]
    const WITH: [(&str, &[&str]); 3] = [
        ("url", &["token-file", "profile"]),
        ("config", &["database", "url"]),
        ("reason", &["dry-run"]),
    ];

    /// Whether the option is one of those that come with another one of these.
    #[cfg(feature = "evm")]
    fn is_with(name: &str, names: &[&str]) -> bool {
        WITH.iter().filter(|(first, _)| names.contains(first)).any(|(first, others)| {
            assert!(others.iter().all(|other| names.contains(other)), "--{first} alone: {names:?}");
            others.contains(&name)
        })
    }

    #[cfg(feature = "evm")]
    fn collect_sections(
        command: &clap::Command,
        name: &str,
        sections: &mut Vec<(String, clap::Command)>,
    ) {
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
    fn shown(command: &clap::Command) -> impl Iterator<Item = &Arg> {
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
