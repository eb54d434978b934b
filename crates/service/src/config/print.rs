//! The configuration as it is in force, in the form of its file.

use std::fmt;

use crate::config::{
    Config, Origin,
    layers::Given,
    setting::{Form, SETTINGS, Setting},
};

/// Every setting with what it is for, its value, and where that is from. Passwords are not shown.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut section = "";
        for setting in SETTINGS {
            let (of_section, key) = setting.name.split_once('.').unwrap_or(("", setting.name));
            if of_section != section {
                section = of_section;
                writeln!(f, "\n[{section}]")?;
            }
            let given = self.layers.given(setting.name);
            writeln!(f, "# {}{}", setting.help, from(&given.origin))?;
            writeln!(f, "{key} = {}", self.written(setting, given))?;
        }
        Ok(())
    }
}

impl Config {
    fn written(&self, setting: &Setting, given: &Given) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        match setting.form {
            Form::Number | Form::Bool => given.text.clone(),
            Form::Text => quoted(&given.text),
            Form::Secret => quoted(&without_password(&given.text)),
            Form::List => {
                let items = given.text.split(',').map(str::trim).filter(|item| !item.is_empty());
                let items: Vec<String> =
                    items.map(|item| quoted(&without_password(item))).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }
}

fn from(origin: &Origin) -> String {
    match origin {
        Origin::Default => String::new(),
        origin => format!(" (from {origin})"),
    }
}

/// The address without passwords, where it is an address.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may itself hold an unescaped @: what follows the last one is the host.
    let address = match address.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{host}"),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    };
    let parameters: Vec<String> = parameters.split('&').map(without_secret).collect();
    match parameters.join("&") {
        none if none.is_empty() => format!("{scheme}://{address}"),
        parameters => format!("{scheme}://{address}?{parameters}"),
    }
}

fn without_secret(parameter: &str) -> String {
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

    fn loaded(variables: &[(&str, &str)]) -> Config {
        let variables = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        Config::load(None, variables, Vec::new()).unwrap()
    }

    #[test]
    fn what_is_printed_is_a_configuration() {
        let config = loaded(&[
            ("GRID_BATCH_LEDGER_URLS", "http://a, http://b"),
            ("GRID_BATCH_LOG", "info,\"x\""),
            ("GRID_BATCH_QUEUE_DELAY", "3s"),
        ]);
        let printed = config.to_string();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, &printed).unwrap();
        let again = Config::load(Some(&file), std::iter::empty(), Vec::new()).unwrap();
        assert_eq!(again.delay, config.delay);
        assert_eq!(again.ledger.urls, config.ledger.urls);
        assert_eq!(again.log, config.log);
        assert!(printed.contains("(from the variable GRID_BATCH_QUEUE_DELAY)\ndelay = \"3s\"\n"));
    }

    #[test]
    fn no_password_is_printed() {
        let printed = loaded(&[
            ("GRID_BATCH_DATABASE", "postgres://u:secret@h/d?host=%2Ftmp&sslpassword=secret"),
            ("GRID_BATCH_LEDGER_URLS", "http://u:secret@h"),
            ("GRID_BATCH_LEDGER_SERVICES", "a::b=http://u:secret@h"),
            ("GRID_BATCH_EVM_ORACLE_URL", "https://h/gas?apiKey=secret&module=gas"),
        ])
        .to_string();
        assert!(!printed.contains("secret"), "{printed}");
        assert!(
            printed.contains("database = \"postgres://u:***@h/d?host=%2Ftmp&sslpassword=***\"")
        );
    }
}
