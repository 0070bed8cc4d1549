//! Where others are told to find a peer, and what it is called.

use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A door on another address, as a NAT has one: whoever knocks there is let through to the peer.
async fn door_to(peer: Multiaddr, door: TcpListener) {
    let mut parts = peer.iter();
    let (Some(Protocol::Ip4(ip)), Some(Protocol::Tcp(port))) = (parts.next(), parts.next()) else {
        panic!("{peer}")
    };
    while let Ok((mut outside, _)) = door.accept().await {
        tokio::spawn(async move {
            let mut inside = TcpStream::connect((ip, port)).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
        });
    }
}

#[tokio::test]
async fn a_peer_that_advertises_another_address_is_dialled_there() {
    let door = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = door.local_addr().unwrap().port();
    let at: Multiaddr = format!("/ip4/127.0.0.2/tcp/{port}").parse().unwrap();
    let mut settings = config(vec![]);
    settings.advertise = vec![at.clone()];
    let mut a = Peer::start(&settings).await;
    tokio::spawn(door_to(a.me.addresses[0].clone(), door));
    let mut b = Peer::start(&config(vec![at.clone()])).await;
    assert!(a.until_up(1, ms(2_000)).await && b.until_up(1, ms(2_000)).await);
    // It listens nowhere, so that it is the one that dials.
    let mut c = Peer::start(&Config { listen: vec![], ..config(vec![b.address()]) }).await;
    assert!(c.until_up(2, ms(5_000)).await, "it has heard of the first from the second");
    let (_, found, _) = c.up.iter().find(|(_, info, _)| info.peer == a.me.peer).unwrap();
    assert_eq!(found.reached_at.as_ref(), Some(&at));
    assert_eq!(a.describe().await.advertised, found.addresses);
    assert_eq!(found.addresses, [at], "and of no other address of it");
}

#[tokio::test]
async fn what_is_advertised_is_told_also_to_whoever_reached_the_peer_elsewhere() {
    let at: Multiaddr = "/ip4/127.0.0.2/tcp/7421".parse().unwrap();
    let a = Peer::start(&Config { advertise: vec![at.clone()], ..config(vec![]) }).await;
    let mut b = Peer::start(&config(vec![a.address()])).await;
    assert!(b.until_up(1, ms(2_000)).await);
    let (_, joined, _) = &b.up[0];
    assert_eq!(joined.addresses, [at]);
    let reached_at = joined.reached_at.as_ref().map(ToString::to_string).unwrap();
    assert!(a.address().to_string().starts_with(&reached_at), "{reached_at}");
}

#[tokio::test]
async fn the_first_address_of_a_peer_is_the_one_by_which_it_is_reached() {
    let mut settings = config(vec![]);
    for host in 2..5 {
        settings.listen.push(format!("/ip4/127.0.0.{host}/tcp/0").parse().unwrap());
    }
    let a = Peer::start(&settings).await;
    for address in a.me.addresses.clone() {
        let mut b = Peer::start(&config(vec![address.clone()])).await;
        assert!(b.until_up(1, ms(2_000)).await);
        let (_, info, _) = &b.up[0];
        assert_eq!(info.addresses.len(), 4, "{:?}", info.addresses);
        assert_eq!(info.addresses[0].iter().next(), address.iter().next());
    }
}

#[tokio::test]
async fn what_others_could_not_dial_is_not_advertised() {
    for nowhere in ["/ip4/0.0.0.0/tcp/7421", "/ip6/::/tcp/1", "/ip4/192.0.2.7/tcp/0", "/dns/a"] {
        let mut settings = config(vec![]);
        settings.advertise = vec![nowhere.parse().unwrap()];
        let error = super::super::check(&settings).unwrap_err().to_string();
        assert!(error.contains(nowhere) && error.contains("nowhere"), "{error}");
    }
    let mut settings = config(vec![]);
    settings.advertise = vec!["/ip4/192.0.2.7/tcp/7421".parse().unwrap(); 9];
    let error = super::super::check(&settings).unwrap_err().to_string();
    assert!(error.contains("9 addresses") && error.contains('8'), "{error}");
}

#[tokio::test]
async fn peers_know_each_other_by_name_and_a_new_name_in_the_next_life() {
    let named = |name: &str, join| Config { name: name.parse().ok(), ..config(join) };
    let identity = Identity::ephemeral();
    let mut a = Peer::start(&named("web", vec![])).await;
    for name in ["render-7", "render-8"] {
        let mut b = Peer::start_as(&named(name, vec![a.address()]), &identity).await;
        assert!(a.until_up(1, ms(10_000)).await && b.until_up(1, ms(10_000)).await);
        let called = |peer: &Peer| peer.up[0].1.name.as_ref().map(ToString::to_string);
        assert_eq!((called(&a).as_deref(), called(&b).as_deref()), (Some(name), Some("web")));
        b.commands.send(Command::Leave).await.unwrap();
        assert!(a.until(ms(5_000), |a| a.up.is_empty()).await);
    }
}
