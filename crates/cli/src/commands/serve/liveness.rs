//! Whether the HTTP interface of this process answers.

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    time::Duration,
};

use grid_batch_service::ListenAddress;

const REQUEST: &[u8] = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Asks `/health/live` at an address. With TLS, only a connection is made.
pub(super) fn answers(address: &ListenAddress, limit: Duration) -> bool {
    match address {
        ListenAddress::Tcp(address) => connect(*address, limit).is_some_and(asks),
        ListenAddress::Tls(address) => connect(*address, limit).is_some(),
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path).ok().filter(|stream| {
                stream.set_read_timeout(Some(limit)).is_ok()
                    && stream.set_write_timeout(Some(limit)).is_ok()
            });
            stream.is_some_and(asks)
        }
    }
}

fn connect(address: SocketAddr, limit: Duration) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&reachable(address), limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    stream.set_write_timeout(Some(limit)).ok()?;
    Some(stream)
}

/// An address for all interfaces is reached by the loopback one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn asks(mut stream: impl Read + Write) -> bool {
    const ANSWER: &[u8] = b"HTTP/1.1 200";
    let mut answer = [0; ANSWER.len()];
    let read = stream.write_all(REQUEST).and_then(|()| stream.read_exact(&mut answer));
    read.is_ok() && answer == ANSWER
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    #[test]
    fn only_an_answer_in_time_counts() {
        let limit = Duration::from_millis(200);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(!answers(&ListenAddress::Tcp(address), limit), "nothing answers");
        let server = thread::spawn(move || {
            drop(listener.accept().unwrap());
            let (mut peer, _) = listener.accept().unwrap();
            let mut request = [0; REQUEST.len()];
            peer.read_exact(&mut request).unwrap();
            peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        });
        assert!(answers(&ListenAddress::Tcp(address), Duration::from_secs(10)));
        server.join().unwrap();
        assert!(!answers(&ListenAddress::Tcp(address), limit), "the server is gone");
    }

    #[test]
    fn all_interfaces_are_reached_by_loopback() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()), "127.0.0.1:80".parse().unwrap());
        assert_eq!(reachable("[::]:80".parse().unwrap()), "[::1]:80".parse().unwrap());
    }
}
