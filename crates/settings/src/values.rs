use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    str::FromStr,
    time::Duration,
};

use crate::{
    ConfigError, GivenValue, OldName, Origin, Setting, SettingTable, SettingValue, SourceValues,
};

/// The effective value of each setting of a table.
///
/// Its methods take settings that are in the table, and panic for another one.
#[derive(Debug, Clone)]
pub struct SettingValues {
    table: SettingTable,
    values: HashMap<&'static str, GivenValue>,
    entries: BTreeMap<(&'static str, String), GivenValue>,
    old_names: Vec<OldName>,
}

impl SettingValues {
    /// The defaults of this table.
    pub fn defaults(table: SettingTable) -> Self {
        let default = |setting: &'static Setting| {
            (setting.name, setting.given(Origin::Default, setting.default))
        };
        let values = table.iter().filter(|setting| !setting.has_keys()).map(default).collect();
        Self { values, entries: BTreeMap::new(), old_names: Vec::new(), table }
    }

    /// The settings.
    pub fn table(&self) -> &SettingTable {
        &self.table
    }

    /// Replaces values by those of a later source. A list of keys replaces all keys of earlier sources.
    #[must_use]
    pub fn override_by(mut self, source: SourceValues) -> Self {
        let SourceValues { values, replaced, old_names } = source;
        self.entries.retain(|(name, _), _| !replaced.contains(name));
        self.old_names.extend(old_names);
        self.override_with(values.into_values().map(|(_, value)| value))
    }

    /// The names of earlier releases under which values were given.
    pub fn old_names(&self) -> &[OldName] {
        &self.old_names
    }

    /// Replaces these values.
    #[must_use]
    pub fn override_with(mut self, values: impl IntoIterator<Item = GivenValue>) -> Self {
        for value in values {
            match &value.key {
                None => drop(self.values.insert(value.setting.name, value)),
                Some(key) => {
                    drop(self.entries.insert((value.setting.name, key.clone()), value));
                }
            }
        }
        self
    }

    /// An error for a value out of its range, and for one that was printed without its secret.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.table.iter().flat_map(|setting| self.all_of(setting)).try_for_each(GivenValue::check)
    }

    /// The value of this setting, or its values for all keys.
    pub fn all_of(&self, setting: &Setting) -> Vec<&GivenValue> {
        match self.values.get(setting.name) {
            Some(given) => vec![given],
            None => self.entries(setting).collect(),
        }
    }

    /// The values of a setting that has one for each key, by key.
    pub fn entries(&self, setting: &Setting) -> impl Iterator<Item = &GivenValue> + use<'_> {
        let name = setting.name;
        let is_of_setting = move |(of, _): &(&(&'static str, String), &GivenValue)| of.0 == name;
        self.entries.iter().filter(is_of_setting).map(|(_, given)| given)
    }

    /// The same, each with its key and parsed.
    pub fn get_entries<T: SettingValue>(
        &self,
        setting: &Setting,
    ) -> Result<Vec<(String, T)>, ConfigError> {
        let entry = |given: &GivenValue| Ok((given.key.clone().unwrap_or_default(), given.get()?));
        self.entries(setting).map(entry).collect()
    }

    /// The value of this setting, and where it was given.
    pub fn given(&self, setting: &Setting) -> &GivenValue {
        self.values.get(setting.name).expect("every setting that is read is declared")
    }

    /// The value of this setting.
    pub fn get<T: SettingValue>(&self, setting: &Setting) -> Result<T, ConfigError> {
        self.given(setting).get()
    }

    /// The value of this setting as this function reads it. Its error is the rule that the text breaks.
    pub fn get_with<T>(
        &self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        self.given(setting).get_with(parse)
    }

    /// The value of this setting, which its type reads.
    pub fn get_parsed<T: FromStr<Err: fmt::Display>>(
        &self,
        setting: &Setting,
    ) -> Result<T, ConfigError> {
        self.get(setting).map(|Parsed(value)| value)
    }

    /// The same; `None` if it is empty.
    pub fn get_optional<T: FromStr<Err: fmt::Display>>(
        &self,
        setting: &Setting,
    ) -> Result<Option<T>, ConfigError> {
        match self.given(setting).text.as_str() {
            "" => Ok(None),
            _ => self.get_parsed(setting).map(Some),
        }
    }

    /// The items of a list.
    pub fn get_list<T: FromStr<Err: fmt::Display>>(
        &self,
        setting: &Setting,
    ) -> Result<Vec<T>, ConfigError> {
        let items: Vec<Parsed<T>> = self.get(setting)?;
        Ok(items.into_iter().map(|Parsed(item)| item).collect())
    }

    /// The error for a value that breaks this rule.
    pub fn invalid(&self, setting: &Setting, rule: String) -> ConfigError {
        self.given(setting).invalid(rule)
    }

    /// The error for a setting that contradicts another one.
    pub fn conflict(&self, setting: &Setting, rule: String) -> ConfigError {
        self.given(setting).conflict(rule)
    }

    /// An error unless the first time is shorter than the second.
    pub fn check_shorter(&self, shorter: &Setting, longer: &Setting) -> Result<(), ConfigError> {
        let short: Duration = self.get(shorter)?;
        let long: Duration = self.get(longer)?;
        if short < long {
            return Ok(());
        }
        let (name, other) = (shorter.name, longer.name);
        let rule = format!("{name} is {short:?}; it must be less than {other}, {long:?}");
        let changed = match self.given(shorter).origin {
            Origin::Default => longer,
            _ => shorter,
        };
        Err(self.conflict(changed, rule))
    }
}

/// A value that its type reads.
struct Parsed<T>(T);

impl<T: FromStr<Err: fmt::Display>> SettingValue for Parsed<T> {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: T::Err| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::settings! {
        struct Mine in "ledger.mine." {
            /// Token of the nodes.
            token: String = secret(""),
            /// Account that pays.
            account: String = text(""),
        }
    }

    #[test]
    fn error_does_not_show_a_secret() {
        let given =
            Mine::SETTINGS.iter().map(|it| it.given(Origin::Variable(it.variable()), "hidden"));
        let table = SettingTable::new(Mine::SETTINGS);
        let values = SettingValues::defaults(table).override_with(given);
        let Mine { token, account } = Mine::read(&values).unwrap();
        assert_eq!([token, account], ["hidden"; 2]);
        let invalid = |it| values.invalid(it, "it is too short".to_owned()).to_string();
        assert_eq!(
            invalid(&Mine::token),
            "the variable GRID_BATCH_LEDGER_MINE_TOKEN: ledger.mine.token is not shown; it is too short"
        );
        assert!(invalid(&Mine::account).contains("is \"hidden\";"));
    }
}
