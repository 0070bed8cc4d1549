//! `node`: a peer. `founding` is how its swarm begins, `secret` its key and what tells others of it, `elsewhere` where a
//! private one serves, `voice` what it says while it runs.

mod elsewhere;
mod founding;
mod launch;
mod log;
mod secret;
mod voice;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use nix::unistd::Group;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use sigmalock::place;
use sigmalock_api::server::{Server, ServerConfig, Users};
use sigmalock_core::Span;
use sigmalock_node::{Config, Membership, Node as Peer, PeerName, ProtocolName, Role, StartError};
use sigmalock_protocols::parts::Quorum;
use tokio::time::sleep;

use super::key::KeyFile;
use crate::addresses::{multiaddress, parsed};
use crate::args;
use crate::outcome::{self, Failure, Verdict, after_help};
use crate::process::signals::{Signals, exit_code};
use log::Log;

/// Runs a peer: it takes part in a swarm, and serves the programs of this machine
///
/// Hosts that begin a swarm together are all started alike: --expect says how many they are, --join where
/// they are (a host's own address may be among them), and nothing is granted before all of them have been in. Later
/// hosts only join (--join, or --mdns). One that has been in a swarm before goes on with that. On SIGTERM or SIGINT it
/// leaves the swarm in order, which may take five seconds; a second signal ends it at once. All settings may
/// also be given under `[node]` in the configuration file, and those with an `env` below in the environment.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Node {
    /// What people call this peer, which decides nothing [default: the name of this machine]
    #[arg(long, value_name = "NAME", env = "SIGMALOCK_NODE_NAME", hide_env_values = true)]
    name: Option<PeerName>,
    /// Peers to begin with: multiaddresses, or HOST:PORT
    #[arg(long, value_name = "ADDR", env = "SIGMALOCK_JOIN", value_delimiter = ',')]
    #[arg(hide_env_values = true, value_parser = multiaddress)]
    join: Vec<String>,
    /// So many hosts begin the swarm together, all told the same; where there is one already, join it
    #[arg(long, value_name = "N", env = "SIGMALOCK_EXPECT", hide_env_values = true)]
    #[arg(value_parser = args::host_count, conflicts_with_all = ["found", "client_only"])]
    expect: Option<u16>,
    /// Be the first of a new swarm, alone; with data of an old one, go on with that
    #[arg(long, conflicts_with_all = ["join", "expect", "client_only"])]
    found: bool,
    /// Do not ask whether there is a swarm with this key already, before founding one alone
    #[arg(long)]
    yes: bool,
    /// Where to listen for peers [default: /ip4/0.0.0.0/tcp/7421]
    #[arg(long, value_name = "ADDR", env = "SIGMALOCK_LISTEN", value_delimiter = ',')]
    #[arg(hide_env_values = true, value_parser = multiaddress)]
    listen: Vec<String>,
    /// Where others are told to find this peer, if that is not where it listens (NAT, containers, clouds)
    #[arg(long, value_name = "ADDR", env = "SIGMALOCK_ADVERTISE", value_delimiter = ',')]
    #[arg(hide_env_values = true, value_parser = multiaddress)]
    advertise: Vec<String>,
    /// Where to serve programs by TCP, too: all who reach it may hold any lock [default: none]
    #[arg(long, value_name = "HOST:PORT", value_parser = Api::from_str)]
    api: Option<Api>,
    /// The Unix socket to serve programs at [default: that of your own peer]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Who may use the socket: the members of this group, or `all` [default: the peer's own user]
    #[arg(long, value_name = "GROUP", requires = "socket", value_parser = users)]
    users: Option<Users>,
    /// A group whose members may break locks and forget members, at the socket; its user and root always may
    #[arg(long, value_name = "GROUP", env = "SIGMALOCK_OPERATORS", hide_env_values = true)]
    operators: Option<String>,
    /// Where to keep identity and votes [default: ~/.local/state/sigmalock]
    #[arg(long, value_name = "DIR", env = "SIGMALOCK_DATA", hide_env_values = true)]
    data: Option<PathBuf>,
    /// Keep nothing: after a restart this is another peer, and the former one a dead member
    #[arg(long, conflicts_with = "data")]
    ephemeral: bool,
    /// The secret of the swarm; `sigmalock key new` makes one
    #[arg(long, value_name = "FILE", env = "SIGMALOCK_SWARM_KEY", hide_env_values = true)]
    swarm_key: Option<KeyFile>,
    /// Whether peers vote on who is in (agreed) or go by whom they see (open), the same in the whole swarm
    #[arg(long, value_name = "KIND", default_value = "agreed", env = "SIGMALOCK_MEMBERSHIP")]
    #[arg(hide_env_values = true, value_parser = membership)]
    membership: Membership,
    /// How locks are guarded, the same in the whole swarm; `sigmalock lab protocols` lists what there is
    #[arg(long, value_name = "NAME", default_value = "sigma", env = "SIGMALOCK_PROTOCOL")]
    #[arg(hide_env_values = true, value_parser = lock_protocol)]
    protocol: ProtocolName,
    /// Agreed membership: vote a member out that nobody reached for so long [default: 30s]
    #[arg(long, value_name = "D", env = "SIGMALOCK_DEAD_AFTER")]
    #[arg(hide_env_values = true, value_parser = args::positive_span)]
    dead_after: Option<Span>,
    /// Open membership: replicas that guard each lock, the same in the whole swarm [default: 9]
    #[arg(long, value_name = "N", requires = "quorum", env = "SIGMALOCK_REPLICAS")]
    #[arg(hide_env_values = true, value_parser = args::replica_count)]
    replicas: Option<u16>,
    /// Open membership: votes that hold a lock, the same in the whole swarm [default: 6]
    #[arg(long, value_name = "M", requires = "replicas", env = "SIGMALOCK_QUORUM")]
    #[arg(hide_env_values = true, value_parser = args::replica_count)]
    quorum: Option<u16>,
    /// The longest lease, the same in the whole swarm
    #[arg(long, value_name = "D", default_value = "15s", env = "SIGMALOCK_LEASE_MAX")]
    #[arg(hide_env_values = true, value_parser = args::positive_span)]
    lease_max: Span,
    /// Use the swarm without hosting anything
    #[arg(long)]
    client_only: bool,
    /// Look for peers on the local network
    #[arg(long)]
    mdns: bool,
    /// Reach peers behind NAT by way of relays, and be reached
    #[arg(long)]
    relay: bool,
    /// Be the peer that `run` starts where there is no swarm: nobody can join it, and it is gone when idle
    #[arg(long, conflicts_with_all = ["join", "expect", "found", "listen", "api", "ephemeral", "swarm_key"])]
    #[arg(conflicts_with_all = ["advertise", "client_only", "mdns", "relay", "users", "membership", "protocol"])]
    private: bool,
    /// Run on when this process has ended, which it does when the peer serves
    #[arg(long, hide = true, requires = "private")]
    detach: bool,
    /// Leave no trace that this machine is one of a swarm: for demonstrations, whose swarm ends with them
    #[arg(long)]
    no_trace: bool,
    /// End after so long without a session [default: never; with --private 5m]
    #[arg(long, value_name = "D", value_parser = args::duration)]
    idle_exit: Option<Duration>,
    /// What to log on stderr: off, error, warn, info, debug or trace; how: json, a line per event; or both, warn,json
    #[arg(long, value_name = "LEVEL[,json]", default_value = "warn", env = "SIGMALOCK_LOG")]
    #[arg(hide_env_values = true, value_parser = Log::from_str)]
    log: Log,
    /// The only configuration file [default: ~/.config/sigmalock/config.toml, and /etc/sigmalock/config.toml behind it]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "  \
  sigmalock node --swarm-key my.key --expect 3 --join 192.0.2.7:7421,192.0.2.8:7421,192.0.2.9:7421
  sigmalock node --swarm-key my.key --join 192.0.2.7:7421,192.0.2.8:7421
  sigmalock node --swarm-key my.key --join 192.0.2.7:7421 --name render-7
  sigmalock node --swarm-key my.key --join 192.0.2.7:7421 --advertise 203.0.113.9:7421
  sigmalock node --private";

