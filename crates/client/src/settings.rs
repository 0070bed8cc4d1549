//! Which peer is meant: by the program, else the environment, else the user's configuration, else the machine's.
//!
//! ```toml
//! # Above all tables, since it is for all commands and programs.
//! api = "unix:/srv/locks/peer.sock"
//! swarm = "dba1b484"
//! ```

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::belonging;
use crate::error::SettingsError;
use crate::place;

/// The variable that names the swarm a peer must be of: the id of its key.
pub const SWARM_VARIABLE: &str = "SIGMALOCK_SWARM";
/// The variable that says that a private peer is meant.
pub const PRIVATE_VARIABLE: &str = "SIGMALOCK_PRIVATE";
/// The variable that names another file than the user's usual one.
pub const CONFIG_VARIABLE: &str = "SIGMALOCK_CONFIG";

/// Keys that all commands and programs have in common.
pub const COMMON_KEYS: [&str; 2] = ["api", "swarm"];
/// Variables that say with whom a peer of this machine is to be.
const NODE_VARIABLES: [&str; 3] = ["SIGMALOCK_JOIN", "SIGMALOCK_EXPECT", "SIGMALOCK_SWARM_KEY"];
/// Keys of `[node]` that do.
const NODE_KEYS: [&str; 5] = ["join", "expect", "swarm-key", "mdns", "api"];

/// No configuration is longer.
const FILE_LEN_MAX: u64 = 64 * 1024;

/// What one source says about which peer is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Where it is.
    pub(crate) api: Option<String>,
    /// Of which swarm.
    pub(crate) swarm: Option<String>,
    /// The user's private one.
    pub(crate) private: bool,
}

impl Wish {
    /// This, and where it says nothing, what a farther source says.
    fn or(self, farther: Self) -> Self {
        if self.private {
            return self;
        }
        let private = farther.private && self.api.is_none() && self.swarm.is_none();
        Self { api: self.api.or(farther.api), swarm: self.swarm.or(farther.swarm), private }
    }

    /// This, which is what is said up to that source. A demand that says nothing was meant to say something, and is no
    /// leave to enter anywhere.
    fn demanding(self, source_of: &str) -> Result<Self, SettingsError> {
        demand(self.swarm.as_deref(), source_of)?;
        Ok(self)
    }

    fn checked(self, source_of: &'static str) -> Result<Self, SettingsError> {
        if self.private && (self.api.is_some() || self.swarm.is_some()) {
            return Err(SettingsError::Contradiction { source_of });
        }
        Ok(self)
    }

    fn of_environment() -> Self {
        // Whatever else is said does not mean it.
        let yes = |word: String| ["1", "true", "yes"].contains(&word.as_str());
        let private = variable(PRIVATE_VARIABLE).is_some_and(yes);
        let swarm = env::var_os(SWARM_VARIABLE).map(|id| id.to_string_lossy().into_owned());
        Self { api: variable(place::API_VARIABLE), swarm, private }
    }

    fn of_file(file: &Table) -> Self {
        let text = |key| file.get(key).and_then(Value::as_str).map(str::to_owned);
        Self { api: text("api"), swarm: text("swarm"), private: false }
    }
}

/// What is meant, all in all.
pub(crate) fn resolve(said: Wish) -> Result<Wish, SettingsError> {
    let mut wish = said.demanding("the program")?.checked("the program")?;
    wish = wish.or(Wish::of_environment().checked("the environment")?);
    wish = wish.demanding(SWARM_VARIABLE)?;
    for (path, file) in files(None)? {
        wish = wish.or(Wish::of_file(&file)).demanding(&path.display().to_string())?;
    }
    Ok(wish)
}

/// An empty demand is none that any peer could meet.
pub(crate) fn demand(swarm: Option<&str>, source_of: &str) -> Result<(), SettingsError> {
    match swarm {
        Some(id) if id.trim().is_empty() => {
            Err(SettingsError::NoSwarm { source_of: source_of.to_owned() })
        }
        _ => Ok(()),
    }
}

/// What names a swarm, in words, if anything does.
pub(crate) fn names_a_swarm() -> Result<Option<String>, SettingsError> {
    let by_variable = NODE_VARIABLES.into_iter().find(|name| variable(name).is_some());
    if let Some(name) = by_variable {
        return Ok(Some(format!("{name} is set")));
    }
    for (path, file) in files(None)? {
        let key = names_in(&file);
        if let Some(key) = key {
            let path = path.display();
            return Ok(Some(format!("{path} says so ({key}); take that out once it does not")));
        }
    }
    Ok(None)
}

/// The key that does, in that file.
fn names_in(file: &Table) -> Option<String> {
    // Whoever wrote `_` for `-` is told so by the command, and meant a swarm.
    let first = |table: &Table, keys: &[&str]| {
        table.keys().find(|key| keys.contains(&key.replace('_', "-").as_str())).cloned()
    };
    let node = || first(file.get("node")?.as_table()?, &NODE_KEYS);
    first(file, &COMMON_KEYS).or_else(|| Some(format!("[node] {}", node()?)))
}

