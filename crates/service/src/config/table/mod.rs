//! All settings: their names, defaults, help texts and ranges.

mod general;
mod instance;
mod interface;
mod ledger;
mod processing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
    time::Duration,
};

use grid_batch_settings::{ConfigError, SettingTable};

use super::{LedgerType, ledger_type::OPTIONAL_LEDGERS};

/// The longest value of many settings: with a longer one, given by mistake, the server would stand still for as long.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// All settings of this build, in the order in which they are printed.
pub static SETTINGS: LazyLock<SettingTable> = LazyLock::new(|| table_of(LedgerType::known()));

/// The settings of the server, and of these types of ledgers.
fn table_of<'a>(ledgers: impl IntoIterator<Item = &'a LedgerType> + Clone) -> SettingTable {
    let kind = ledger::kind(ledgers.clone().into_iter().map(|ledger| ledger.name));
    let of_ledgers = ledgers.into_iter().flat_map(|ledger| ledger.settings);
    let before = general::SETTINGS.iter().chain([kind]).chain(ledger::SETTINGS);
    let after = instance::SETTINGS.iter().chain(interface::SETTINGS).chain(processing::SETTINGS);
    SettingTable::new(before.chain(of_ledgers).chain(after))
}

/// The same with these types of ledgers, which a program registers.
pub(super) fn with_registered(registered: &[LedgerType]) -> Result<SettingTable, ConfigError> {
    if registered.is_empty() {
        return Ok(SETTINGS.clone());
    }
    let mut names: BTreeSet<&str> = LedgerType::known().iter().map(|ledger| ledger.name).collect();
    names.extend(OPTIONAL_LEDGERS);
    for ledger in registered {
        let refused =
            |rule| Err(ConfigError::RegisteredLedger { name: ledger.name.to_owned(), rule });
        if !names.insert(ledger.name) {
            return refused("another ledger has this name; choose another one".to_owned());
        }
        let section = format!("ledger.{}", ledger.name);
        let mut settings = ledger.settings.iter();
        if let Some(other) = settings.find(|setting| setting.section_and_key().0 != section) {
            let rule =
                format!("it declares the setting {}, which is not in [{section}]", other.name);
            return refused(rule);
        }
    }
    let table = table_of(LedgerType::known().iter().chain(registered));
    let mut variables: BTreeMap<String, &str> = BTreeMap::new();
    for setting in table.iter() {
        if let Some(other) = variables.insert(setting.variable(), setting.name) {
            let rule = format!("its variable is that of {other}; choose another name");
            return Err(ConfigError::RegisteredLedger { name: setting.name.to_owned(), rule });
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use grid_batch_settings::{Form, Setting, SettingValues};

    use super::*;

    #[test]
    fn variables_and_flags_are_unique() {
        let count = SETTINGS.iter().count();
        let variables: BTreeSet<String> = SETTINGS.iter().map(Setting::variable).collect();
        let flags: BTreeSet<String> = SETTINGS.iter().map(Setting::flag).collect();
        assert_eq!((variables.len(), flags.len()), (count, count));
    }

    #[test]
    fn every_setting_has_guidance() {
        for setting in SETTINGS.iter() {
            assert!(!setting.when.is_empty(), "{} needs a text of when to change it", setting.name);
        }
    }

    #[test]
    fn settings_of_the_protocol_between_instances_are_equal() {
        for name in
            ["claims.idle_expiry", "claims.full_expiry", "submit.total_limit", "ledger.urls"]
        {
            assert!(SETTINGS.named(name).unwrap().equal, "{name}");
        }
    }

    #[test]
    fn defaults_are_in_their_ranges() {
        SettingValues::defaults(SETTINGS.clone()).check().unwrap();
    }

    #[test]
    fn files_of_settings_are_texts_and_what_they_replace_exists() {
        let files = SETTINGS.iter().filter(|setting| setting.name.ends_with("_file"));
        for file in files.filter(|file| file.name != "ledger.key_file") {
            assert!(SETTINGS.value_of(file).is_some() && file.form == Form::Text, "{}", file.name);
        }
    }
}
