//! How connections are opened and kept.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use grid_batch_support::lock;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect, retry,
};
use rustls::ClientConfig;
use tokio::{
    net::lookup_host,
    runtime::{Handle, Id},
};

use crate::{HttpError, HttpOptions, tls::TlsParts};

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

/// The connections of a client.
///
/// The tasks of a connection run on the runtime that opened it, so each runtime has connections of its own.
pub(crate) struct Connections {
    options: HttpOptions,
    tls: TlsParts,
    /// The proxies of the environment.
    proxies: Matcher,
    allowed: AllowedAddresses,
    opened: Mutex<Vec<Opened>>,
}

struct Opened {
    runtime: Id,
    by_proxy: bool,
    /// Most programs open no connection with TLS, so that the certificates of the system are not read.
    with_system: bool,
    client: Client,
}

impl Connections {
    /// How many clients there are for runtimes, proxies and TLS. The connections of older ones are closed once they are
    /// not in use.
    const MOST: usize = 16;

    pub(crate) fn new(options: &HttpOptions, allowed: AllowedAddresses) -> Result<Self, HttpError> {
        Ok(Self {
            options: options.clone(),
            tls: TlsParts::read(&options.tls)?,
            proxies: Matcher::from_env(),
            allowed,
            opened: Mutex::default(),
        })
    }

    /// The client for requests to this URL. The first with TLS reads the certificates of the system.
    pub(crate) async fn client(&self, url: &Url) -> Result<Client, HttpError> {
        let address = address_of(url);
        if address.is_some_and(|address| !self.allowed.allows(address)) {
            return Err(HttpError::NotSent(NOT_ALLOWED.to_owned()));
        }
        let is_local = match address {
            Some(address) => address.to_canonical().is_loopback(),
            None => url.host_str() == Some("localhost"),
        };
        let proxy = if is_local { None } else { self.proxy(url) };
        let by_proxy = proxy.is_some();
        let is_encrypted = |proxy: Intercept| proxy.uri().scheme_str() == Some("https");
        let with_system = url.scheme() == "https" || proxy.is_some_and(is_encrypted);
        let runtime = Handle::current().id();
        let is_wanted = |it: &&Opened| {
            it.runtime == runtime && it.by_proxy == by_proxy && it.with_system == with_system
        };
        if let Some(known) = lock(&self.opened).iter().find(is_wanted) {
            return Ok(known.client.clone());
        }
        let client = self.new_client(by_proxy, self.tls.config(with_system).await?)?;
        let mut opened = lock(&self.opened);
        // Another request may have made it meanwhile.
        if let Some(known) = opened.iter().find(is_wanted) {
            return Ok(known.client.clone());
        }
        if opened.len() == Self::MOST {
            opened.remove(0);
        }
        opened.push(Opened { runtime, by_proxy, with_system, client: client.clone() });
        Ok(client)
    }

    fn proxy(&self, url: &Url) -> Option<Intercept> {
        self.proxies.intercept(&url.as_str().parse().ok()?)
    }

    fn new_client(&self, by_proxy: bool, tls: ClientConfig) -> Result<Client, HttpError> {
        let options = &self.options;
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .default_headers(options.headers.0.clone())
            .connect_timeout(options.longest_connecting())
            .pool_idle_timeout(options.pool_idle_timeout)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false);
        // A proxy resolves names itself, and its own name is not that of a URL.
        let builder = if by_proxy {
            builder
        } else {
            builder.no_proxy().dns_resolver(Arc::new(Resolver(self.allowed.clone())))
        };
        builder.build().map_err(|error| HttpError::Client(HttpError::reason(&error)))
    }
}

/// The address that is the host of the URL.
fn address_of(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

const NOT_ALLOWED: &str = "no address of the host may be connected to";

/// Resolves names to the addresses that are allowed.
struct Resolver(AllowedAddresses);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0.clone();
        Box::pin(async move {
            let addresses = lookup_host((name.as_str(), 0)).await;
            let addresses = addresses.map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot resolve the name of the host: {error}"),
                )
            })?;
            let addresses: Vec<SocketAddr> =
                addresses.filter(|address| allowed.allows(address.ip())).collect();
            if addresses.is_empty() {
                return Err(NOT_ALLOWED.into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
