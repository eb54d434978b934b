//! Which addresses events may be sent to.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use thiserror::Error;

/// Networks to which events may be sent although they are private.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedNetworks(Vec<AllowedNetwork>);

/// An address, or all that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedNetwork {
    address: IpAddr,
    bits: u8,
}

/// A text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("it must be an IP address or a network, such as 127.0.0.1 or 10.0.0.0/8")]
pub struct AllowedNetworkError;

impl AllowedNetworks {
    /// Allows these networks.
    pub fn new(networks: impl IntoIterator<Item = AllowedNetwork>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// Whether events may be sent to an address.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.0.iter().any(|network| network.contains(address))
    }
}

impl FromStr for AllowedNetwork {
    type Err = AllowedNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| AllowedNetworkError)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| AllowedNetworkError)?;
        if bits > most {
            return Err(AllowedNetworkError);
        }
        Ok(Self { address, bits })
    }
}

impl AllowedNetwork {
    fn contains(self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.bits);
                (own.to_bits() ^ other.to_bits()).checked_shr(shift).unwrap_or_default() == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.bits);
                (own.to_bits() ^ other.to_bits()).checked_shr(shift).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

/// Whether an address belongs to a single host on the public network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_reserved = match (a, b, c) {
        // "This network", carrier-grade NAT, protocol assignments, 6to4 relays, benchmarks, and addresses reserved for
        // future use.
        (0 | 240.., ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) => {
            true
        }
        _ => address.is_documentation(),
    };
    !(is_reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Global unicast without documentation and addresses that contain IPv4 addresses (6to4, Teredo).
    match segments {
        [0x2002, ..] | [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_allowed() {
        let none = AllowedNetworks::default();
        for address in ["8.8.8.8", "192.0.1.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8"] {
            assert!(none.allows(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "64:ff9b::7f00:1",
        ] {
            assert!(!none.allows(address.parse().unwrap()), "{address}");
        }
    }

    fn allowed(networks: &[&str]) -> AllowedNetworks {
        AllowedNetworks::new(networks.iter().map(|network| network.parse().unwrap()))
    }

    #[test]
    fn listed_networks_are_allowed() {
        let networks = allowed(&["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);
        for (address, allowed) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.255.0.1", true),
            ("11.0.0.1", true),
            ("192.168.0.1", false),
            ("fd12:3::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(networks.allows(address.parse().unwrap()), allowed, "{address}");
        }
        assert!(allowed(&["0.0.0.0/0"]).allows(Ipv4Addr::LOCALHOST.into()));
        for text in ["", "localhost", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0/8"] {
            assert_eq!(text.parse::<AllowedNetwork>(), Err(AllowedNetworkError), "{text}");
        }
    }
}
