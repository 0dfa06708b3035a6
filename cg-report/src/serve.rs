//! `--serve`: the page from this machine, to this machine, and its columns when they are asked for.
//!
//! Profiles are nobody else's business. The server listens on loopback only; everything is below a path that nobody can
//! guess; and it answers only who calls it by its own name, so that no page of another site gets in by renaming its own
//! host. It changes nothing, whatever is asked.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use tiny_http::{Method, Request, StatusCode};

use crate::html::{Data, Page};

/// How long the server waits for a page that is closed, or asks for nothing. An open page says each minute that it is there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// How often it looks whether it has waited long enough.
const STEP: Duration = Duration::from_millis(500);
/// Where the page finds columns, below its own path: START-LENGTH.
const COLUMNS: &str = "data/";

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

/// What is sent for a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer<'a> {
    /// The page, or a part of its data.
    Content(&'static str, &'a [u8]),
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
    pub(crate) fn run(&self, page: &Page, patience: Option<Duration>) -> anyhow::Result<()> {
        let mut html = Vec::new();
        page.write(Data::Below(COLUMNS), &mut html)?;
        let mut last = Instant::now();
        while patience.is_none_or(|patience| last.elapsed() < patience) {
            let Some(request) = self.server.recv_timeout(STEP).context("the server")? else { continue };
            let host = request.headers().iter().find(|header| header.field.equiv("Host"));
            let answer =
                self.answer(request.method(), request.url(), host.map(|host| host.value.as_str()), &html, &page.data);
            if matches!(answer, Answer::Content(..)) {
                last = Instant::now();
            }
            // Whoever does not wait for an answer does without it.
            let _ = send(request, &answer);
        }
        Ok(())
    }

    fn answer<'a>(&self, method: &Method, url: &str, host: Option<&str>, html: &'a [u8], data: &'a str) -> Answer<'a> {
        if !host.is_some_and(|host| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))) {
            return Answer::Status(403);
        }
        // The token is compared as a whole: how long that takes tells nothing of where the first difference is.
        let known = url.len() >= self.root.len()
            && url.bytes().zip(self.root.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0;
        if !known {
            return Answer::Status(403);
        }
        if *method != Method::Get {
            return Answer::Status(405);
        }
        match &url[self.root.len()..] {
            "" => Answer::Content("text/html; charset=utf-8", html),
            "alive" => Answer::Content("text/plain", b""),
            rest => match rest.strip_prefix(COLUMNS).and_then(|range| part(data, range)) {
                Some(part) => Answer::Content("text/plain", part.as_bytes()),
                None => Answer::Status(404),
            },
        }
    }
}

/// The part of the columns that START-LENGTH names, if there is one.
fn part<'a>(data: &'a str, range: &str) -> Option<&'a str> {
    let (start, length) = range.split_once('-')?;
    let (start, length) = (start.parse::<usize>().ok()?, length.parse::<usize>().ok()?);
    data.get(start..start.checked_add(length)?)
}

/// Sends an answer and has the connection closed: those that stay open can take the threads that others wait for.
fn send(request: Request, answer: &Answer<'_>) -> io::Result<()> {
    let (status, kind, body) = match answer {
        Answer::Content(kind, body) => (200, *kind, *body),
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

    fn server() -> Server {
        Server::start("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    #[test]
    fn only_who_knows_the_path_and_the_name_is_answered() {
        let server = server();
        let host = server.hosts[0].clone();
        let ask = |method: &Method, path: &str, host: Option<&str>| match server.answer(
            method,
            path,
            host,
            b"page",
            "0123456789",
        ) {
            Answer::Content(_, content) => (200, String::from_utf8(content.to_vec()).unwrap()),
            Answer::Status(status) => (status, String::new()),
        };
        let below = |path: &str| format!("{}{path}", server.root);
        let get = |path: &str| ask(&Method::Get, path, Some(&host));
        assert_eq!(get(&below("")), (200, "page".into()));
        assert_eq!(get(&below("data/3-4")), (200, "3456".into()));
        assert_eq!(get(&below("alive")), (200, String::new()));
        for wrong in
            ["data/3-8", "data/11-0", "data/18446744073709551615-2", "data/x-1", "data/-1-2", "data/3", "../", "x"]
        {
            assert_eq!(get(&below(wrong)).0, 404, "{wrong}");
        }
        let other = below("").replace(|letter: char| letter.is_ascii_digit(), "x");
        for path in ["", "/", "/favicon.ico", "//", &other, &server.root[..server.root.len() - 1]] {
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
    fn tokens_differ_and_addresses_are_of_this_machine_alone() {
        assert_ne!(server().root, server().root);
        assert!(server().root.len() == 34 && Server::start("[::1]:0".parse().unwrap()).is_ok());
        for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
            assert!(Server::start(address.parse().unwrap()).is_err(), "{address}");
        }
    }

    #[test]
    fn it_ends_when_nobody_has_asked_for_long() {
        let page = Page { title: "t".into(), head: "{}".into(), data: String::new(), table: Vec::new() };
        let start = Instant::now();
        server().run(&page, Some(Duration::from_millis(20))).unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
