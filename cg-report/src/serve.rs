//! `--serve`: the page from this machine, to this machine, and its columns when they are asked for.
//!
//! Profiles are nobody else's business. The server listens on loopback only; everything is below a path that nobody can
//! guess; and it answers only who calls it by its own name, so that no page of another site gets in by renaming its own
//! host. It changes nothing, whatever is asked; only a run that goes on can be told something, by who also says the token in a header,
//! which no other site can have a browser send.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use tiny_http::{Method, Request, StatusCode};

use crate::html::{Data, Page};

/// Where it listens if nobody cares.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// How long the server waits for a page that is closed, or asks for nothing. An open page says each minute that it is there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// How often it looks whether it has waited long enough.
const STEP: Duration = Duration::from_millis(500);
/// The header in which whoever tells a run something says the token.
const TOKEN: &str = "X-Report-Token";

/// Nothing is kept, taken for what it is not, told to others, or shown within another page.
const HEADERS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: frame-ancestors 'none'\r\n";

/// A server that listens.
pub(crate) struct Server {
    server: tiny_http::Server,
    /// What requests must call it.
    hosts: [String; 2],
    /// The path that everything is below: `/TOKEN/`.
    root: String,
    url: String,
}

/// Of what kind something is, and what it is.
pub(crate) type Content<'a> = (&'static str, Cow<'a, [u8]>);

/// What is served, by paths below the token.
pub(crate) trait Source {
    /// What stands at a path.
    fn get(&mut self, path: &str) -> Option<Content<'_>>;
    /// Whether anything can be told to it.
    fn listens(&self) -> bool {
        false
    }
    /// Does what a path says, and tells how things are then.
    fn post(&mut self, _path: &str) -> Option<Content<'_>> {
        None
    }
}

/// A page that stays as it is.
pub(crate) struct Still {
    html: Vec<u8>,
    page: Page,
}

impl Still {
    /// A page that is sent in pieces.
    ///
    /// # Errors
    /// It cannot be compressed.
    pub(crate) fn new(page: Page) -> io::Result<Self> {
        let mut html = Vec::new();
        page.write(&Data::Below, &mut html)?;
        Ok(Self { html, page })
    }
}

impl Source for Still {
    fn get(&mut self, path: &str) -> Option<Content<'_>> {
        if path.is_empty() {
            return Some(("text/html; charset=utf-8", Cow::Borrowed(&self.html)));
        }
        Some(("text/plain", Cow::Borrowed(self.page.part(path.strip_prefix("data/")?)?.as_bytes())))
    }
}

/// What is asked.
struct Asked<'a> {
    method: &'a Method,
    url: &'a str,
    host: Option<&'a str>,
    token: Option<&'a str>,
}

/// What is sent for a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer<'a> {
    /// The page, or a part of its data.
    Content(&'static str, Cow<'a, [u8]>),
    /// Nothing but a status.
    Status(u16),
}

impl Server {
    /// Listens; nothing is answered yet.
    ///
    /// # Errors
    /// The address is not one of this machine alone, or is taken.
    pub(crate) fn start(address: SocketAddr) -> anyhow::Result<Self> {
        if !address.ip().is_loopback() {
            bail!("--serve {address}: others could reach this address; name one such as 127.0.0.1:8000");
        }
        let server = tiny_http::Server::http(address).map_err(|why| anyhow!("--serve {address}: {why}"))?;
        let address = server.server_addr().to_ip().context("the server has no address")?;
        let mut token = [0_u8; 16];
        File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut token)).context("/dev/urandom")?;
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let hosts = [address.to_string(), format!("localhost:{}", address.port())];
        Ok(Self { server, hosts, url: format!("http://{address}/{token}/"), root: format!("/{token}/") })
    }

    /// Where the page is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Answers until nobody has asked for so long; without a limit until the program is ended.
    ///
    /// # Errors
    /// The server has broken down.
    pub(crate) fn run(&self, source: &mut dyn Source, patience: Option<Duration>) -> anyhow::Result<()> {
        let mut last = Instant::now();
        while patience.is_none_or(|patience| last.elapsed() < patience) {
            let Some(request) = self.server.recv_timeout(STEP).context("the server")? else { continue };
            let header = |name: &'static str| {
                let found = request.headers().iter().find(|header| header.field.equiv(name));
                found.map(|header| header.value.as_str().to_owned())
            };
            let (host, token) = (header("Host"), header(TOKEN));
            let method = request.method().clone();
            let url = request.url().to_owned();
            let asked = Asked { method: &method, url: &url, host: host.as_deref(), token: token.as_deref() };
            let answer = self.answer(&asked, source);
            if matches!(answer, Answer::Content(..)) {
                last = Instant::now();
            }
            // Whoever does not wait for an answer does without it.
            let _ = send(request, &answer);
        }
        Ok(())
    }

    fn answer<'a>(&self, asked: &Asked<'_>, source: &'a mut dyn Source) -> Answer<'a> {
        if !asked.host.is_some_and(|host| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))) {
            return Answer::Status(403);
        }
        if asked.url.len() < self.root.len() || !same(&asked.url.as_bytes()[..self.root.len()], self.root.as_bytes()) {
            return Answer::Status(403);
        }
        let path = &asked.url[self.root.len()..];
        let found = match *asked.method {
            Method::Get if path == "alive" => Some(("text/plain", Cow::Borrowed(&b""[..]))),
            Method::Get => source.get(path),
            Method::Post if source.listens() => {
                let token = self.root.trim_matches('/').as_bytes();
                if !asked.token.is_some_and(|said| same(said.as_bytes(), token)) {
                    return Answer::Status(403);
                }
                source.post(path)
            }
            _ => return Answer::Status(405),
        };
        found.map_or(Answer::Status(404), |(kind, content)| Answer::Content(kind, content))
    }
}

