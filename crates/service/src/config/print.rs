use std::fmt;

use grid_batch_settings::PrintedContent;

use super::Config;

/// Every setting with its help, its value without secrets, and where the value was given.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.printed(PrintedContent::Effective).fmt(f)
    }
}

impl Config {
    /// The same as [`Display`](fmt::Display), with all secrets. A server can be started with it anywhere.
    pub fn with_secrets(&self) -> impl fmt::Display {
        self.settings.printed_with_secrets(PrintedContent::Effective)
    }

    /// A file to edit, with the settings that most servers need or with all. Defaults are comments in it; secrets are
    /// replaced by `***` unless they are shown.
    pub fn file_to_edit(&self, has_all: bool, shows_secrets: bool) -> String {
        let content = if has_all { PrintedContent::All } else { PrintedContent::Common };
        if shows_secrets {
            self.settings.printed_with_secrets(content).to_string()
        } else {
            self.settings.printed(content).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt, time::Duration};

    use grid_batch_core::ledger::LedgerFacts;
    use grid_batch_settings::Setting;

    use super::*;
    use crate::{LedgerType, ReadableSecret, settings};

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
        assert_eq!(again.general.log, config.general.log);
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
            assert_eq!(again.general.database, config.general.database);
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
        settings! {
            struct OfMine in "ledger.mine." {
                /// Token of the nodes.
                token: String = secret(""),
                /// URL of the nodes.
                url: String = secret(""),
                /// Another token.
                other: String = secret(""),
            }
        }
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
            let mine = [mine.with_settings(&[OfMine::SETTINGS])];
            Config::load_with_ledgers(&mine, Some(&file), std::iter::empty(), flags).unwrap()
        };
        let readable = |config: &Config| -> Vec<String> {
            config.readable_secrets().iter().map(ReadableSecret::name).collect()
        };

        let url = "http://u:hidden@h/x";
        let flag = |setting: &Setting, text: &str| (setting.name.to_owned(), text.to_owned());
        let by_flag = load("", vec![flag(&OfMine::token, "hidden"), flag(&OfMine::url, url)]);
        let OfMine { token, url: read, other } = OfMine::read(&by_flag.settings).unwrap();
        assert_eq!([&token, &read, &other], ["hidden", url, ""]);
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
