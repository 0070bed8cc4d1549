//! An object store behind a fence: a small one, but over a socket, and with real conditional puts.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::recipe;

// recipe: object
/// Puts an object, unless a later holder has.
fn put_fenced(
    bucket: &Bucket, key: &str, token: u64, holder: &str, body: &str,
) -> Result<(), PutError> {
    loop {
        let seen = bucket.get(key)?;
        if let Some(object) = &seen {
            let stale = token < object.token || (token == object.token && holder != object.holder);
            if stale {
                return Err(PutError::Stale { shown: token, seen: object.token });
            }
        }
        let etag = seen.as_ref().map(|object| object.etag.as_str());
        match bucket.put_if(key, etag, token, holder, body)? {
            Put::Done => return Ok(()),
            // Somebody was faster: look again.
            Put::Changed => {}
        }
    }
}
// end

#[derive(Debug, thiserror::Error)]
enum PutError {
    #[error("the token {shown} is stale: {seen} has been seen")]
    Stale { shown: u64, seen: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

enum Put {
    Done,
    Changed,
}

#[derive(Debug, Clone)]
struct Object {
    etag: String,
    token: u64,
    holder: String,
    body: String,
}

/// A client of the store: one connection a request.
struct Bucket {
    address: SocketAddr,
    /// Called between looking and putting, once: the pause of a holder.
    pause: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Bucket {
    fn new(address: SocketAddr) -> Self {
        Self { address, pause: Mutex::new(None) }
    }

    fn get(&self, key: &str) -> io::Result<Option<Object>> {
        let (status, headers, body) = self.ask(&format!("GET /{key} HTTP/1.1\r\n\r\n"))?;
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        Ok((status == 200).then(|| Object {
            etag: header("etag"),
            token: header("x-amz-meta-token").parse().unwrap(),
            holder: header("x-amz-meta-holder"),
            body,
        }))
    }

    fn put_if(
        &self, key: &str, etag: Option<&str>, token: u64, holder: &str, body: &str,
    ) -> io::Result<Put> {
        let pause = self.pause.lock().unwrap().take();
        if let Some(pause) = pause {
            pause();
        }
        let condition = match etag {
            Some(etag) => format!("If-Match: {etag}"),
            None => "If-None-Match: *".to_owned(),
        };
        let (status, _, _) = self.ask(&format!(
            "PUT /{key} HTTP/1.1\r\n{condition}\r\nx-amz-meta-token: {token}\r\n\
             x-amz-meta-holder: {holder}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))?;
        match status {
            200 => Ok(Put::Done),
            412 => Ok(Put::Changed),
            other => Err(io::Error::other(format!("status {other}"))),
        }
    }

    fn ask(&self, request: &str) -> io::Result<(u16, Headers, String)> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(request.as_bytes())?;
        let (first, headers, body) = read_message(&stream)?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok((status, headers, body))
    }
}

type Headers = HashMap<String, String>;

/// An HTTP message: first line, headers by their names in lower case, body.
fn read_message(stream: &TcpStream) -> io::Result<(String, Headers, String)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut headers = Headers::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((first, headers, String::from_utf8_lossy(&body).into_owned()))
}

/// A store that serves until the process ends.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let objects = Arc::new(Mutex::new(HashMap::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let objects = Arc::clone(&objects);
            std::thread::spawn(move || answer(stream, &objects));
        }
    });
    address
}

fn answer(mut stream: TcpStream, objects: &Mutex<HashMap<String, (u64, Object)>>) {
    let Ok((first, headers, body)) = read_message(&stream) else { return };
    let mut words = first.split(' ');
    let (method, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let header = |name: &str| headers.get(name).map(String::as_str);
    let mut objects = objects.lock().unwrap();
    let now = objects.get(key).map(|(version, object)| (*version, object.clone()));
    let answer = match (method, now) {
        ("GET", None) => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        ("GET", Some((_, object))) => format!(
            "HTTP/1.1 200 OK\r\nETag: {}\r\nx-amz-meta-token: {}\r\nx-amz-meta-holder: {}\r\n\
             Content-Length: {}\r\n\r\n{}",
            object.etag,
            object.token,
            object.holder,
            object.body.len(),
            object.body
        ),
        (_, now) => {
            let etag = now.as_ref().map(|(_, object)| object.etag.as_str());
            let holds = match (header("if-match"), header("if-none-match")) {
                (Some(wanted), _) => etag == Some(wanted),
                (None, Some("*")) => etag.is_none(),
                _ => true,
            };
            if holds {
                let version = now.map_or(0, |(version, _)| version) + 1;
                let token = header("x-amz-meta-token").unwrap_or("0").parse().unwrap_or(0);
                let holder = header("x-amz-meta-holder").unwrap_or_default().to_owned();
                let object = Object { etag: format!("\"v{version}\""), token, holder, body };
                objects.insert(key.to_owned(), (version, object));
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
            } else {
                "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
        }
    };
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn the_page_shows_what_is_tested() {
    assert!(include_str!("object.rs").contains(&recipe("rust object")));
}

#[test]
fn a_holder_that_overslept_does_not_put_its_object() {
    let address = serve();
    let (alice, bob) = (Bucket::new(address), Bucket::new(address));
    put_fenced(&alice, "state", 7, "alice", "one").unwrap();
    put_fenced(&bob, "state", 8, "bob", "two").unwrap();
    let late = put_fenced(&alice, "state", 7, "alice", "three");
    assert!(matches!(late, Err(PutError::Stale { shown: 7, seen: 8 })), "{late:?}");
    let posing = put_fenced(&alice, "state", 8, "alice", "three");
    assert!(matches!(posing, Err(PutError::Stale { .. })), "{posing:?}");
    assert_eq!(bob.get("state").unwrap().unwrap().body, "two");
}

#[test]
fn a_holder_that_is_paused_between_looking_and_putting_is_refused_too() {
    let address = serve();
    let alice = Bucket::new(address);
    put_fenced(&alice, "state", 7, "alice", "one").unwrap();
    *alice.pause.lock().unwrap() = Some(Box::new(move || {
        put_fenced(&Bucket::new(address), "state", 8, "bob", "two").unwrap();
    }));
    let late = put_fenced(&alice, "state", 7, "alice", "three");
    assert!(matches!(late, Err(PutError::Stale { shown: 7, seen: 8 })), "{late:?}");
    assert_eq!(alice.get("state").unwrap().unwrap().body, "two");
}
