//! Frames: what peers put on a session's stream.
//!
//! ```text
//!   length (u32, little endian) │ kind (u8) │ body
//! ```
//!
//! The length counts kind and body and is at most [`FRAME_LEN_MAX`]; a longer one ends the session
//! before anything is read of it. Bodies are postcard. A frame of [`Kind::Messages`] holds as many
//! protocol messages as fit, one after the other: all that goes to the same peer at the same time. Each says whose it
//! is: of those who agree on who is in, or which of the services that run beside each other
//! ([`sigmalock_protocols::parts::beside`]). Which there are is in the terms of the handshake.

use serde::Serialize;

/// The version of everything below. Peers of different versions refuse each other.
pub(crate) const VERSION: u16 = 8;

/// The longest frame, kind and body.
pub(crate) const FRAME_LEN_MAX: usize = 1 << 20;

/// A frame that has grown this long is closed, and another begun.
const FRAME_LEN_FULL: usize = 1 << 18;

/// The bytes before the body.
pub(crate) const HEAD_LEN: usize = 5;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The transport's: who I am and what I want.
    Hello = 1,
    /// The transport's: I know the swarm's secret.
    Proof = 2,
    /// The transport's: no, and why.
    Refusal = 3,
    /// The transport's: I am alive, and hear you.
    Heartbeat = 4,
    /// The transport's: these peers I know.
    Peers = 5,
    /// The transport's: I am leaving.
    Goodbye = 6,
    /// The transport's: another peer with your identity knocks here.
    Twin = 7,
    /// The transport's: what people call me.
    Card = 8,
    /// The transport's: as long as packets get, and otherwise empty.
    Ballast = 9,
    /// The transport's: your ballast has arrived.
    Arrived = 10,
    /// The driver's: protocol messages.
    Messages = 16,
    /// The driver's: a question of one peer's operator to another peer.
    Query = 17,
    /// The driver's: its answer.
    Answer = 18,
}

impl Kind {
    /// The kind with this number, if there is one.
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::Proof,
            3 => Self::Refusal,
            4 => Self::Heartbeat,
            5 => Self::Peers,
            6 => Self::Goodbye,
            7 => Self::Twin,
            8 => Self::Card,
            9 => Self::Ballast,
            10 => Self::Arrived,
            16 => Self::Messages,
            17 => Self::Query,
            18 => Self::Answer,
            _ => return None,
        })
    }
}

/// Frames under construction, back to back, ready for one write.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where the frame of messages that is still open begins.
    open: Option<usize>,
}

impl Frames {
    /// Nothing yet.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), open: None }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a protocol message to the open frame. One that is too long for any frame is left out, and
    /// false returned.
    #[must_use]
    pub(crate) fn push_message(&mut self, message: &impl Serialize) -> bool {
        let begin = match self.open {
            Some(begin) if self.bytes.len() - begin < FRAME_LEN_FULL => begin,
            _ => {
                self.close();
                let begin = self.begin(Kind::Messages);
                self.open = Some(begin);
                begin
            }
        };
        let before = self.bytes.len();
        let fits = self.append(message) && self.bytes.len() - begin - 4 <= FRAME_LEN_MAX;
        if !fits {
            self.bytes.truncate(before);
        }
        fits
    }

    /// Adds a frame with this body. False if it is too long, and then nothing was added.
    #[must_use]
    pub(crate) fn push(&mut self, kind: Kind, body: &impl Serialize) -> bool {
        self.close();
        let begin = self.begin(kind);
        let fits = self.append(body) && self.bytes.len() - begin - 4 <= FRAME_LEN_MAX;
        if fits {
            self.finish(begin);
        } else {
            self.bytes.truncate(begin);
        }
        fits
    }

    /// All frames, closed, for one write.
    #[must_use]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.close();
        core::mem::take(&mut self.bytes)
    }

    fn begin(&mut self, kind: Kind) -> usize {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0, 0, 0, kind as u8]);
        begin
    }

    fn append(&mut self, body: &impl Serialize) -> bool {
        postcard::to_extend(body, Tail(&mut self.bytes)).is_ok()
    }

    fn close(&mut self) {
        if let Some(begin) = self.open.take() {
            if self.bytes.len() == begin + HEAD_LEN {
                self.bytes.truncate(begin);
            } else {
                self.finish(begin);
            }
        }
    }

    fn finish(&mut self, begin: usize) {
        let length = (self.bytes.len() - begin - 4) as u32;
        self.bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// The end of a buffer, to be written to.
struct Tail<'a>(&'a mut Vec<u8>);

impl Extend<u8> for Tail<'_> {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        self.0.extend(bytes);
    }
}

/// One frame with this body, which is no longer than a frame may be.
pub(crate) fn frame(kind: Kind, body: &[u8]) -> Vec<u8> {
    debug_assert!(body.len() < FRAME_LEN_MAX);
    let mut bytes = Vec::with_capacity(HEAD_LEN + body.len());
    bytes.extend_from_slice(&(body.len() as u32 + 1).to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend_from_slice(body);
    bytes
}

/// What is wrong with bytes that are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// Nothing, or more than [`FRAME_LEN_MAX`].
    #[error("a frame of {0} bytes")]
    Length(usize),
    /// No such kind.
    #[error("a frame of kind {0}")]
    Kind(u8),
}

/// A buffer that has grown larger than this is given back when it is empty.
const BUFFER_KEPT_MAX: usize = 64 << 10;