/// The configuration files that there are, the user's before the machine's; or `only` this one.
///
/// # Errors
/// One cannot be read, or is no TOML.
pub fn files(only: Option<PathBuf>) -> Result<Vec<(PathBuf, Table)>, SettingsError> {
    if let Some(path) = only {
        let table = file(&path, true)?;
        return Ok(table.map(|table| (path, table)).into_iter().collect());
    }
    let named = variable(CONFIG_VARIABLE).map(PathBuf::from);
    let must_be_there = named.is_some();
    let users = named.or_else(place::user_config).map(|path| (path, must_be_there));
    let machines = (PathBuf::from(place::MACHINE_CONFIG), false);
    let mut files = Vec::new();
    for (path, must_be_there) in users.into_iter().chain([machines]) {
        files.extend(file(&path, must_be_there)?.map(|table| (path, table)));
    }
    Ok(files)
}

/// One of them; `None` if it is not there and need not be.
fn file(path: &Path, must_be_there: bool) -> Result<Option<Table>, SettingsError> {
    let unusable = |why: String| SettingsError::File { path: path.to_owned(), why };
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(FILE_LEN_MAX + 1).read_to_string(&mut text)) {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && !must_be_there
                && !belonging::is_there(path) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unusable(error.to_string())),
        Ok(length) if length as u64 > FILE_LEN_MAX => {
            return Err(unusable(format!("a configuration has at most {FILE_LEN_MAX} bytes")));
        }
        Ok(_) => {}
    }
    let table = text.parse::<Table>().map_err(|error| unusable(error.message().to_owned()))?;
    for key in COMMON_KEYS {
        if table.get(key).is_some_and(|value| !value.is_str()) {
            return Err(unusable(format!("{key}: this should be a text")));
        }
    }
    Ok(Some(table))
}

fn variable(name: &str) -> Option<String> {
    // What is no text names something all the same, which nobody will find.
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(api: &str, swarm: &str, private: bool) -> Wish {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Wish { api: text(api), swarm: text(swarm), private }
    }

    #[test]
    fn what_is_said_nearer_outdoes_what_is_said_farther() {
        let or = |near: Wish, far: Wish| near.or(far);
        assert_eq!(or(wish("a", "", false), wish("b", "s", false)), wish("a", "s", false));
        assert_eq!(or(wish("", "", true), wish("b", "s", false)), wish("", "", true));
        assert_eq!(or(wish("", "s", false), wish("", "", true)), wish("", "s", false));
        assert_eq!(or(wish("", "", false), wish("", "", true)), wish("", "", true));
        assert!(wish("a", "", true).checked("it").is_err());
        assert!(wish("", "s", true).checked("it").is_err());
    }

    #[test]
    fn an_empty_demand_is_refused_unless_something_nearer_is_said() {
        let empty = || Wish { swarm: Some(" ".into()), ..Wish::default() };
        let refused = resolve(empty()).unwrap_err().to_string();
        assert!(refused.starts_with("the program demands a swarm, and names none"), "{refused}");
        assert!(Wish::default().or(empty()).demanding("it").is_err());
        assert!(wish("", "s", false).or(empty()).demanding("it").is_ok());
        assert!(wish("", "", true).or(empty()).demanding("it").is_ok());
    }

    #[test]
    fn a_file_that_says_with_whom_a_peer_is_to_be_names_a_swarm() {
        let names = |text: &str| names_in(&text.parse().unwrap());
        for text in [
            "swarm = 's'",
            "api = 'unix:/x'",
            "[node]\njoin = ['a:1']",
            "[node]\nexpect = 3",
            "[node]\nswarm-key = '/k'",
            "[node]\nswarm_key = '/k'",
            "[node]\nmdns = true",
        ] {
            assert!(names(text).is_some(), "{text}");
        }
        for text in ["", "[node]\nlog = 'debug'", "[run]\nttl = '5s'"] {
            assert_eq!(names(text), None, "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_an_error() {
        let path = env::temp_dir().join(format!("sigmalock-settings-{}", std::process::id()));
        assert!(matches!(file(&path, false), Ok(None)));
        assert!(file(&path, true).is_err());
        for text in ["swarm =".to_owned(), "swarm = 3".to_owned(), "#".repeat(70_000)] {
            std::fs::write(&path, &text).unwrap();
            assert!(file(&path, false).is_err(), "{}", &text[..text.len().min(20)]);
        }
        std::fs::remove_file(&path).unwrap();
        // One that leads nowhere is there, and nobody knows what it says.
        std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
        assert!(file(&path, false).is_err());
        assert!(file(&path.join("config.toml"), false).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
