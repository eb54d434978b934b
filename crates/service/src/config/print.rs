//! Prints the effective configuration, in the syntax of its file.

use std::fmt;

use grid_batch_support::redact_password;

use super::{
    Config, Origin,
    layers::GivenValue,
    setting::{Form, SETTINGS, Setting},
};

/// Every setting with its help, its value without secrets, and where the value was given.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut current_section = "";
        for setting in SETTINGS {
            let (section, key) = setting.name.split_once('.').unwrap_or(("", setting.name));
            if section != current_section {
                current_section = section;
                writeln!(f, "\n[{section}]")?;
            }
            let given = self.layers.given(setting.name);
            writeln!(f, "# {}{}", setting.help, origin_note(&given.origin))?;
            writeln!(f, "{key} = {}", toml_value(setting, given))?;
        }
        Ok(())
    }
}

fn toml_value(setting: &Setting, given: &GivenValue) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    match setting.form {
        Form::Number | Form::Bool => given.text.clone(),
        Form::Text => quoted(&given.text),
        Form::Secret => quoted(&redact_secrets(&given.text)),
        Form::List => {
            let items = given.text.split(',').map(str::trim).filter(|item| !item.is_empty());
            let items: Vec<String> = items.map(|item| quoted(&redact_secrets(item))).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

fn origin_note(origin: &Origin) -> String {
    match origin {
        Origin::Default => String::new(),
        origin => format!(" (from {origin})"),
    }
}

/// A URL without its password and the secrets in its query; other text as it is.
fn redact_secrets(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    let address = redact_password(address);
    let parameters: Vec<String> = query.split('&').map(redact_parameter).collect();
    match parameters.join("&") {
        query if query.is_empty() => address,
        query => format!("{address}?{query}"),
    }
}

fn redact_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    ["pass", "key", "token", "secret"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(variables: &[(&str, &str)]) -> Config {
        let variables = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        Config::load(None, variables, Vec::new()).unwrap()
    }

    #[test]
    fn printed_configuration_can_be_loaded_again() {
        let config = load(&[
            ("GRID_BATCH_LEDGER_URLS", "http://a, http://b"),
            ("GRID_BATCH_LOG", "info,\"x\""),
            ("GRID_BATCH_QUEUE_DELAY", "3s"),
        ]);
        let printed = config.to_string();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, &printed).unwrap();
        let again = Config::load(Some(&file), std::iter::empty(), Vec::new()).unwrap();
        assert_eq!(again.delays.first, config.delays.first);
        assert_eq!(again.ledger.urls, config.ledger.urls);
        assert_eq!(again.log, config.log);
        assert!(printed.contains("(from the variable GRID_BATCH_QUEUE_DELAY)\ndelay = \"3s\"\n"));
    }

    #[test]
    fn printed_configuration_has_no_password() {
        let printed = load(&[
            ("GRID_BATCH_DATABASE", "postgres://u:hidden@h/d?host=%2Ftmp&sslpassword=hidden"),
            ("GRID_BATCH_LEDGER_URLS", "http://u:hidden@h"),
            ("GRID_BATCH_LEDGER_SERVICES", "a::b=http://u:hidden@h"),
            ("GRID_BATCH_EVM_ORACLE_URL", "https://h/gas?apiKey=hidden&module=gas"),
        ])
        .to_string();
        assert!(!printed.contains("hidden"), "{printed}");
        assert!(
            printed.contains("database = \"postgres://u:***@h/d?host=%2Ftmp&sslpassword=***\"")
        );
    }
}
