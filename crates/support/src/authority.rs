use std::{error::Error, fmt};

/// The part of a URL between `://` and the path: `USER:PASSWORD@HOST:PORT`.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The hosts without their ports: one, or several with commas between them.
    pub hosts: Vec<&'a str>,
    /// What follows: the path, the query and the fragment.
    pub rest: &'a str,
}

/// Why the authority of a URL cannot be read. Messages contain no part of the URL, because it may be a part of a
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorityError {
    /// A character of the user name or password is not escaped.
    NotEscaped,
    /// The port is not a number or out of range.
    Port,
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotEscaped => {
                "a user name, a password or a parameter has a character that must be escaped: write @ as \
                 %40, / as %2F, ? as %3F, # as %23, % as %25, and a space as %20"
            }
            Self::Port => {
                "the port must be a number from 1 to 65535; in a user name or a password write @ as %40, \
                 / as %2F, ? as %3F and # as %23"
            }
        })
    }
}

impl Error for AuthorityError {}

impl<'a> Authority<'a> {
    /// Reads what follows the `://` of a URL.
    ///
    /// Each `@`, `/`, `?`, `#` and `%` of a user name or a password must be escaped. Programs disagree about the
    /// meaning of unescaped ones, and a program that takes a part of a password for the host would print it.
    ///
    /// ```
    /// use grid_batch_support::{Authority, AuthorityError};
    ///
    /// let authority = Authority::parse("user:p%40ss@node:8008/path")?;
    /// assert_eq!((authority.hosts, authority.rest), (vec!["node"], "/path"));
    /// assert!(matches!(Authority::parse("user:p@ss@node"), Err(AuthorityError::NotEscaped)));
    /// # Ok::<(), AuthorityError>(())
    /// ```
    pub fn parse(after_scheme: &'a str) -> Result<Self, AuthorityError> {
        let end = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
        let (authority, rest) = after_scheme.split_at(end);
        if rest.contains('@') || !is_escaped(after_scheme) {
            return Err(AuthorityError::NotEscaped);
        }
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        if user.contains('@') {
            return Err(AuthorityError::NotEscaped);
        }
        let hosts: Option<Vec<&str>> = hosts.split(',').map(without_port).collect();
        Ok(Self { hosts: hosts.ok_or(AuthorityError::Port)?, rest })
    }
}

/// Whether each percent sign begins an escape, and no character is unescaped that must not occur in a URL.
fn is_escaped(text: &str) -> bool {
    let is_hex = |digit: Option<&u8>| digit.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let mut escapes = escapes.map(|(at, _)| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)));
    escapes.all(|is_valid| is_valid)
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The host; `None` if its port is not a number of at least 1.
fn without_port(host: &str) -> Option<&str> {
    let address_end =
        host.strip_prefix('[').map_or(0, |rest| rest.find(']').map_or(0, |at| at + 2));
    let (address, after) = host.split_at(address_end);
    let (name, port) = match after.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (after, None),
    };
    let is_number = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let is_port = |port: &str| is_number(port) && port.parse::<u16>().is_ok_and(|port| port > 0);
    port.is_none_or(is_port).then_some(if address.is_empty() { name } else { address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_without_user_and_port() {
        for (text, hosts, rest) in [
            ("h", vec!["h"], ""),
            ("u:p@h:1/d?x=y", vec!["h"], "/d?x=y"),
            ("u:p%40@h1:1,h2:65535/d", vec!["h1", "h2"], "/d"),
            ("[::1]:8008", vec!["[::1]"], ""),
            ("u:p:q@[::1]", vec!["[::1]"], ""),
            ("/d?host=%2Ftmp", vec![""], "/d?host=%2Ftmp"),
        ] {
            let authority =
                Authority::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((authority.hosts, authority.rest), (hosts, rest), "{text}");
        }
    }

    #[test]
    fn ambiguous_characters_are_refused() {
        for text in
            ["u:a@b@h", "u:a/b@h", "u:a?b@h", "u:a#b@h", "u:a%b@h", "u:a%4@h", "u:a b@h", "h/%"]
        {
            assert!(matches!(Authority::parse(text), Err(AuthorityError::NotEscaped)), "{text}");
        }
    }

    #[test]
    fn ports_are_numbers_from_1_to_65535() {
        for text in
            ["h:", "h:0", "h:65536", "h:+1", "h:x", "u:secret/d", "[::1]:x", "a:b:1", "h1:1,h2:x"]
        {
            assert!(matches!(Authority::parse(text), Err(AuthorityError::Port)), "{text}");
        }
    }
}
