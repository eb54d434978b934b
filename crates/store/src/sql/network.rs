//! Settings that make a broken network connection end on both sides.

use std::time::Duration;

/// Adds limits for a server that does not answer to the URL for libpq, except those that the URL sets itself.
///
/// `limit` is how long all packets may be lost before the connection is given up. Connecting may take as long, but at
/// most [`CONNECT_LIMIT`].
pub(super) fn with_network_limits(url: &str, limit: Duration) -> String {
    let KeepAlive { idle, interval, count } = KeepAlive::within(limit);
    let connect = limit.min(CONNECT_LIMIT).as_secs().max(2);
    let parameters = [
        ("connect_timeout", u128::from(connect)),
        ("keepalives", 1),
        ("keepalives_idle", idle.into()),
        ("keepalives_interval", interval.into()),
        ("keepalives_count", count.into()),
        ("tcp_user_timeout", limit.as_millis().max(1)),
    ];
    let start = query_start(url);
    let given = start.map_or("", |start| &url[start + 1..]);
    let names: Vec<&str> =
        given.split('&').filter_map(|parameter| parameter.split('=').next()).collect();
    let mut text = url.to_owned();
    let mut separator = match start {
        None => "?",
        Some(_) if given.is_empty() => "",
        Some(_) => "&",
    };
    for (name, value) in parameters {
        if !names.contains(&name) {
            text.push_str(&format!("{separator}{name}={value}"));
            separator = "&";
        }
    }
    text
}

/// The session settings by which the server gives up a client that does not answer.
pub(super) fn server_settings(limit: Duration) -> String {
    let KeepAlive { idle, interval, count } = KeepAlive::within(limit);
    let limit = limit.as_millis().clamp(1, 1 << 30);
    format!(
        "set tcp_keepalives_idle = {idle}; set tcp_keepalives_interval = {interval};
         set tcp_keepalives_count = {count}; set tcp_user_timeout = {limit}"
    )
}

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// When a connection without traffic is checked, in seconds.
struct KeepAlive {
    idle: u64,
    interval: u64,
    count: u64,
}

impl KeepAlive {
    fn within(limit: Duration) -> Self {
        let quarter = (limit.as_secs() / 4).clamp(1, 3_600);
        Self { idle: quarter * 2, interval: quarter, count: 2 }
    }
}

/// Where the parameters of a URL begin. libpq allows `?` in the user and the password.
fn query_start(url: &str) -> Option<usize> {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let login_end = url[authority..].find(['@', '/']);
    let host = match login_end {
        Some(at) if url[authority + at..].starts_with('@') => authority + at + 1,
        _ => authority,
    };
    url[host..].find('?').map(|at| host + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(16);
    const ALL: &str = "connect_timeout=10&keepalives=1&keepalives_idle=8&keepalives_interval=4&\
                       keepalives_count=2&tcp_user_timeout=16000";

    #[test]
    fn limits_are_added_to_the_parameters() {
        for (url, expected) in [
            ("postgres://h/d", format!("postgres://h/d?{ALL}")),
            ("postgres://h/d?", format!("postgres://h/d?{ALL}")),
            ("postgres://h/d?user=u", format!("postgres://h/d?user=u&{ALL}")),
            ("postgres://u:p?w@h/d", format!("postgres://u:p?w@h/d?{ALL}")),
            ("postgres:///d?host=/tmp", format!("postgres:///d?host=/tmp&{ALL}")),
        ] {
            assert_eq!(with_network_limits(url, LIMIT), expected);
        }
    }

    #[test]
    fn limits_of_the_url_stay() {
        let url = "postgres://h/d?tcp_user_timeout=5&connect_timeout=3";
        let text = with_network_limits(url, LIMIT);
        assert!(text.starts_with(url), "{text}");
        assert_eq!(text.matches("tcp_user_timeout").count(), 1, "{text}");
        assert_eq!(text.matches("connect_timeout").count(), 1, "{text}");
        assert!(text.ends_with("&keepalives_count=2"), "{text}");
    }

    #[test]
    fn shortest_limits_are_possible() {
        let text = with_network_limits("postgres://h/d", Duration::from_millis(1));
        assert!(text.contains("connect_timeout=2&"), "{text}");
        assert!(text.contains("keepalives_idle=2&keepalives_interval=1&"), "{text}");
        assert!(text.ends_with("tcp_user_timeout=1"), "{text}");
    }
}