/// Whether two texts are the same. They are compared as a whole: how long that takes tells nothing of where the first difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Sends an answer and has the connection closed: those that stay open can take the threads that others wait for.
fn send(request: Request, answer: &Answer<'_>) -> io::Result<()> {
    let (status, kind, body) = match answer {
        Answer::Content(kind, body) => (200, *kind, &body[..]),
        Answer::Status(status) => (*status, "text/plain", &b""[..]),
    };
    let mut out = request.into_writer();
    write!(
        out,
        "HTTP/1.1 {status} {}\r\nConnection: close\r\nContent-Length: {}\r\nContent-Type: {kind}\r\n{HEADERS}\r\n",
        StatusCode(status).default_reason_phrase(),
        body.len()
    )?;
    out.write_all(body)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::Text;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn server() -> Server {
        Server::start("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    /// Remembers what it was told.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl Source for Told {
        fn listens(&self) -> bool {
            true
        }

        fn get(&mut self, path: &str) -> Option<Content<'_>> {
            (path != "x").then(|| ("text/plain", Cow::Owned(path.as_bytes().to_vec())))
        }

        fn post(&mut self, path: &str) -> Option<Content<'_>> {
            self.0.push(path.to_owned());
            self.get(path).map(|_| ("text/plain", Cow::Borrowed(&b"done"[..])))
        }
    }

    /// A page with this text as its data.
    const TEXT: &str = "0123456789AB";

    fn page() -> Page {
        let bytes = STANDARD.decode(TEXT).unwrap();
        Page { title: "t".into(), head: "{}".into(), data: Text::from(&bytes[..]), table: Vec::new() }
    }

    fn status(answer: &Answer<'_>) -> (u16, String) {
        match answer {
            Answer::Content(_, content) => (200, String::from_utf8(content.to_vec()).unwrap()),
            Answer::Status(status) => (*status, String::new()),
        }
    }

    #[test]
    fn only_who_knows_the_path_and_the_name_is_answered() {
        let server = server();
        let host = server.hosts[0].clone();
        let ask = |method: &Method, url: &str, host: Option<&str>| {
            let mut source = Still::new(page()).unwrap();
            status(&server.answer(&Asked { method, url, host, token: None }, &mut source))
        };
        let below = |path: &str| format!("{}{path}", server.root);
        let get = |path: &str| ask(&Method::Get, path, Some(&host));
        assert!(get(&below("")).1.starts_with("<!doctype html>"));
        assert_eq!(get(&below("data/3-4")), (200, "3456".into()));
        assert_eq!(get(&below("alive")), (200, String::new()));
        for wrong in
            ["data/3-10", "data/13-0", "data/18446744073709551615-2", "data/x-1", "data/-1-2", "data/3", "../", "x"]
        {
            assert_eq!(get(&below(wrong)).0, 404, "{wrong}");
        }
        let other = below("").replace(|letter: char| letter.is_ascii_digit(), "x");
        for path in [
            "",
            "/",
            "/favicon.ico",
            "//",
            &other,
            &server.root[..server.root.len() - 1],
            "/é/é/é/é/é/é/é/é/é/é/é/é/é/é",
        ] {
            assert_eq!(get(path).0, 403, "{path}");
        }
        let port = host.rsplit(':').next().unwrap();
        for foreign in [None, Some(""), Some("evil.example"), Some("127.0.0.1"), Some(&*format!("evil.example:{port}"))]
        {
            assert_eq!(ask(&Method::Get, &below(""), foreign).0, 403, "{foreign:?}");
        }
        assert_eq!(ask(&Method::Get, &below(""), Some(&format!("localhost:{port}"))).0, 200);
        for method in [Method::Post, Method::Put, Method::Delete, Method::Options] {
            assert_eq!(ask(&method, &below(""), Some(&host)).0, 405, "{method}");
        }
    }

    #[test]
    fn something_is_told_only_by_who_says_the_token_and_only_where_that_means_something() {
        let server = server();
        let (host, url) = (server.hosts[0].clone(), format!("{}kill", server.root));
        let token = server.root.trim_matches('/').to_owned();
        let mut told = Told::default();
        let post = |source: &mut dyn Source, url: &str, host: &str, token: Option<&str>| {
            status(&server.answer(&Asked { method: &Method::Post, url, host: Some(host), token }, source)).0
        };
        for wrong in [None, Some(""), Some("x"), Some(&token[1..]), Some(&*format!("{token}0"))] {
            assert_eq!(post(&mut told, &url, &host, wrong), 403, "{wrong:?}");
        }
        assert_eq!(post(&mut told, &url, "evil.example", Some(&token)), 403);
        assert_eq!(post(&mut told, "/kill", &host, Some(&token)), 403);
        assert!(told.0.is_empty());
        assert_eq!(post(&mut told, &url, &host, Some(&token)), 200);
        assert_eq!(told.0, ["kill"]);
        assert_eq!(post(&mut Still::new(page()).unwrap(), &url, &host, Some(&token)), 405);
    }

    #[test]
    fn tokens_differ_and_addresses_are_of_this_machine_alone() {
        assert_ne!(server().root, server().root);
        assert!(server().root.len() == 34 && Server::start("[::1]:0".parse().unwrap()).is_ok());
        for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
            assert!(Server::start(address.parse().unwrap()).is_err(), "{address}");
        }
    }

    #[test]
    fn it_ends_when_nobody_has_asked_for_long() {
        let start = Instant::now();
        server().run(&mut Still::new(page()).unwrap(), Some(Duration::from_millis(20))).unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
