//! Marks in a file.
//!
//! A line per name: token, tab, name, tab, holder; if there were readers, tab, the highest of their tokens. The file is replaced as a whole, so that it is never half
//! written; a second file beside it is locked meanwhile, and stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{FenceError, FenceStore, MARKS_MAX, Mark, canonical};

/// Marks that all processes of a machine share, and that outlive them.
#[derive(Debug, Clone)]
pub struct FileStore {
    path: PathBuf,
}

impl FileStore {
    /// Marks in this file, which is made when the first comes. Its directory must be there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.beside(".lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn read(&self) -> io::Result<BTreeMap<String, Mark>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// On disk, under its name, before this returns.
    fn write(&self, marks: &BTreeMap<String, Mark>) -> io::Result<()> {
        let mut text = String::new();
        for (name, Mark { token, holder, read }) in marks {
            let _ = write!(text, "{token}\t{name}\t{holder}");
            let _ = if *read == 0 { writeln!(text) } else { writeln!(text, "\t{read}") };
        }
        let draft = self.beside(".new");
        let mut file = File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)?;
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// What cannot be read is an error, never an empty fence: that would let everybody in.
fn parse(text: &str) -> io::Result<BTreeMap<String, Mark>> {
    let bad = |number: usize| {
        io::Error::new(io::ErrorKind::InvalidData, format!("line {} is no mark", number + 1))
    };
    let mark = |(number, line): (usize, &str)| {
        let mut fields = line.split('\t');
        let token = fields.next().and_then(|token| token.parse().ok());
        let (name, holder) = (fields.next(), fields.next());
        let read = fields.next().map_or(Ok(0), str::parse);
        match (token, name, holder, read, fields.next()) {
            (Some(token), Some(name), Some(holder), Ok(read), None) => {
                Ok((name.to_owned(), Mark { token, holder: holder.to_owned(), read }))
            }
            _ => Err(bad(number)),
        }
    };
    let mut marks = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let (name, mark) = mark((number, line))?;
        // Files of before names were one with and without their slash may have both.
        let known: &mut Mark = marks.entry(canonical(&name).into_owned()).or_default();
        let read = known.read.max(mark.read);
        if mark.token >= known.token {
            *known = mark;
        }
        known.read = read;
    }
    Ok(marks)
}

impl FenceStore for FileStore {
    fn update<T>(
        &self, name: &str, judge: impl FnOnce(Option<&Mark>) -> Result<Mark, FenceError>,
        action: impl FnOnce() -> T,
    ) -> Result<T, FenceError> {
        let _locked = self.lock()?;
        let mut marks = self.read()?;
        let mark = judge(marks.get(name))?;
        if [name, &mark.holder].iter().any(|text| text.contains(['\t', '\n', '\r'])) {
            let text = "names and holders have no tabs and no ends of lines";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
        }
        if marks.get(name) != Some(&mark) {
            if marks.len() >= MARKS_MAX && !marks.contains_key(name) {
                return Err(FenceError::Full);
            }
            marks.insert(name.to_owned(), mark);
            self.write(&marks)?;
        }
        Ok(action())
    }
}
