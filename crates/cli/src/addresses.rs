//! Addresses of peers, as people write them and as libp2p does.

use std::net::SocketAddr;
use std::str::FromStr;

use crate::outcome::Failure;

/// A multiaddress, or `HOST:PORT` put as one.
pub(crate) fn multiaddress(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        return Ok(text.to_owned());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        let kind = if address.is_ipv4() { "ip4" } else { "ip6" };
        return Ok(format!("/{kind}/{}/tcp/{}", address.ip(), address.port()));
    }
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && !host.contains([':', '/']) && port.parse::<u16>().is_ok() =>
        {
            Ok(format!("/dns/{host}/tcp/{port}"))
        }
        _ => {
            Err("an address is HOST:PORT, or a multiaddress such as /ip4/192.0.2.7/tcp/7421"
                .to_owned())
        }
    }
}

/// The other way round, where that is shorter.
pub(crate) fn host_and_port(address: &str) -> String {
    match address.split('/').collect::<Vec<_>>().as_slice() {
        ["", "ip6", host, "tcp", port] => format!("[{host}]:{port}"),
        ["", "ip4" | "dns" | "dns4" | "dns6", host, "tcp", port] => format!("{host}:{port}"),
        _ => address.to_owned(),
    }
}

/// Texts as the addresses that the peer wants.
pub(crate) fn parsed<T: FromStr>(flag: &str, texts: &[String]) -> Result<Vec<T>, Failure> {
    let address = |text: &String| {
        let what = "this is no multiaddress, such as /ip4/192.0.2.7/tcp/7421";
        text.parse().map_err(|_| Failure::usage(format!("{flag} {text}: {what}")))
    };
    texts.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_become_multiaddresses() {
        for (given, meant) in [
            ("192.0.2.7:7421", "/ip4/192.0.2.7/tcp/7421"),
            ("[2001:db8::1]:7421", "/ip6/2001:db8::1/tcp/7421"),
            ("peer.example:7421", "/dns/peer.example/tcp/7421"),
            ("/ip4/1.2.3.4/udp/1/quic-v1", "/ip4/1.2.3.4/udp/1/quic-v1"),
        ] {
            assert_eq!(multiaddress(given).as_deref(), Ok(meant));
        }
        for bad in ["", "7421", "host", "host:", ":7421", "host:99999", "2001:db8::1:x"] {
            assert!(multiaddress(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn multiaddresses_are_shown_as_they_may_be_written() {
        for (shown, meant) in [
            ("192.0.2.7:7421", "/ip4/192.0.2.7/tcp/7421"),
            ("[2001:db8::1]:7421", "/ip6/2001:db8::1/tcp/7421"),
            ("peer.example:7421", "/dns/peer.example/tcp/7421"),
        ] {
            assert_eq!(host_and_port(meant), shown);
            assert_eq!(multiaddress(shown).as_deref(), Ok(meant));
        }
        let quic = "/ip4/1.2.3.4/udp/1/quic-v1";
        assert_eq!(host_and_port(quic), quic);
    }
}
