//! Names of locks.

use alloc::borrow::Cow;
use alloc::format;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;

/// The longest name, in bytes, its leading slash included.
pub const NAME_LEN_MAX: usize = 255;

/// The name of a lock: a path-like UTF-8 text of at most 255 bytes, such as `/render/frame-17`.
///
/// Segments are separated by single slashes. A leading slash may be left out: `backup` and `/backup` are the same name,
/// which has the slash from here on, wherever it is hashed, sent, kept or shown. Control characters and white space are refused, because names end up in logs, shells and
/// environment variables. Cloning is cheap.
///
/// `Ord` is a fixed total order that is quick to compare (by digest, then by text), good for maps
/// and for taking several locks in one canonical order. Sort by [`Name::as_str`] for people.
#[derive(Clone)]
pub struct Name {
    digest: u64,
    text: Arc<str>,
}

/// Why a text is not the name of a lock. Nothing was changed by trying.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no text at all.
    #[error("a lock name must not be empty")]
    Empty,
    /// More than [`NAME_LEN_MAX`] bytes.
    #[error(
        "a lock name has at most {NAME_LEN_MAX} bytes with its leading slash, this one has {0}"
    )]
    TooLong(usize),
    /// White space or a control character.
    #[error("a lock name has no spaces or control characters, this one has {found:?} at byte {at}")]
    Forbidden {
        /// The character.
        found: char,
        /// Its byte offset.
        at: usize,
    },
    /// `//`, or a slash at the end.
    #[error("a lock name has no empty path segment, this one has one at byte {0}")]
    EmptySegment(usize),
    /// A segment that is `.` or `..`.
    #[error("a lock name has no `.` or `..` segment, this one has one at byte {0}")]
    DotSegment(usize),
}

impl Name {
    /// Checks a text and makes it a name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        let rooted = rooted(text);
        if rooted.len() > NAME_LEN_MAX {
            return Err(NameError::TooLong(rooted.len()));
        }
        if let Some((at, found)) =
            text.char_indices().find(|(_, c)| c.is_control() || c.is_whitespace())
        {
            return Err(NameError::Forbidden { found, at });
        }
        let mut at = usize::from(text.starts_with('/'));
        for segment in text[at..].split('/') {
            match segment {
                "" => return Err(NameError::EmptySegment(at)),
                "." | ".." => return Err(NameError::DotSegment(at)),
                _ => at += segment.len() + 1,
            }
        }
        Ok(Self { digest: fnv1a(rooted.as_bytes()), text: Arc::from(rooted) })
    }

    /// What names begin with that people say begin with this: the slash may be left out here as well.
    #[must_use]
    pub fn prefix(text: &str) -> Cow<'_, str> {
        if text.is_empty() { Cow::Borrowed(text) } else { rooted(text) }
    }

    /// The text, with its leading slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Name {
    /// Whatever is not a name is refused here, so that nothing behind a wire or a disk has to check.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a lock")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Name, E> {
                Name::new(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A text with the slash that every name begins with.
fn rooted(text: &str) -> Cow<'_, str> {
    if text.starts_with('/') { Cow::Borrowed(text) } else { Cow::Owned(format!("/{text}")) }
}

/// FNV-1a, 64 bits: an accelerator for comparisons, not a fingerprint. Equal digests still compare
/// their texts, so a collision costs time and nothing else.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
            && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}
impl Eq for Name {}
impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.digest.cmp(&other.digest).then_with(|| {
            if Arc::ptr_eq(&self.text, &other.text) {
                Ordering::Equal
            } else {
                self.text.cmp(&other.text)
            }
        })
    }
}
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}
impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for text in ["/a", "/render/frame-17", "/db:shard=3", "/größe/ü", "/..a", "/a.b"] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_name_is_the_same_with_and_without_its_leading_slash() {
        let (short, long) = (Name::new("render/17").unwrap(), Name::new("/render/17").unwrap());
        assert_eq!((&short, short.as_str()), (&long, "/render/17"));
        assert_eq!((short.digest, short.cmp(&long)), (long.digest, Ordering::Equal));
        assert_ne!(Name::new("a/b").unwrap(), Name::new("/a").unwrap());
        assert_eq!(Name::new("//a"), Err(NameError::EmptySegment(1)), "not three ways to say it");
        let prefixes = ["", "/", "re", "/re"].map(Name::prefix);
        assert_eq!(prefixes, ["", "/", "/re", "/re"]);
    }

    #[test]
    fn each_defect_gets_its_own_sentence() {
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert_eq!(Name::new(&"x".repeat(256)), Err(NameError::TooLong(257)));
        assert_eq!(Name::new("a b"), Err(NameError::Forbidden { found: ' ', at: 1 }));
        assert_eq!(Name::new("a\u{7}"), Err(NameError::Forbidden { found: '\u{7}', at: 1 }));
        assert_eq!(Name::new("/"), Err(NameError::EmptySegment(1)));
        assert_eq!(Name::new("a//b"), Err(NameError::EmptySegment(2)));
        assert_eq!(Name::new("a/"), Err(NameError::EmptySegment(2)));
        assert_eq!(Name::new("a/../b"), Err(NameError::DotSegment(2)));
        assert_eq!(
            Name::new("a b").unwrap_err().to_string(),
            "a lock name has no spaces or control characters, this one has ' ' at byte 1"
        );
    }

    #[test]
    fn the_longest_name_is_accepted_and_one_byte_more_is_not() {
        let longest = "x".repeat(NAME_LEN_MAX - 1);
        assert_eq!(Name::new(&longest), Name::new(&format!("/{longest}")));
        assert_eq!(Name::new(&longest).unwrap().as_str().len(), NAME_LEN_MAX);
        assert_eq!(Name::new(&"x".repeat(NAME_LEN_MAX)), Err(NameError::TooLong(256)));
        assert_eq!(Name::new(&format!("/{longest}x")), Err(NameError::TooLong(256)));
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_an_error_and_never_a_panic(text in ".{0,300}") {
            if let Ok(name) = Name::new(&text) {
                let bare = |text: &str| text.trim_start_matches('/').to_string();
                prop_assert_eq!(bare(name.as_str()), bare(&text));
                prop_assert_eq!(Name::new(name.as_str()), Ok(name.clone()));
            }
        }

        #[test]
        fn equality_and_order_agree(a in "[a-c/]{1,4}", b in "[a-c/]{1,4}") {
            if let (Ok(x), Ok(y)) = (Name::new(&a), Name::new(&b)) {
                let same = a.trim_start_matches('/') == b.trim_start_matches('/');
                prop_assert_eq!(x == y, same);
                prop_assert_eq!(x.cmp(&y) == Ordering::Equal, same);
                prop_assert_eq!(x.cmp(&y), y.cmp(&x).reverse());
            }
        }
    }
}
