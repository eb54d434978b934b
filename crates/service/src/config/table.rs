//! The table of all settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use grid_batch_settings::{ConfigError, Setting, SettingTable};

use super::{
    AccessConfig, ClaimsConfig, EventsConfig, GeneralConfig, HttpConfig, IntakeConfig,
    LedgerConfig, LedgerType, PollConfig, RequestsConfig, RetentionConfig, ServicesConfig,
    StoreConfig, SubmitConfig, TestingConfig,
    ledger_type::{OPTIONAL_LEDGERS, alternatives, missing_ledgers},
    old,
};

/// All settings of this build, in the order in which they are printed.
pub static SETTINGS: LazyLock<SettingTable> = LazyLock::new(|| table_of(LedgerType::known()));

/// The settings of the server, and of these types of ledgers.
fn table_of<'a>(ledgers: impl IntoIterator<Item = &'a LedgerType> + Clone) -> SettingTable {
    let kind = kind(ledgers.clone().into_iter().map(|ledger| ledger.name));
    let before = [GeneralConfig::SETTINGS, LedgerConfig::SETTINGS];
    let after = [
        ServicesConfig::SETTINGS,
        StoreConfig::SETTINGS,
        ClaimsConfig::SETTINGS,
        HttpConfig::SETTINGS,
        AccessConfig::SETTINGS,
        IntakeConfig::SETTINGS,
        SubmitConfig::SETTINGS,
        PollConfig::SETTINGS,
        RetentionConfig::SETTINGS,
        EventsConfig::SETTINGS,
        RequestsConfig::SETTINGS,
        TestingConfig::SETTINGS,
    ];
    let of_ledgers = ledgers.into_iter().flat_map(LedgerType::settings);
    let all = before.into_iter().flatten().chain(of_ledgers).chain(after.into_iter().flatten());
    let with_kinds = |it: &'static Setting| if it.name == kind.name { kind } else { it };
    let mut all: Vec<&'static Setting> = all.map(with_kinds).collect();
    let mut sections: Vec<&str> = all.iter().map(|setting| setting.section_and_key().0).collect();
    let mut seen = BTreeSet::new();
    sections.retain(|section| seen.insert(*section));
    all.sort_by_key(|setting| {
        let section = setting.section_and_key().0;
        (setting.is_for_tests(), sections.iter().position(|other| *other == section))
    });
    SettingTable::new(all).with_old(old::SETTINGS).with_missing_ledgers(missing_ledgers())
}

/// The setting that names one of these kinds. It lives as long as the program.
fn kind<'a>(names: impl Iterator<Item = &'a str>) -> &'static Setting {
    let names = alternatives(names.map(str::to_owned));
    let names = names.unwrap_or_else(|| "none is compiled in".to_owned());
    Box::leak(Box::new(LedgerConfig::kind.with_choices(names.leak())))
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
        let mut settings = ledger.settings();
        if let Some(other) = settings.find(|setting| setting.section_and_key().0 != section) {
            let rule =
                format!("it declares the setting {}, which is not in [{section}]", other.name);
            return refused(rule);
        }
    }
    let table = table_of(LedgerType::known().iter().chain(registered));
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for it in table.names() {
        if let Some(other) = variables.insert(it.variable(), it.name.clone()) {
            let rule = format!("its variable is that of {other}; choose another name");
            return Err(ConfigError::RegisteredLedger { name: it.name, rule });
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use grid_batch_settings::{OldSetting, SettingValues};

    use super::*;

    #[test]
    fn variables_and_flags_are_unique() {
        let count = SETTINGS.names().count();
        let variables: BTreeSet<String> = SETTINGS.names().map(|it| it.variable()).collect();
        let flags: BTreeSet<String> = SETTINGS.names().map(|it| it.flag()).collect();
        assert_eq!((variables.len(), flags.len()), (count, count));
    }

    #[test]
    fn every_setting_has_guidance() {
        for setting in SETTINGS.iter().filter(|setting| !setting.is_for_tests()) {
            assert!(
                !setting.when().is_empty(),
                "{} needs a text of when to change it",
                setting.name
            );
        }
    }

    #[test]
    fn settings_of_the_protocol_between_instances_are_equal() {
        for name in
            ["claims.idle_expiry", "claims.full_expiry", "ledger.request_timeout", "ledger.urls"]
        {
            assert!(SETTINGS.named(name).unwrap().equal, "{name}");
        }
    }

    #[test]
    fn defaults_are_in_their_ranges() {
        SettingValues::defaults(SETTINGS.clone()).check().unwrap();
    }

    #[test]
    fn new_names_of_old_settings_exist() {
        for new in old::SETTINGS.iter().filter_map(OldSetting::new_name) {
            let is_of_ledger =
                ["evm.", "gas_admins.", "pools.", "testing.oracle", "services.*.unknown"];
            let may_be_missing = is_of_ledger.iter().any(|part| new.starts_with(part));
            assert!(may_be_missing || SETTINGS.named(new).is_some(), "{new}");
        }
    }
}