/// Bytes as they arrive, split into frames. It never holds more than twice what has arrived, whatever
/// a head promises.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// What has arrived and was not taken: `begin..end`.
    begin: usize,
    end: usize,
}

impl Splitter {
    /// Where the next bytes may be put; at least `len` of them.
    pub(crate) fn space(&mut self, len: usize) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
            if self.buffer.len() > BUFFER_KEPT_MAX {
                self.buffer = Vec::new();
            }
        } else if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        let wanted = self.end + len.max(self.end);
        if self.buffer.len() < self.end + len {
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put there.
    pub(crate) fn arrived(&mut self, len: usize) {
        self.end = (self.end + len).min(self.buffer.len());
    }

    /// Whether a frame has begun that is not complete.
    pub(crate) fn is_inside_frame(&self) -> bool {
        self.begin < self.end
    }

    /// The next frame, if all of it is there. After an error nothing that follows means anything.
    pub(crate) fn next_frame(&mut self) -> Result<Option<(Kind, &[u8])>, WireError> {
        let rest = &self.buffer[self.begin..self.end];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 || length > FRAME_LEN_MAX {
            return Err(WireError::Length(length));
        }
        let Some(&kind) = rest.first() else { return Ok(None) };
        let kind = Kind::from_byte(kind).ok_or(WireError::Kind(kind))?;
        if rest.len() < length {
            return Ok(None);
        }
        let body = self.begin + HEAD_LEN..self.begin + 4 + length;
        self.begin = body.end;
        Ok(Some((kind, &self.buffer[body])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All frames in `bytes`, which arrive in pieces of `piece`.
    fn split(bytes: &[u8], piece: usize) -> Result<Vec<(Kind, Vec<u8>)>, WireError> {
        let (mut splitter, mut frames) = (Splitter::default(), vec![]);
        for piece in bytes.chunks(piece) {
            splitter.space(piece.len())[..piece.len()].copy_from_slice(piece);
            splitter.arrived(piece.len());
            while let Some((kind, body)) = splitter.next_frame()? {
                frames.push((kind, body.to_vec()));
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_whatever_the_pieces(
            bodies in prop::collection::vec((0..3u8, prop::collection::vec(any::<u8>(), 0..300)), 0..20),
            piece in 1..400usize,
        ) {
            let kinds = [Kind::Heartbeat, Kind::Messages, Kind::Query];
            let wanted: Vec<_> =
                bodies.into_iter().map(|(kind, body)| (kinds[usize::from(kind)], body)).collect();
            let bytes: Vec<u8> =
                wanted.iter().flat_map(|(kind, body)| frame(*kind, body)).collect();
            prop_assert_eq!(split(&bytes, piece).unwrap(), wanted);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error_and_never_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1..50usize,
        ) {
            let _ = split(&bytes, piece);
        }
    }

    #[test]
    fn messages_to_one_peer_share_a_frame_and_other_kinds_have_their_own() {
        let mut frames = Frames::new();
        assert!(frames.push_message(&1u8) && frames.push_message(&2u8));
        assert!(frames.push(Kind::Query, &3u8));
        assert!(frames.push_message(&4u8));
        let found = split(&frames.take(), 7).unwrap();
        let wanted =
            [(Kind::Messages, vec![1, 2]), (Kind::Query, vec![3]), (Kind::Messages, vec![4])];
        assert_eq!(found, wanted);
        assert!(frames.is_empty() && frames.take().is_empty());
    }

    #[test]
    fn a_frame_that_is_full_is_followed_by_another() {
        let mut frames = Frames::new();
        let message = vec![7u8; 100_000];
        for _ in 0..10 {
            assert!(frames.push_message(&message));
        }
        let found = split(&frames.take(), 4_096).unwrap();
        assert!(found.len() > 1 && found.iter().all(|(_, body)| body.len() < FRAME_LEN_MAX));
        let messages: usize = found.iter().map(|(_, body)| body.len() / 100_000).sum();
        assert_eq!(messages, 10);
    }

    #[test]
    fn what_is_too_long_for_a_frame_is_left_out_and_the_rest_stays() {
        let mut frames = Frames::new();
        let long = vec![0u8; FRAME_LEN_MAX];
        assert!(frames.push_message(&1u8));
        assert!(!frames.push_message(&long));
        assert!(!frames.push(Kind::Answer, &long));
        assert!(frames.push_message(&2u8));
        let found = split(&frames.take(), 100).unwrap();
        assert_eq!(found, [(Kind::Messages, vec![1]), (Kind::Messages, vec![2])]);
    }

    #[test]
    fn an_impossible_length_or_kind_is_refused_before_anything_is_read_of_it() {
        let long = (FRAME_LEN_MAX as u32 + 1).to_le_bytes();
        assert_eq!(split(&long, 4), Err(WireError::Length(FRAME_LEN_MAX + 1)));
        assert_eq!(split(&[0, 0, 0, 0], 4), Err(WireError::Length(0)));
        assert_eq!(split(&[1, 0, 0, 0, 99], 5), Err(WireError::Kind(99)));
    }

    #[test]
    fn a_head_that_promises_much_allocates_little() {
        let mut splitter = Splitter::default();
        let head = [&(FRAME_LEN_MAX as u32).to_le_bytes()[..], &[Kind::Messages as u8]].concat();
        splitter.space(64)[..5].copy_from_slice(&head);
        splitter.arrived(5);
        assert_eq!(splitter.next_frame(), Ok(None));
        assert!(splitter.is_inside_frame());
        assert!(splitter.space(64).len() < 1_000 && splitter.buffer.capacity() < 1_000);
    }
}
