use std::{collections::HashMap, fmt, num::NonZero, str::FromStr, time::Duration};

use crate::{
    ConfigError, Form, NOT_SHOWN, Origin, Setting, SettingTable, SettingValue, may_hold_secret,
    secret::PLACEHOLDER,
};

/// A setting's value, not parsed yet, and where it was given.
#[derive(Clone)]
pub struct GivenValue {
    /// The setting.
    pub setting: &'static Setting,
    /// Where the value was given.
    pub origin: Origin,
    /// The value.
    pub text: String,
}

/// The text may hold a secret.
impl fmt::Debug for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.setting.name, self.origin)
    }
}

/// The effective value of each setting of a table.
///
/// Its methods take names of settings that are in the table, and panic for another name.
#[derive(Debug, Clone)]
pub struct SettingValues {
    table: SettingTable,
    values: HashMap<&'static str, GivenValue>,
}

impl SettingValues {
    /// The defaults of this table.
    pub fn defaults(table: SettingTable) -> Self {
        let default = |setting: &'static Setting| {
            (setting.name, setting.given(Origin::Default, setting.default))
        };
        Self { values: table.iter().map(default).collect(), table }
    }

    /// The settings.
    pub fn table(&self) -> &SettingTable {
        &self.table
    }

    /// Replaces values by those of a later source.
    #[must_use]
    pub fn override_with(mut self, values: impl IntoIterator<Item = GivenValue>) -> Self {
        self.values.extend(values.into_iter().map(|value| (value.setting.name, value)));
        self
    }

    /// An error for a value out of its range, and for one that was printed without its secret.
    pub fn check(&self) -> Result<(), ConfigError> {
        for given in self.table.iter().map(|setting| self.given(setting.name)) {
            let GivenValue { setting, origin, text } = given;
            if setting.may_hold_secret && text.contains(PLACEHOLDER) {
                return Err(ConfigError::Placeholder {
                    origin: origin.clone(),
                    name: setting.name,
                    variable: setting.variable(),
                });
            }
        }
        self.table.iter().try_for_each(|setting| setting.check_range(self))
    }

    /// The value of this setting, and where it was given.
    pub fn given(&self, name: &str) -> &GivenValue {
        self.values.get(name).expect("every setting that is read is declared")
    }

    /// The value of this setting.
    pub fn get<T: SettingValue>(&self, name: &str) -> Result<T, ConfigError> {
        self.parse(name, T::parse, T::redacted)
    }

    /// The value of this setting as this function reads it. Its error is the rule that the text breaks.
    pub fn get_with<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let redacted = match self.given(name).setting.form {
            Form::List => Vec::<String>::redacted,
            _ => String::redacted,
        };
        self.parse(name, parse, redacted)
    }

    /// The items of a list.
    pub fn get_list<T: FromStr<Err: fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Vec<T>, ConfigError> {
        let items: Vec<Parsed<T>> = self.get(name)?;
        Ok(items.into_iter().map(|Parsed(item)| item).collect())
    }

    /// The value of a setting that is a count above zero.
    pub fn get_size(&self, name: &str) -> Result<usize, ConfigError> {
        self.get::<NonZero<usize>>(name).map(NonZero::get)
    }

    fn parse<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        redacted: fn(&str) -> String,
    ) -> Result<T, ConfigError> {
        let given = self.given(name);
        parse(&given.text).map_err(|rule| {
            let value = match given.setting.form {
                Form::Secret => NOT_SHOWN.to_owned(),
                _ => redacted(&given.text),
            };
            ConfigError::Value { origin: given.origin.clone(), name: name.to_owned(), value, rule }
        })
    }

    /// The error for a value that breaks this rule.
    pub fn invalid(&self, name: &str, rule: String) -> ConfigError {
        let given = self.given(name);
        let is_secret = given.setting.form == Form::Secret || may_hold_secret(&given.text);
        let value = if is_secret { NOT_SHOWN.to_owned() } else { format!("{:?}", given.text) };
        ConfigError::Value { origin: given.origin.clone(), name: name.to_owned(), value, rule }
    }

    /// The error for a setting that contradicts another one.
    pub fn conflict(&self, name: &str, rule: String) -> ConfigError {
        ConfigError::Conflict { origin: self.given(name).origin.clone(), rule }
    }

    /// An error unless the first time is shorter than the second.
    pub fn check_shorter(&self, shorter: &str, longer: &str) -> Result<(), ConfigError> {
        self.check_ascending(shorter, longer, "less than", |short, long| short < long)
    }

    /// An error if the first time is longer than the second.
    pub fn check_not_longer(&self, shorter: &str, longer: &str) -> Result<(), ConfigError> {
        self.check_ascending(shorter, longer, "at most", |short, long| short <= long)
    }

    fn check_ascending(
        &self,
        shorter: &str,
        longer: &str,
        relation: &str,
        holds: fn(Duration, Duration) -> bool,
    ) -> Result<(), ConfigError> {
        let short: Duration = self.get(shorter)?;
        let long: Duration = self.get(longer)?;
        if holds(short, long) {
            return Ok(());
        }
        let rule = format!("{shorter} is {short:?}; it must be {relation} {longer}, {long:?}");
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

    #[test]
    fn error_does_not_show_a_secret() {
        static SETTINGS: &[Setting] = &[
            Setting::secret("ledger.mine.token", "", "Token of the nodes"),
            Setting::text("ledger.mine.account", "", "Account that pays"),
        ];
        let given = SETTINGS.iter().map(|it| it.given(Origin::Variable(it.variable()), "hidden"));
        let values = SettingValues::defaults(SettingTable::new(SETTINGS)).override_with(given);
        let invalid = |name| values.invalid(name, "it is too short".to_owned()).to_string();
        assert_eq!(
            invalid("ledger.mine.token"),
            "the variable GRID_BATCH_LEDGER_MINE_TOKEN: ledger.mine.token is not shown; it is too short"
        );
        assert!(invalid("ledger.mine.account").contains("is \"hidden\";"));
    }
}