/// How long a private peer stays when nobody needs it.
const PRIVATE_IDLE: Duration = Duration::from_secs(5 * 60);

/// Where to serve TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Nowhere,
    At(SocketAddr),
}

impl FromStr for Api {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Nowhere);
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        let address: SocketAddr = text
            .parse()
            .map_err(|_| "this should be an IP address and a port, or none".to_owned())?;
        if !address.ip().is_loopback() {
            let port = address.port();
            return Err(format!(
                "other machines reach that, and the API does not ask who they are: serve \
                 127.0.0.1:{port}, to which they may tunnel (ssh -L)"
            ));
        }
        Ok(Self::At(address))
    }
}

fn users(text: &str) -> Result<Users, String> {
    if text == "all" {
        return Ok(Users::All);
    }
    match Group::from_name(text) {
        Ok(Some(group)) => Ok(Users::Group(group.gid.as_raw())),
        Ok(None) => Err("there is no such group".to_owned()),
        Err(error) => Err(format!("this group cannot be looked up: {error}")),
    }
}

/// Those that guard locks are all that programs could ask something of.
fn lock_protocol(text: &str) -> Result<ProtocolName, String> {
    let names = || ProtocolName::locks().map(ProtocolName::as_str).collect::<Vec<_>>().join(", ");
    let found = ProtocolName::locks().find(|protocol| protocol.as_str() == text);
    found.ok_or_else(|| format!("there is no such protocol; there are: {}", names()))
}

