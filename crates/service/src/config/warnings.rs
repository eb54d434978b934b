//! Warnings about secrets that other users can read.

use std::{collections::BTreeSet, path::Path};

use log::warn;

use super::{Config, Origin, SETTINGS, layers::GivenValue, secret::redact_secrets};
use crate::private_file::is_open_to_others;

impl Config {
    /// Warns of each file with a secret, and of a database file, that other users can read, and of each
    /// secret that was given as a flag.
    pub fn warn_of_readable_secrets(&self) {
        let mut warned = BTreeSet::new();
        for given in SETTINGS.iter().map(|setting| self.layers.given(setting.name)) {
            let is_secret =
                given.setting.may_hold_secret() && redact_secrets(&given.text) != given.text;
            if let Some(file) = self.file_of_setting(given) {
                warn_of_file(Path::new(file), "the file of a setting", &mut warned);
            } else if is_secret {
                warn_of_origin(given, &mut warned);
            }
        }
        if let Some(file) = self.database.file() {
            warn_of_file(file, "the database file", &mut warned);
        }
    }

    /// The file that the value was read from, if it has a file of its own for its secrets.
    fn file_of_setting(&self, given: &GivenValue) -> Option<&str> {
        let file = given.setting.file_setting().filter(|_| given.setting.may_hold_secret())?;
        Some(self.layers.given(file.name).text.as_str()).filter(|file| !file.is_empty())
    }
}

fn warn_of_origin(given: &GivenValue, warned: &mut BTreeSet<String>) {
    match &given.origin {
        Origin::File { file, .. } => warn_of_file(file, "the configuration file", warned),
        Origin::Flag(flag) => {
            let file = given.setting.file_setting().map(|file| format!("{} or ", file.name));
            warn!(flag:% = format_args!("--{flag}"); "every user of this machine can read the flag in the list \
                of processes; set {}{}", file.unwrap_or_default(), given.setting.variable());
        }
        Origin::Default | Origin::Variable(_) => {}
    }
}

fn warn_of_file(file: &Path, what: &str, warned: &mut BTreeSet<String>) {
    let shown = file.display().to_string();
    if is_open_to_others(file) && warned.insert(shown.clone()) {
        warn!(file = shown.as_str(); "other users can read {what}; restrict it with chmod 600");
    }
}
