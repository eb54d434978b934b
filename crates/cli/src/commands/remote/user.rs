//! Who runs the command, as the log of what operators did shows it.

use std::{fs, os::unix::fs::MetadataExt};

/// The name of the user that runs this process, or the number of a user without a name.
pub(super) fn user_name() -> String {
    let Ok(process) = fs::metadata("/proc/self") else { return "unknown".to_owned() };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(process.uid(), &users).unwrap_or_else(|| format!("uid {}", process.uid()))
}

fn name_of(uid: u32, users: &str) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n";
        assert_eq!(name_of(1000, users).as_deref(), Some("alice"));
        assert_eq!(name_of(7, users), None);
    }
}