fn membership(text: &str) -> Result<Membership, String> {
    match text {
        "open" => Ok(Membership::Open),
        "agreed" => Ok(Membership::Agreed),
        _ => Err("there is no such kind of membership; there are: agreed, open".to_owned()),
    }
}

impl Node {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        if self.detach {
            return launch::launch(&self.socket()?);
        }
        raise_file_limit();
        let config = self.peer_config()?;
        self.ask_before_founding(&config)?;
        self.log.begin();
        let served = super::block_on(self.serve(config));
        served.or_else(|error| match self.log.json {
            true => {
                tracing::error!(target: log::VOICE, "{error:#}");
                Ok(Verdict::Like(outcome::code(&error)))
            }
            false => Err(error),
        })
    }

    async fn serve(&self, config: Config) -> anyhow::Result<Verdict> {
        // A terminal that goes away is no reason for a private peer to go.
        let mut signals = Signals::new(&[Signal::INT, Signal::TERM])?;
        let _ignored = if self.private { Some(Signals::new(&[Signal::HUP])?) } else { None };
        let data = config.data.clone();
        let (mut peer, server) = self.start(config).await?;
        let handle = peer.handle();
        let told = self.announce(&peer, &server, data).await?;
        let idle = self.idle_exit.or(self.private.then_some(PRIVATE_IDLE));
        tokio::select! {
            failure = peer.failed() => {
                tracing::error!(target: log::VOICE, "{failure}");
                return Ok(Verdict::Violated);
            }
            () = voice::tell(&handle, &told) => {}
            _ = signals.next() => {}
            () = idle_for(&server, idle) => voice::line("idle, so this peer leaves"),
        }
        let leave = async {
            server.stop().await;
            peer.leave().await
        };
        tokio::select! {
            left = leave => left?,
            never = voice::tell_leaving() => match never {},
            signal = signals.next() => return Ok(Verdict::Like(exit_code(signal))),
        }
        Ok(Verdict::Holds)
    }

    /// What tells that this machine is one of a swarm is written last before somebody may hear of the peer: who was refused,
    /// by whatever it is, was in no swarm. And it is written before: who may have been in one is known to have been.
    async fn start(&self, config: Config) -> anyhow::Result<(Peer, Server)> {
        let refused = |error| self.refused(error);
        let mut prepared = Peer::prepare(config).await.map_err(refused)?;
        let bound = Server::bind(self.server_config()?)?;
        prepared.open().map_err(refused)?;
        if let (true, Some(data)) = (self.private, &prepared.config().data) {
            elsewhere::note(data, &self.socket()?)?;
        }
        self.leave_a_trace(prepared.config())?;
        let peer = prepared.start().await.map_err(refused)?;
        let server = bound.serve(peer.handle()).await?;
        Ok((peer, server))
    }

    /// Why there is no peer, and what to do.
    fn refused(&self, error: StartError) -> anyhow::Error {
        if error.is_about_settings() {
            return Failure::usage(error.to_string()).into();
        }
        if self.private && error.is_in_use() { self.is_elsewhere() } else { error.into() }
    }

    /// Why there is no private peer here: another process has its data.
    fn is_elsewhere(&self) -> anyhow::Error {
        let says = || Ok(elsewhere::says(&self.data_dir()?, &self.socket()?));
        says().map_or_else(|error| error, |words| Failure::no_peer(words).into())
    }

    fn peer_config(&self) -> anyhow::Result<Config> {
        self.check_kind()?;
        let (n, m) = (self.replicas.unwrap_or(9), self.quorum.unwrap_or(6));
        let quorum = Quorum::new(n, m)
            .map_err(|why| Failure::usage(format!("--replicas {n} --quorum {m}: {why}")))?;
        let default = ["/ip4/0.0.0.0/tcp/7421".to_owned()];
        let listen = match self.listen.as_slice() {
            _ if self.private => &[],
            [] => default.as_slice(),
            listen => listen,
        };
        let listen = parsed("--listen", listen)?;
        let advertise = parsed("--advertise", &self.advertise)?;
        let join = parsed("--join", &self.join)?;
        let beginning = self.beginning()?;
        let data = if self.ephemeral { None } else { Some(self.data_dir()?) };
        let defaults = Config::new(self.swarm_key()?, self.membership);
        Ok(Config {
            name: self.name.clone().or_else(name_of_this_machine),
            listen,
            advertise,
            join,
            protocol: self.protocol,
            beginning,
            dead_after: self.dead_after.unwrap_or(defaults.dead_after),
            data,
            role: if self.client_only { Role::ClientOnly } else { Role::Host },
            quorum,
            lease_max: self.lease_max,
            mdns: self.mdns,
            relay: self.relay,
            ..defaults
        })
    }

    /// Settings of the other kind of membership are a mistake.
    fn check_kind(&self) -> Result<(), Failure> {
        let (protocol, membership) = (self.protocol, self.membership);
        if !protocol.card().memberships.contains(&membership) {
            return Err(Failure::usage(StartError::NotWith(protocol, membership).to_string()));
        }
        match membership {
            Membership::Agreed if self.replicas.is_some() => Err(Failure::usage(
                "--replicas and --quorum are for --membership open: with agreed membership the members \
                 vote, and more than half of the votes hold a lock",
            )),
            Membership::Open if self.dead_after.is_some() => Err(Failure::usage(
                "--dead-after is for --membership agreed: with open membership nobody is voted out",
            )),
            Membership::Open if self.expect.is_some() => Err(Failure::usage(
                "--expect is for --membership agreed: with open membership nobody makes a swarm, it is whom one sees",
            )),
            _ => Ok(()),
        }
    }

    fn data_dir(&self) -> anyhow::Result<PathBuf> {
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        let usual = if self.private { place::private_data_dir() } else { place::data_dir() };
        let homeless = "there is no home directory to keep votes in: say --data DIR or --ephemeral";
        Ok(usual.ok_or_else(|| Failure::usage(homeless))?)
    }

    fn socket(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = &self.socket {
            return Ok(path.clone());
        }
        place::runtime_dir().map_err(|why| Failure::no_peer(why.to_string()))?;
        Ok(if self.private { place::private_socket()? } else { place::socket()? })
    }

    /// The socket, and TCP only where it was asked for.
    fn server_config(&self) -> anyhow::Result<ServerConfig> {
        Ok(ServerConfig {
            unix: Some(self.socket()?),
            users: self.users.unwrap_or_default(),
            operators: self.operators.clone(),
            tcp: match self.api {
                Some(Api::At(address)) => Some(address),
                Some(Api::Nowhere) | None => None,
            },
            remote: false,
        })
    }
}

/// Where nobody gave this machine a name, its peer has none either.
fn name_of_this_machine() -> Option<PeerName> {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    PeerName::tamed(&name).filter(|_| !matches!(&*name, "localhost" | "(none)"))
}

/// Each connection is a file to the system, which lets a process have as many as it asks for, up to a limit of its own.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // What it may not have more of, it has to do with.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Ends when nobody has had a session for so long.
async fn idle_for(server: &Server, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    loop {
        match server.idle_for() {
            Some(idle) if idle >= limit => return,
            Some(idle) => sleep((limit - idle).min(Duration::from_secs(1))).await,
            None => sleep(Duration::from_secs(1).min(limit)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_at_an_address_or_nowhere() {
        assert_eq!("none".parse(), Ok(Api::Nowhere));
        assert!("localhost:7420".parse::<Api>().is_ok() && "[::1]:7420".parse::<Api>().is_ok());
        for text in ["7420", "0.0.0.0:7420", "192.0.2.7:7420", "[::]:7420"] {
            assert!(text.parse::<Api>().is_err(), "{text}");
        }
    }
}
