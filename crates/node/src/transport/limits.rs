//! Every number of the transport, in one place.

use std::time::Duration;

/// How often each side of a session says that it lives.
pub(crate) const HEARTBEAT_EVERY: Duration = Duration::from_millis(500);
/// After so long without a byte a peer counts as gone; a frame that has begun must be complete.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);
/// After so long without a word that it hears us, too. Longer, since that word may queue behind a
/// large transfer.
pub(crate) const UNHEARD_MAX: Duration = Duration::from_secs(10);
/// A tick that comes later than this by CLOCK_BOOTTIME means that this process did not run.
pub(crate) const LATE_MAX: Duration = Duration::from_secs(2);

/// From the first byte of a connection to its end as encrypted connection; from the first byte of a
/// session to both proofs.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// How long the ballast of a new session may take, there and back. Longer than the system needs to find out that it has
/// to send smaller packets, where it is told to look (`net.ipv4.tcp_mtu_probing`).
pub(crate) const WEIGH_MAX: Duration = Duration::from_secs(5);
/// How long opening a stream may take.
pub(crate) const OPEN_MAX: Duration = Duration::from_secs(5);
/// A connection that has no session after so long is closed.
pub(crate) const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(10);
/// A second connection to a peer is kept for so long, in case that the first is dead already.
pub(crate) const SPARE_CONNECTION_MAX: Duration = Duration::from_secs(4);
/// How long a refusal may take to reach the refused.
pub(crate) const REFUSAL_LINGER: Duration = Duration::from_millis(500);
/// How long saying goodbye to everybody may take.
pub(crate) const GOODBYE_MAX: Duration = Duration::from_millis(300);

/// Longer than a packet gets on any network, jumbo frames included.
pub(crate) const BALLAST_LEN: usize = 10_000;
/// The longest frame before both sides have proved that they belong to the swarm.
pub(crate) const HANDSHAKE_FRAME_LEN_MAX: usize = 4_096;
/// So many bytes are read at a time.
pub(crate) const READ_LEN: usize = 8 << 10;
/// So many bytes are written at a time, when more than one thing waits.
pub(crate) const WRITE_LEN: usize = 256 << 10;

/// Addresses of one peer.
pub(crate) const ADDRESSES_MAX: usize = 8;
/// The longest address, in bytes.
pub(crate) const ADDRESS_LEN_MAX: usize = 256;
/// Peers in one frame of peers.
pub(crate) const RECORDS_MAX: usize = 256;
/// Peers that are remembered, with and without a session.
pub(crate) const CONTACTS_MAX: usize = 4_096;
/// Sessions of one peer.
pub(crate) const SESSIONS_MAX: usize = 1_024;
/// Dials under way to peers that are looked for.
pub(crate) const DIALS_MAX: usize = 64;
/// Connections, from outside, in all and before they are encrypted; and with one peer.
pub(crate) const CONNECTIONS_IN_MAX: u32 = 1_024;
/// See above.
pub(crate) const CONNECTIONS_PENDING_MAX: u32 = 128;
/// See above.
pub(crate) const CONNECTIONS_PER_PEER_MAX: u32 = 4;
/// Refusals that are remembered for people.
pub(crate) const REFUSALS_MAX: usize = 16;
/// The longest reason that is taken from another peer, in bytes.
pub(crate) const REASON_LEN_MAX: usize = 400;

/// How soon the other machine must answer a TCP connection. The system says a first word again after a second and then
/// after ever longer pauses; a new attempt does not.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The same for QUIC, whose handshake it covers.
pub(crate) const CONNECT_QUIC_MAX: Duration = Duration::from_secs(2);
/// From the first attempt to get a lost session back to the second; and from one to the next at the longest, for those
/// that belong here: a cut may end at any time. Less than what the heartbeats of a session cost.
pub(crate) const REDIAL_EVERY: (Duration, Duration) =
    (Duration::from_millis(200), Duration::from_secs(1));
/// The longest for those that do not, or no longer.
pub(crate) const STRANGER_EVERY_MAX: Duration = Duration::from_secs(30);
/// So many attempts begin in a second, however many are looked for.
pub(crate) const REDIALS_PER_SECOND_MAX: u32 = 64;
/// The first attempt comes at once, up to this.
pub(crate) const REDIAL_JITTER: Duration = Duration::from_millis(50);
/// For so long a lost peer is dialed that is not known to belong here.
pub(crate) const REDIAL_FOR: Duration = Duration::from_secs(3_600);
/// From one attempt to the next, for the addresses that this peer was told to join.
pub(crate) const JOIN_PAUSE: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(1));
/// The longest of these.
pub(crate) const JOIN_PAUSE_MAX: Duration = JOIN_PAUSE.1;
/// The same for peers that refused us, or that we refused.
pub(crate) const REFUSED_PAUSE: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(60));
/// How often the same complaint is logged.
pub(crate) const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// How often some peer is told of all the others again.
pub(crate) const PEERS_EVERY: Duration = Duration::from_secs(60);
/// How often Kademlia's table is refreshed.
pub(crate) const BOOTSTRAP_EVERY: Duration = Duration::from_secs(300);
/// How long a look-up may take, sessions to what it found included.
pub(crate) const LOOK_UP_MAX: Duration = Duration::from_secs(5);
/// So many of the closest peers get a session.
pub(crate) const LOOK_UP_PEERS: usize = 3;
/// Look-ups at a time; more are answered at once.
pub(crate) const LOOK_UPS_MAX: usize = 256;
/// How often libp2p's own ping runs. It only keeps NATs open; liveness is ours.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);

/// The length of an echoed message.
pub(crate) const ECHO_LEN: usize = 64;
/// Streams of echoes served at a time.
pub(crate) const ECHOES_MAX: usize = 16;
/// Round trips in one measurement.
pub(crate) const ECHO_ROUNDS_MAX: u32 = 1_000_000;
/// The longest measurement, and the longest that a stream of echoes is served.
pub(crate) const ECHO_MAX: Duration = Duration::from_secs(60);
/// Commands that wait.
pub(crate) const COMMANDS_MAX: usize = 256;
/// A connection by way of this peer as a relay lasts so long; then its ends make a new one.
pub(crate) const RELAYED_MAX: Duration = Duration::from_secs(12 * 3_600);
/// And carries so much.
pub(crate) const RELAYED_BYTES_MAX: u64 = 1 << 30;

/// Batches of frames that an injected delay holds up at a time.
pub(crate) const DELAYED_MAX: usize = 65_536;
