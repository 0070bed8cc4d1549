//! What other languages call this peer.
//!
//! Every request says in `:authority` whom it is for. On a Unix socket the C core of gRPC (Python, C++, Ruby, PHP) says the
//! path there, percent-encoded, and the HTTP library here takes that for the name of a host, in which no `%` may be, and
//! resets the stream. Nothing here looks at it, so it is made harmless as it comes in, in place: the C core writes it as
//! it is, neither compressed nor as an index, and a `-` is as long as a `%`.

/// How many bytes an HTTP/2 client says before its first frame.
const PREFACE_LEN: usize = 24;
/// What comes before the payload of a frame: its length, kind, flags and stream.
const HEAD_LEN: usize = 9;
/// The kinds of frames that carry headers.
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// The header's name as the C core writes it, with its length before it.
const NAME: &[u8] = b"\x0a:authority";
/// A length that begins so goes on in the next byte.
const LENGTH_PREFIX_MAX: u8 = 0x7f;

/// Follows the frames of a connection, however they are cut into reads.
#[derive(Debug)]
pub(super) struct Authority {
    at: At,
    text: Text,
}

/// Where in the frames.
#[derive(Debug, Clone, Copy)]
enum At {
    /// So many bytes are no headers.
    Other(usize),
    /// So much of a head is here.
    Head([u8; HEAD_LEN], usize),
    /// So many bytes of headers are left.
    Headers(usize),
}

/// Where in the headers.
#[derive(Debug, Clone, Copy)]
enum Text {
    /// So much of the name has been seen.
    Name(usize),
    /// The length of the value comes next.
    Length,
    /// The rest of that length comes next.
    LongLength,
    /// So much of the value is left.
    Value(usize),
}

impl Authority {
    pub(super) fn new() -> Self {
        Self { at: At::Other(PREFACE_LEN), text: Text::Name(0) }
    }

    /// Mends what has just been read.
    pub(super) fn mend(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let len = match self.at {
                At::Other(left) | At::Headers(left) => left.min(bytes.len()),
                At::Head(_, have) => (HEAD_LEN - have).min(bytes.len()),
            };
            let (now, rest) = bytes.split_at_mut(len);
            bytes = rest;
            self.at = match self.at {
                At::Other(left) if left > len => At::Other(left - len),
                At::Headers(left) if left > len => {
                    now.iter_mut().for_each(|byte| self.read(byte));
                    At::Headers(left - len)
                }
                At::Headers(_) => {
                    now.iter_mut().for_each(|byte| self.read(byte));
                    At::Head([0; HEAD_LEN], 0)
                }
                At::Other(_) => At::Head([0; HEAD_LEN], 0),
                At::Head(mut head, have) => {
                    head[have..have + len].copy_from_slice(now);
                    Self::after_head(head, have + len)
                }
            };
        }
    }

    fn after_head(head: [u8; HEAD_LEN], have: usize) -> At {
        if have < HEAD_LEN {
            return At::Head(head, have);
        }
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        match head[3] {
            HEADERS | CONTINUATION => At::Headers(len),
            _ => At::Other(len),
        }
    }

    fn read(&mut self, byte: &mut u8) {
        self.text = match self.text {
            Text::Name(seen) if *byte == NAME[seen] && seen + 1 == NAME.len() => Text::Length,
            Text::Name(seen) if *byte == NAME[seen] => Text::Name(seen + 1),
            Text::Name(_) => Text::Name(usize::from(*byte == NAME[0])),
            Text::Length if *byte < LENGTH_PREFIX_MAX => Text::value(*byte),
            Text::Length if *byte == LENGTH_PREFIX_MAX => Text::LongLength,
            // A compressed one.
            Text::Length => Text::Name(0),
            // No path is so long that there would be a third byte.
            Text::LongLength if *byte < 0x80 => Text::Value(usize::from(LENGTH_PREFIX_MAX + *byte)),
            Text::LongLength => Text::Name(0),
            Text::Value(left) => {
                if *byte == b'%' {
                    *byte = b'-';
                }
                if left > 1 { Text::Value(left - 1) } else { Text::Name(0) }
            }
        };
    }
}

impl Text {
    fn value(len: u8) -> Self {
        if len == 0 { Self::Name(0) } else { Self::Value(len.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection as the C core begins one, with this path.
    fn conversation(authority: &str) -> Vec<u8> {
        let mut block = b"@\x05:path\x1a/sigmalock.v1.Locks/Status@\x0a:authority".to_vec();
        match u8::try_from(authority.len()).unwrap() {
            len @ 0..LENGTH_PREFIX_MAX => block.push(len),
            len => block.extend([LENGTH_PREFIX_MAX, len - LENGTH_PREFIX_MAX]),
        }
        block.extend(authority.as_bytes());
        block.extend(b"\x83\x86@\x02te\x09100%25 sure");
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // Data that looks like a header is none.
        let data = b"\x0a:authority\x03%2F";
        for (kind, payload) in [(4, &[][..]), (0, data), (HEADERS, &block), (0, data)] {
            bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
            bytes.extend([kind, 4, 0, 0, 0, 1]);
            bytes.extend(payload);
        }
        bytes
    }

    #[test]
    fn a_path_becomes_the_name_of_a_host_however_it_is_cut() {
        for path in ["run%2Fuser%2F0%2Fpeer.sock", "", "localhost", &"%2Fd".repeat(40)] {
            let said = conversation(path);
            let meant = conversation(&path.replace('%', "-"));
            for piece in 1..said.len() {
                let mut heard = said.clone();
                let mut authority = Authority::new();
                heard.chunks_mut(piece).for_each(|bytes| authority.mend(bytes));
                assert_eq!(heard, meant, "{path} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn garbage_is_passed_on_as_long_as_it_came() {
        let mut garbage: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
        Authority::new().mend(&mut garbage);
        assert_eq!(garbage.len(), 100_000);
    }
}
