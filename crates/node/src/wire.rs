//! Frames: what peers put on a session's stream.
//!
//! ```text
//!   length (u32, little endian) │ kind (u8) │ body
//! ```
//!
//! The length counts kind and body and is at most [`FRAME_LEN_MAX`]; a longer one ends the session
//! before anything is read of it. Bodies are postcard. A frame of [`Kind::Messages`] holds as many
//! protocol messages as fit, one after the other: all that goes to the same peer at the same time.

use serde::Serialize;

/// The version of everything below. Peers of different versions refuse each other.
pub const VERSION: u16 = 1;

/// The longest frame, kind and body.
pub const FRAME_LEN_MAX: usize = 1 << 20;

/// A frame that has grown this long is closed, and another begun.
const FRAME_LEN_FULL: usize = 1 << 18;

/// The bytes before the body.
pub const HEAD_LEN: usize = 5;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
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
    /// The driver's: protocol messages.
    Messages = 16,
    /// The driver's: a question of one peer's operator to another peer.
    Query = 17,
    /// The driver's: its answer.
    Answer = 18,
}

impl Kind {
    /// The kind with this number, if there is one.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::Proof,
            3 => Self::Refusal,
            4 => Self::Heartbeat,
            5 => Self::Peers,
            6 => Self::Goodbye,
            16 => Self::Messages,
            17 => Self::Query,
            18 => Self::Answer,
            _ => return None,
        })
    }
}

/// Frames under construction, back to back, ready for one write.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the frame of messages that is still open begins.
    open: Option<usize>,
}

impl Frames {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), open: None }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a protocol message to the open frame. One that is too long for any frame is left out, and
    /// false returned.
    #[must_use]
    pub fn push_message(&mut self, message: &impl Serialize) -> bool {
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
    pub fn push(&mut self, kind: Kind, body: &impl Serialize) -> bool {
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
    pub fn take(&mut self) -> Vec<u8> {
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
