//! Prints the effective configuration, in the syntax of its file.

use std::{collections::BTreeSet, fmt};

use grid_batch_settings::{Form, GivenValue, Origin, Setting};

use super::Config;

/// Every setting with its help, its value without secrets, and where the value was given.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Secrets::Replaced)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Replaced,
    Shown,
}

struct WithSecrets<'a>(&'a Config);

impl fmt::Display for WithSecrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, Secrets::Shown)
    }
}

impl Config {
    /// The same as [`Display`](fmt::Display), with all secrets. A server can be started with it anywhere.
    pub fn with_secrets(&self) -> impl fmt::Display {
        WithSecrets(self)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, secrets: Secrets) -> fmt::Result {
        let settings: Vec<&'static Setting> = self.settings.table().iter().collect();
        for of_section in settings.chunk_by(|a, b| section(a) == section(b)) {
            match of_section {
                [first, ..] if first.has_keys() => self.write_keys(f, of_section, secrets)?,
                _ => self.write_section(f, of_section, secrets)?,
            }
        }
        Ok(())
    }

    fn write_section(
        &self,
        f: &mut fmt::Formatter<'_>,
        settings: &[&'static Setting],
        secrets: Secrets,
    ) -> fmt::Result {
        let given = settings.iter().map(|setting| self.settings.given(setting.name));
        let shown =
            |given: &&GivenValue| !given.setting.for_tests || given.origin != Origin::Default;
        let given: Vec<&GivenValue> = given.filter(shown).collect();
        match given.first().map(|given| section(given.setting)) {
            None | Some("") => {}
            Some(section) => writeln!(f, "\n[{section}]")?,
        }
        for given in given {
            write_comments(f, given.setting)?;
            write_value(f, given, secrets)?;
        }
        Ok(())
    }

    /// The settings of these sections as comments, then a section for each key that has values.
    fn write_keys(
        &self,
        f: &mut fmt::Formatter<'_>,
        settings: &[&'static Setting],
        secrets: Secrets,
    ) -> fmt::Result {
        let Some(name) = settings.first().and_then(|first| section(first).strip_suffix(".*"))
        else {
            return Ok(());
        };
        writeln!(f, "\n# [{name}.\"KEY\"]")?;
        for setting in settings {
            write_comments(f, setting)?;
            writeln!(f, "# {} = {}", setting.section_and_key().1, example(setting))?;
        }
        let given = || settings.iter().flat_map(|setting| self.settings.entries(setting.name));
        let keys: BTreeSet<&String> = given().filter_map(|given| given.key.as_ref()).collect();
        for key in keys {
            writeln!(f, "\n[{name}.{}]", quoted(key))?;
            for given in given().filter(|given| given.key.as_ref() == Some(key)) {
                write_value(f, given, secrets)?;
            }
        }
        Ok(())
    }
}

fn section(setting: &Setting) -> &'static str {
    setting.section_and_key().0
}

fn example(setting: &Setting) -> &'static str {
    match setting.form {
        Form::Number => "0",
        Form::Bool => "false",
        Form::Text | Form::Secret => "\"\"",
        Form::List => "[]",
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, given: &GivenValue, secrets: Secrets) -> fmt::Result {
    let (_, key) = given.setting.section_and_key();
    if given.origin != Origin::Default {
        writeln!(f, "# (from {})", given.origin)?;
    }
    match &given.file {
        Some(file) => writeln!(f, "{key} = {{ file = {} }}", quoted(&file.to_string_lossy())),
        // It follows from another setting.
        None if given.setting.form == Form::Number && given.text.is_empty() => Ok(()),
        None => writeln!(f, "{key} = {}", toml_value(given, secrets)),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn toml_value(given: &GivenValue, secrets: Secrets) -> String {
    let GivenValue { setting, text, .. } = given;
    let shown = |text: &str| match secrets {
        Secrets::Replaced => quoted(&setting.redact(text)),
        Secrets::Shown => quoted(text),
    };
    match setting.form {
        Form::Number | Form::Bool => text.clone(),
        Form::Text | Form::Secret => shown(text),
        Form::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            let items: Vec<String> = items.map(shown).collect();
            match items.as_slice() {
                // Most servers listen at one address.
                [address] if setting.name == "listen" => address.clone(),
                items => format!("[{}]", items.join(", ")),
            }
        }
    }
}

/// What the setting does, and when to change it.
fn write_comments(f: &mut fmt::Formatter<'_>, setting: &Setting) -> fmt::Result {
    let guidance = setting.guidance();
    for line in wrapped(&format!("{}. {guidance}", setting.help)) {
        writeln!(f, "# {line}")?;
    }
    Ok(())
}

fn wrapped(text: &str) -> Vec<String> {
    const COLUMNS: usize = 98;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt, time::Duration};

    use grid_batch_core::LedgerFacts;

    use super::*;
    use crate::{LedgerType, ReadableSecret};

    fn load(variables: &[(&str, &str)]) -> Config {
        let variables = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        Config::load(None, variables, Vec::new()).unwrap()
    }

    #[test]
    fn printed_configuration_can_be_loaded_again() {
        let config = load(&[
            ("GRID_BATCH_LEDGER_URLS", "http://a, http://b"),
            ("GRID_BATCH_LOG", "info,x=warn"),
            ("GRID_BATCH_POLL_INTERVAL", "3s"),
        ]);
        let printed = config.to_string();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, &printed).unwrap();
        let again = Config::load(Some(&file), std::iter::empty(), Vec::new()).unwrap();
        assert_eq!(again.poll.interval, config.poll.interval);
        assert_eq!(again.ledger.urls, config.ledger.urls);
        assert_eq!(again.log, config.log);
        assert!(
            printed.contains("(from the variable GRID_BATCH_POLL_INTERVAL)\ninterval = \"3s\"\n")
        );
    }

