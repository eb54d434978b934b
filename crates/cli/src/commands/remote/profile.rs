use std::{
    collections::BTreeMap,
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::commands::{failure::Failure, variables};

/// The profile that is used if no other one is named.
const DEFAULT: &str = "default";

/// A server and its token, under a name: a section of the file of profiles.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) url: Option<String>,
    /// Relative to the folder of the file of profiles.
    pub(super) token_file: Option<PathBuf>,
}

impl Profile {
    /// The profile that a flag or the environment names. Without one, `default` if it exists, but not if a flag or a
    /// variable names the server, because the token is not for that server.
    pub(super) fn of(named: Option<String>, names_server: bool) -> Result<Self, Failure> {
        let named = named.or_else(|| env::var(variables::PROFILE).ok());
        match (named, file()) {
            (Some(name), Some(file)) => read(&file, &name)?.ok_or_else(|| {
                let file = file.display();
                Failure::configuration(format!("there is no section [{name}] in {file}; add it"))
            }),
            (Some(name), None) => Err(Failure::configuration(format!(
                "the profile {name} cannot be read: neither XDG_CONFIG_HOME nor HOME is set"
            ))),
            (None, Some(file)) if !names_server => Ok(read(&file, DEFAULT)?.unwrap_or_default()),
            (None, _) => Ok(Self::default()),
        }
    }
}

/// The file of profiles, in the user's folder for configuration.
fn file() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(folder.join("grid-batch").join("profiles.toml"))
}

/// `None`: there is no such section, or no file.
fn read(file: &Path, name: &str) -> Result<Option<Profile>, Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message =
                format!("the file of profiles {} cannot be read: {error}", file.display());
            return Err(Failure::configuration(message));
        }
    };
    let parsed: Result<BTreeMap<String, Profile>, _> = toml::from_str(&text);
    let mut profiles = parsed.map_err(|error| {
        let reason = error.message();
        Failure::configuration(format!("the file of profiles {}: {reason}", file.display()))
    })?;
    let Some(mut profile) = profiles.remove(name) else { return Ok(None) };
    let folder = file.parent().unwrap_or(Path::new(""));
    profile.token_file = profile.token_file.map(|token| folder.join(token));
    Ok(Some(profile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_a_section_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("profiles.toml");
        assert_eq!(read(&file, DEFAULT).unwrap(), None);
        let text = "[default]\nurl = \"http://a\"\n[b]\ntoken_file = \"b.token\"\n";
        fs::write(&file, text).unwrap();
        let default = read(&file, DEFAULT).unwrap().unwrap();
        assert_eq!(default, Profile { url: Some("http://a".to_owned()), token_file: None });
        let other = read(&file, "b").unwrap().unwrap();
        assert_eq!(other.token_file, Some(folder.path().join("b.token")));
        assert_eq!(read(&file, "c").unwrap(), None);
    }

    #[test]
    fn mistakes_in_the_file_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("profiles.toml");
        fs::write(&file, "[default]\nulr = \"http://a\"\n").unwrap();
        let message = read(&file, DEFAULT).unwrap_err().to_string();
        assert!(message.contains("ulr") && message.contains("profiles.toml"), "{message}");
    }
}
