//! Which peer a program uses: one that is named, the machine's, the user's own of a swarm; and the user's private one only
//! where that is meant, or nothing says that the machine belongs to a swarm.

use std::io;

use crate::belonging;
use crate::client::{Client, ConnectOptions};
use crate::demand::Demand;
use crate::error::ConnectError;
use crate::place::{self, Address};
use crate::settings::{self, Wish};
use crate::start;

/// The peer that is meant; the user's private one may be started.
pub(crate) async fn peer(
    options: &ConnectOptions, may_start: bool,
) -> Result<Client, ConnectError> {
    let said =
        Wish { api: options.api.clone(), swarm: options.swarm.clone(), private: options.private };
    let Wish { api, swarm, private } = settings::resolve(said)?;
    if private {
        return private_peer(options, may_start).await;
    }
    if let Some(address) = api {
        let demanding = ConnectOptions { swarm, ..options.clone() };
        return demanding.connect(&address).await;
    }
    let demand = swarm.clone().map_or(Demand::NoPrivate, Demand::Swarm);
    if let Some(client) = machines_peer(options, demand.clone()).await? {
        return Ok(client);
    }
    let own = Address::Unix(place::socket()?);
    match options.connect_for(&own, demand).await {
        Err(ConnectError::Unreachable { .. }) => {}
        other => return other,
    }
    if let Some(swarm) = swarm {
        let tried = format!("unix:{} and {own}", place::MACHINE_SOCKET);
        return Err(ConnectError::NoPeerOf { swarm, tried });
    }
    if let Some(sign) = belonging::sign()? {
        return Err(ConnectError::Belongs { sign });
    }
    private_peer(options, may_start).await
}

/// The machine's peer, if it has one. Where that cannot be used, nobody is let in by another.
async fn machines_peer(
    options: &ConnectOptions, demand: Demand,
) -> Result<Option<Client>, ConnectError> {
    let socket = Address::Unix(place::MACHINE_SOCKET.into());
    match std::fs::symlink_metadata(place::MACHINE_SOCKET) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    match options.connect_for(&socket, demand).await {
        Err(ConnectError::Unreachable { address: socket, reason }) => {
            Err(ConnectError::Machine { socket, reason })
        }
        other => other.map(Some),
    }
}

async fn private_peer(options: &ConnectOptions, may_start: bool) -> Result<Client, ConnectError> {
    let address = Address::Unix(place::private_socket()?);
    match options.connect_for(&address, Demand::Private).await {
        Err(ConnectError::Unreachable { .. }) if may_start => start::private_peer(options).await,
        Err(ConnectError::Unreachable { .. }) => {
            Err(ConnectError::NoPeer { tried: address.to_string() })
        }
        other => other,
    }
}