    /// Each kind of ledger, with secrets wherever a setting can hold one.
    #[test]
    fn configuration_with_secrets_has_the_same_meaning() {
        for (kind, name, value) in [
            ("sawtooth", "LEDGER_URLS", "http://u:a%40b@h:1, https://g"),
            ("scabbard", "SERVICES_NODE", "a::b=http://u:p@h:1,a::c=http://g"),
            ("scabbard", "SERVICES_PEERS", "a::b=d@http://u:p@h:1"),
            ("evm", "EVM_ORACLE_URL", "https://h/gas?apikey=k%3D&module=gas"),
            ("evm", "GAS_ADMINS_KEY", "a=env:KEY,b=/run/key"),
            ("evm", "POOLS_MAXIMUM_GAS_PRICE", "0x1=5"),
        ] {
            let name = format!("GRID_BATCH_{name}");
            let config = load(&[
                ("GRID_BATCH_LEDGER_KIND", kind),
                (&name, value),
                ("GRID_BATCH_DATABASE", "postgres://u:p%23@h/d?sslpassword=x%26y"),
            ]);
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("c.toml");
            std::fs::write(&file, config.with_secrets().to_string()).unwrap();
            let again = Config::load(Some(&file), std::iter::empty(), Vec::new()).unwrap();
            for setting in crate::SETTINGS.iter() {
                let items = |config: &Config| -> Vec<(Option<String>, String)> {
                    let given = config.settings.all_of(setting).into_iter();
                    let items = given.flat_map(|given| {
                        let items = given.text.split(',').map(str::trim);
                        items.map(|item| (given.key.clone(), item.to_owned()))
                    });
                    items.collect()
                };
                assert_eq!(items(&again), items(&config), "{kind} {}", setting.name);
            }
            assert_eq!(again.database, config.database);
        }
    }

    #[test]
    fn printed_configuration_has_no_password() {
        let printed = load(&[
            ("GRID_BATCH_DATABASE", "postgres://u:hidden@h/d?host=%2Ftmp&sslpassword=hidden"),
            ("GRID_BATCH_LEDGER_URLS", "http://u:hidden@h"),
            ("GRID_BATCH_SERVICES_NODE", "a::b=http://u:hidden@h"),
            ("GRID_BATCH_EVM_ORACLE_URL", "https://h/gas?apiKey=hidden&module=gas"),
        ])
        .to_string();
        assert!(!printed.contains("hidden"), "{printed}");
        assert!(
            printed.contains("database = \"postgres://u:***@h/d?host=%2Ftmp&sslpassword=***\"")
        );
    }

    #[test]
    fn secret_of_a_registered_ledger_is_not_printed() {
        static OF_MINE: &[Setting] = &[
            Setting::secret("ledger.mine.token", "", "Token of the nodes"),
            Setting::secret("ledger.mine.url", "", "URL of the nodes"),
            Setting::secret("ledger.mine.other", "", "Another token"),
        ];
        let mine = LedgerType::new(
            "mine",
            |_| Ok(LedgerFacts::weakest(Duration::ZERO)),
            |_| Err("it has no adapter".into()),
        );
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let load = |content: &str, flags: Vec<(String, String)>| {
            std::fs::write(&file, content).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            let mine = [mine.with_settings(OF_MINE)];
            Config::load_with_ledgers(&mine, Some(&file), std::iter::empty(), flags).unwrap()
        };
        let readable = |config: &Config| -> Vec<String> {
            config.readable_secrets().iter().map(ReadableSecret::name).collect()
        };

        let url = "http://u:hidden@h/x";
        let flag = |setting: &Setting, text: &str| (setting.name.to_owned(), text.to_owned());
        let by_flag = load("", vec![flag(&OF_MINE[0], "hidden"), flag(&OF_MINE[1], url)]);
        let printed = by_flag.to_string();
        assert!(!printed.contains("hidden"), "{printed}");
        assert!(printed.contains("\ntoken = \"***\"\n"), "{printed}");
        assert!(printed.contains("\nurl = \"http://u:***@h/x\"\n"), "{printed}");
        assert!(printed.contains("\nother = \"\"\n"), "{printed}");
        assert!(by_flag.with_secrets().to_string().contains("\ntoken = \"hidden\"\n"));
        assert_eq!(readable(&by_flag), ["--ledger-mine-token", "--ledger-mine-url"]);

        let by_file = load("[ledger.mine]\ntoken = \"hidden\"", Vec::new());
        assert_eq!(readable(&by_file), [file.display().to_string()]);
        assert_eq!(readable(&load("[ledger.mine]\ntoken = \"\"", Vec::new())), [""; 0]);
    }
}
