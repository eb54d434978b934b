use axum::http::{HeaderMap, header::AUTHORIZATION};

/// What a request has to authenticate with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential<'a> {
    Missing,
    /// One of our tokens.
    Token(&'a str),
    /// A token that a key has signed, as Splinter's clients send it.
    Cylinder(&'a str),
    /// Anything else.
    Unreadable,
}

/// No token is longer.
const LONGEST: usize = 4 * 1024;

impl<'a> Credential<'a> {
    /// Two headers are refused: a proxy may have checked the other one.
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (value, other) = (values.next(), values.next());
        let Some(value) = value else { return Self::Missing };
        if other.is_some() || value.len() > LONGEST {
            return Self::Unreadable;
        }
        value.to_str().ok().and_then(Self::parse).unwrap_or(Self::Unreadable)
    }

    fn parse(value: &'a str) -> Option<Self> {
        let (scheme, token) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let token = token.trim();
        Some(match token.strip_prefix("Cylinder:") {
            Some(token) => Self::Cylinder(token),
            None => Self::Token(token),
        })
    }
}

/// The token that a key has signed, if the request has one. A node takes it, too; other tokens are for this
/// server.
pub(crate) fn cylinder_token(headers: &HeaderMap) -> Option<&str> {
    match Credential::of(headers) {
        Credential::Cylinder(token) => Some(token),
        Credential::Missing | Credential::Token(_) | Credential::Unreadable => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn one_bearer_token_is_read() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            format!("{:?}", Credential::of(&headers))
        };
        assert_eq!(read(&[]), "Missing");
        for (value, expected) in [
            ("Bearer gb_1", "Token(\"gb_1\")"),
            ("bearer  gb_1 ", "Token(\"gb_1\")"),
            ("Bearer Cylinder:a.b.c", "Cylinder(\"a.b.c\")"),
            ("Basic dTpw", "Unreadable"),
            ("gb_1", "Unreadable"),
            ("", "Unreadable"),
            (&format!("Bearer {}", "a".repeat(LONGEST)), "Unreadable"),
        ] {
            assert_eq!(read(&[value]), expected, "{value}");
        }
        assert_eq!(read(&["Bearer gb_1", "Bearer gb_1"]), "Unreadable");
    }
}
