use crate::{ConfigError, Origin, Setting, SettingName, SettingTable, SourceValues};

impl SourceValues {
    /// Reads the environment: the values of aliases, and those of variables with our prefix, which override them. A
    /// variable with our prefix that is no setting is an error: its name is probably misspelt.
    pub fn from_environment(
        table: &SettingTable,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<[Self; 2], ConfigError> {
        let names: Vec<(String, SettingName)> =
            table.names().map(|it| (it.variable(), it)).collect();
        let mut of_aliases = Self::default();
        let mut values = Self::default();
        for (variable, text) in variables {
            if let Some(setting) = table.iter().find(|it| it.alias == Some(variable.as_str())) {
                let given = setting.given(Origin::Variable(variable.clone()), text);
                of_aliases.add_given(&variable, given)?;
                continue;
            }
            let Some(rest) = variable.strip_prefix(Setting::PREFIX) else { continue };
            if is_other_variable(rest) {
                continue;
            }
            let origin = Origin::Variable(variable.clone());
            let Some((_, name)) = names.iter().find(|(name, _)| *name == variable) else {
                if let Some(ledger) = table.without_adapter(rest.split('_').next().unwrap_or(rest))
                {
                    return Err(ConfigError::NoAdapter { origin, name: variable, ledger });
                }
                let nearest = table.nearest(&rest.to_lowercase().replacen('_', ".", 1));
                let nearest = nearest.map(Setting::variable);
                return Err(ConfigError::UnknownSetting { origin, name: variable, nearest });
            };
            values.add(name, origin, text)?;
        }
        Ok([of_aliases, values])
    }

    /// Reads the flags, which are pairs of a setting's name and its value.
    pub fn from_flags(
        table: &SettingTable,
        flags: Vec<(String, String)>,
    ) -> Result<Self, ConfigError> {
        let names: Vec<SettingName> = table.names().collect();
        let mut values = Self::default();
        for (name, text) in flags {
            let Some(found) = names.iter().find(|it| it.name == name) else {
                let nearest = table.nearest(&name).map(|setting| setting.name.to_owned());
                let origin = Origin::Flag(name.replace(['.', '_'], "-"));
                return Err(ConfigError::UnknownSetting { origin, name, nearest });
            };
            values.add(found, Origin::Flag(found.flag()), text)?;
        }
        Ok(values)
    }
}

/// Whether a variable with our prefix is not a setting: it names the configuration file, or is for our tests.
fn is_other_variable(name: &str) -> bool {
    name == "CONFIG" || name.starts_with("TEST_")
}
