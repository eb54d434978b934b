//! Every setting as a flag, and the effective configuration.

use std::{env, path::PathBuf, sync::OnceLock};

use clap::{Arg, ArgMatches};
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

/// The flag that names the configuration file, and one flag for each setting. Help shows the flags that most servers
/// need; `grid-batch config reference` prints all settings.
pub(crate) fn settings() -> Vec<Arg> {
    let file = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .help(format!("Configuration file [default: {}, if it exists]", Config::FILE));
    std::iter::once(file).chain(all().iter().map(flag)).collect()
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

/// The same flags; help shows only those that name the database.
pub(crate) fn of_database() -> impl Iterator<Item = Arg> {
    let shown = ["config", "database"];
    settings().into_iter().map(move |flag| {
        let is_shown = shown.contains(&flag.get_id().as_str());
        if is_shown { flag } else { flag.hide(true) }
    })
}

/// The file that is named by the flag or the environment.
fn named_file(matches: &ArgMatches) -> Option<PathBuf> {
    let file = matches.get_one::<String>("config").map(PathBuf::from);
    file.or_else(|| env::var_os(Config::FILE_VARIABLE).map(PathBuf::from))
}

/// The file that the configuration is read from, if it exists.
pub(crate) fn config_file(matches: &ArgMatches) -> PathBuf {
    named_file(matches).unwrap_or_else(|| PathBuf::from(Config::FILE))
}

/// Reads the configuration from its file, the environment and the flags.
pub(crate) fn load(matches: &ArgMatches) -> Result<Config, Failure> {
    let file = named_file(matches);
    let given = |name: SettingName| {
        matches.get_one::<String>(&name.name).map(|text| (name.name.clone(), text.clone()))
    };
    let flags = all().into_iter().filter_map(given).collect();
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
                return Err(Failure::configuration(format!("the variable {name} is not UTF-8")));
            }
        }
    }
    Ok(Config::load_with_ledgers(registered(), file.as_deref(), variables.into_iter(), flags)?)
}

/// The filter of the log for commands without a configuration.
#[cfg(feature = "demo")]
pub(crate) fn log_filter(text: &str) -> Result<String, String> {
    text.parse().map(|filter: LogFilter| filter.as_str().to_owned())
}
