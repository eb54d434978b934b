//! Opens connections: resolves the host, connects, and starts TLS.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures_util::future::{Either, select};
use tokio::{
    net::{TcpStream, lookup_host},
    pin,
    sync::Notify,
    time::timeout,
};

use crate::{HttpError, stream::MaybeTlsStream, tls::start_tls, url::Url};

/// Which addresses are connected to; by default all.
#[derive(Clone, Default)]
pub(crate) struct AllowedAddresses(Option<Arc<AddressRule>>);

type AddressRule = dyn Fn(IpAddr) -> bool + Send + Sync;

impl AllowedAddresses {
    pub(crate) fn by(rule: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rule)))
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.0.as_ref().is_none_or(|rule| rule(address))
    }
}

/// How long the addresses of one IP version are tried before those of the other one.
const FALLBACK_DELAY: Duration = Duration::from_millis(300);

/// Connects to the host of the URL, with TLS if its scheme says so. If it has several addresses, each of
/// them gets an equal part of the limit, and the last one as long as the caller waits.
pub(crate) async fn connect(
    url: &Url,
    limit: Duration,
    allowed: &AllowedAddresses,
) -> Result<MaybeTlsStream, HttpError> {
    let not_sent = |error: io::Error| HttpError::NotSent(error.to_string());
    let addresses = resolve(url, allowed).await.map_err(not_sent)?;
    let stream = connect_to_one(&addresses, limit).await.map_err(not_sent)?;
    stream.set_nodelay(true).map_err(not_sent)?;
    if url.is_encrypted() {
        let stream = Box::pin(start_tls(url.host_name(), stream)).await?;
        return Ok(MaybeTlsStream::Tls(Box::new(stream)));
    }
    Ok(MaybeTlsStream::Plain(stream))
}

async fn resolve(url: &Url, allowed: &AllowedAddresses) -> io::Result<Vec<SocketAddr>> {
    let addresses = lookup_host((url.host_name(), url.port_or_default())).await;
    let addresses = addresses.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot resolve the name of the host: {error}"))
    })?;
    let allowed: Vec<SocketAddr> = addresses.filter(|it| allowed.allows(it.ip())).collect();
    if allowed.is_empty() {
        let refused = "no address of the host may be connected to";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused));
    }
    Ok(allowed)
}

/// Connects to the first address that answers. A network may drop the packets of one version of IP, so the
/// other version is tried after a delay.
async fn connect_to_one(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let limit = limit / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .iter()
        .partition(|address| Some(address.is_ipv4()) == addresses.first().map(|it| it.is_ipv4()));
    let of_first = connect_in_order(&first, limit);
    if second.is_empty() {
        return of_first.await;
    }
    with_fallback(of_first, connect_in_order(&second, limit)).await
}

/// The result of the future that succeeds first. The second one starts after a delay, or once the first one
/// has failed.
async fn with_fallback<T>(
    first: impl Future<Output = io::Result<T>>,
    second: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let first_failed = Notify::new();
    let second = async {
        let _ = timeout(FALLBACK_DELAY, first_failed.notified()).await;
        second.await
    };
    pin!(first, second);
    match select(first, second).await {
        Either::Left((Ok(value), _)) | Either::Right((Ok(value), _)) => Ok(value),
        Either::Left((Err(_), second)) => {
            first_failed.notify_one();
            second.await
        }
        Either::Right((Err(_), first)) => first.await,
    }
}

async fn connect_in_order(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for (position, address) in addresses.iter().enumerate() {
        let is_last = position + 1 == addresses.len();
        let limit = if is_last { Duration::MAX } else { limit };
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => {
                let message = format!("connecting took longer than {limit:?}");
                failure = io::Error::new(io::ErrorKind::TimedOut, message);
            }
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use tokio::{
        net::TcpListener,
        time::{Instant, sleep},
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn address_that_refuses_is_followed_by_the_next_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let refusing = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let other_version: SocketAddr = format!("[::1]:{}", refusing.port()).parse().unwrap();
        for addresses in [vec![refusing, open], vec![other_version, open], vec![open, refusing]] {
            let stream = connect_to_one(&addresses, LIMIT).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), open);
        }
        connect_to_one(&[refusing, other_version], LIMIT).await.unwrap_err();
        connect_to_one(&[], LIMIT).await.unwrap_err();
    }

    /// The second version connects 500 ms after its start, so at 800 ms if the first one fails late.
    #[tokio::test(start_paused = true)]
    async fn second_version_goes_on_when_the_first_one_fails() {
        for (failure, expected) in [(0, 500), (100, 600), (400, 800), (700, 800)] {
            let began = Instant::now();
            let first = async {
                sleep(Duration::from_millis(failure)).await;
                Err(io::Error::other("refused"))
            };
            let second = async {
                sleep(Duration::from_millis(500)).await;
                Ok(())
            };
            with_fallback(first, second).await.unwrap();
            let elapsed = began.elapsed().as_millis();
            assert!((expected..=expected + 5).contains(&elapsed), "{failure} ms: {elapsed} ms");
        }
    }
}
