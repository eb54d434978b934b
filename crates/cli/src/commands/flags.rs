//! Every setting as a flag, and the effective configuration.

use std::{env, marker::PhantomData, path::PathBuf, sync::OnceLock};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
#[cfg(feature = "demo")]
use grid_batch_service::LogFilter;
use grid_batch_service::{Config, Form, LedgerType, SETTINGS, SettingName, SettingTable};

use crate::commands::{failure::Failure, variables};

/// The ledgers that the program has registered.
static REGISTERED: OnceLock<Vec<LedgerType>> = OnceLock::new();

/// Registers ledgers for every configuration that is loaded afterwards. It is called once.
pub(crate) fn register(ledgers: &[LedgerType]) {
    REGISTERED.get_or_init(|| ledgers.to_vec());
}

fn registered() -> &'static [LedgerType] {
    REGISTERED.get().map(Vec::as_slice).unwrap_or_default()
}

/// The possible values of `ledger.kind`, for messages.
pub(crate) fn ledger_kinds() -> String {
    LedgerType::kinds(registered())
}

/// The help text about the other settings.
pub(crate) const OF_SETTINGS: &str =
    "Every setting that `grid-batch config reference` describes is also a flag.";

/// All names under which a setting can be given, including the settings of registered ledgers.
pub(crate) fn all() -> Vec<SettingName> {
    let of_registered = registered().iter().flat_map(LedgerType::settings);
    SETTINGS.names().chain(SettingTable::new(of_registered).names().collect::<Vec<_>>()).collect()
}

/// The flags of settings that the help of a command shows.
pub(crate) trait ShownSettings {
    fn flags() -> Vec<Arg>;
}

/// The flags that most servers need; `grid-batch config reference` prints all settings.
#[derive(Debug)]
pub(crate) enum All {}

/// Only those that name the database.
#[derive(Debug)]
pub(crate) enum OfDatabase {}

/// The same, for a command that uses a server if none of them is given.
#[derive(Debug)]
pub(crate) enum OfSource {}

impl ShownSettings for All {
    fn flags() -> Vec<Arg> {
        let help = format!("Configuration file [default: {}, if it exists]", Config::FILE);
        let file = Arg::new("config").long("config").value_name("FILE").help(help);
        std::iter::once(file).chain(all().iter().map(flag)).collect()
    }
}

impl ShownSettings for OfDatabase {
    fn flags() -> Vec<Arg> {
        let is_shown = |flag: &Arg| ["config", "database"].contains(&flag.get_id().as_str());
        let hide = |flag: Arg| if is_shown(&flag) { flag } else { flag.hide(true) };
        All::flags().into_iter().map(hide).collect()
    }
}

impl ShownSettings for OfSource {
    fn flags() -> Vec<Arg> {
        const FILE: &str = "Works on the database of this configuration file, without a server";
        const DATABASE: &str = "Works on this database, without a server: sqlite://FILE or postgresql://USER@HOST/DATABASE";
        let tell = |flag: Arg| match flag.get_id().as_str() {
            "config" => flag.help(FILE).long_help(FILE),
            "database" => flag.help(DATABASE).long_help(DATABASE),
            _ => flag,
        };
        OfDatabase::flags().into_iter().map(tell).collect()
    }
}

/// The flag that names the configuration file, and one flag for each setting: which those are is known when the program
/// runs.
#[derive(Debug)]
pub(crate) struct SettingFlags<S> {
    file: Option<PathBuf>,
    given: Vec<(String, String)>,
    shown: PhantomData<S>,
}

impl<S: ShownSettings> Args for SettingFlags<S> {
    /// The flags of the commands that are not used would take 7 MB.
    fn augment_args(command: Command) -> Command {
        command.defer(|command| command.args(S::flags()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S> FromArgMatches for SettingFlags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let text = |id: &str| matches.get_one::<String>(id).cloned();
        let given = |name: SettingName| Some((name.name.clone(), text(&name.name)?));
        Ok(Self {
            file: text("config").map(PathBuf::from),
            given: all().into_iter().filter_map(given).collect(),
            shown: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(name: &SettingName) -> Arg {
    let flag = Arg::new(name.name.clone()).long(name.flag());
    let Some(setting) = name.setting.filter(|_| name.is_shown()) else {
        return flag.hide(true);
    };
    let help = match setting.default {
        "" => setting.help(),
        default => format!("{} [default: {default}]", setting.help()),
    };
    let long_help = format!("{help}. {}", setting.guidance());
    let flag = flag.help(help).long_help(long_help);
    match setting.form {
        Form::Number => flag.value_name("NUMBER"),
        Form::Bool => flag.value_name("true|false"),
        Form::List => flag.value_name("LIST"),
        Form::Text | Form::Secret => flag.value_name("TEXT"),
    }
}

impl<S> SettingFlags<S> {
    /// Whether the command line has one of them.
    pub(crate) fn is_any_given(&self) -> bool {
        self.file.is_some() || !self.given.is_empty()
    }

    /// The file that is named by the flag or the environment.
    fn named_file(&self) -> Option<PathBuf> {
        self.file.clone().or_else(|| env::var_os(Config::FILE_VARIABLE).map(PathBuf::from))
    }

    /// The file that the configuration is read from, if it exists.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.named_file().unwrap_or_else(|| PathBuf::from(Config::FILE))
    }

    /// Reads the configuration from its file, the environment and the flags.
    pub(crate) fn load(&self) -> Result<Config, Failure> {
        let mut variables = Vec::new();
        for (name, text) in env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            if variables::ALL.contains(&name.as_str()) {
                continue;
            }
            match text.into_string() {
                Ok(text) => variables.push((name, text)),
                Err(_) if !name.starts_with("GRID_BATCH_") => {}
                Err(_) => {
                    return Err(Failure::configuration(format!(
                        "the variable {name} is not UTF-8"
                    )));
                }
            }
        }
        let (file, given) = (self.named_file(), self.given.clone());
        let variables = variables.into_iter();
        Ok(Config::load_with_ledgers(registered(), file.as_deref(), variables, given)?)
    }
}

/// The filter of the log for commands without a configuration.
#[cfg(feature = "demo")]
pub(crate) fn log_filter(text: &str) -> Result<String, String> {
    text.parse().map(|filter: LogFilter| filter.as_str().to_owned())
}
