//! Programs that people run, joined and left again and again while clients use them: no request fails, and nothing of the profiler's
//! stays. Some visits of each are part of every run of the tests that are ignored; as many as one likes:
//!
//! ```text
//! VISITS=1000 cargo test --release -p grind-tests visits:: -- --ignored --nocapture --test-threads=1
//! ```
//!
//! Each test says how long its visits took beyond the time that they were to last (joining, leaving, and writing the profile), and
//! the longest that a client has waited for an answer, with and without visits.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use grind_tests::{build, run, tools};

/// How long each visit lasts.
const LASTS: Duration = Duration::from_millis(20);

/// A request and its answer; an error says what was wrong.
type Client = Box<dyn FnMut() -> Result<(), String> + Send>;

/// What is visited, and who uses it meanwhile.
struct Service {
    /// Ended in the end.
    children: Vec<Child>,
    pid: u32,
    clients: Vec<Client>,
}

impl Drop for Service {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(dir: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

/// Somebody who writes lines to a program, each of which it answers by one.
fn by_lines(child: &mut Child, request: impl Fn(u64) -> (String, String) + Send + 'static) -> Client {
    let mut to: ChildStdin = child.stdin.take().unwrap();
    let mut from: BufReader<ChildStdout> = BufReader::new(child.stdout.take().unwrap());
    let mut n = 0;
    Box::new(move || {
        n += 1;
        let (line, wanted) = request(n);
        to.write_all(format!("{line}\n").as_bytes()).and_then(|()| to.flush()).map_err(|e| e.to_string())?;
        let mut answer = String::new();
        from.read_line(&mut answer).map_err(|e| e.to_string())?;
        if answer.trim_end() == wanted { Ok(()) } else { Err(format!("{line}: {answer:?} instead of {wanted:?}")) }
    })
}

/// Somebody who asks a web server for `/`, each time by a connection of its own.
fn by_http(port: u16, wanted: &'static str) -> Client {
    Box::new(move || {
        let text = |e: std::io::Error| e.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(text)?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(text)?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").map_err(text)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(text)?;
        let whole = answer.starts_with("HTTP/1.1 200") && answer.contains(wanted);
        if whole { Ok(()) } else { Err(format!("{answer:?}")) }
    })
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn put(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

/// Waits until a client is answered.
fn until_served(client: &mut Client) {
    let start = Instant::now();
    while let Err(error) = client() {
        assert!(start.elapsed() < Duration::from_secs(60), "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn tcp(children: Vec<Child>, pid: u32, mut clients: Vec<Client>) -> Service {
    until_served(&mut clients[0]);
    Service { children, pid, clients }
}

/// A server in the first of `children`, which answers at a port.
fn web(child: Child, port: u16, wanted: &'static str) -> Service {
    let pid = child.id();
    tcp(vec![child], pid, vec![by_http(port, wanted), by_http(port, wanted)])
}

fn busy_c(dir: &Path) -> Service {
    const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned long mix(unsigned long n) { n ^= n << 13; n ^= n >> 7; n ^= n << 17; return n; }
static unsigned long (*volatile indirect)(unsigned long) = mix;
int main(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long n = strtoul(line, 0, 10), sum = n;
        for (int i = 0; i < 200000; i++) { sum = i & 1 ? mix(sum) : indirect(sum); char *p = malloc(16 + i % 64); p[0] = (char)i; free(p); }
        for (int i = 0; i < 200000; i++) sum += i;
        printf("%lu\n", sum);
        fflush(stdout);
    }
    return 0;
}
"#;
    put(dir, "busy.c", PROGRAM);
    build::compile(&["cc", "-O2", "-o", "busy", "busy.c"].map(str::to_owned), dir);
    let mut child = spawn(dir, &["./busy"]);
    let mix = |mut n: u64| {
        n ^= n << 13;
        n ^= n >> 7;
        n ^ n << 17
    };
    let client = by_lines(&mut child, move |n| {
        let sum = (0..200_000).fold(n, |sum, _| mix(sum));
        (n.to_string(), sum.wrapping_add(200_000 * 199_999 / 2).to_string())
    });
    Service { pid: child.id(), children: vec![child], clients: vec![client] }
}

fn sqlite(dir: &Path) -> Service {
    let mut child = spawn(dir, &["sqlite3", "-batch", ":memory:"]);
    let client = by_lines(&mut child, |n| {
        let rows = 1000 + n % 1000;
        let numbers = format!("with recursive t(i) as (select 1 union all select i + 1 from t where i < {rows})");
        (format!("{numbers} select count(*) || ' ' || sum(i) from t;"), format!("{rows} {}", rows * (rows + 1) / 2))
    });
    Service { pid: child.id(), children: vec![child], clients: vec![client] }
}

fn python(dir: &Path) -> Service {
    const PROGRAM: &str = r#"
import sys, threading, time
def compute():
    while True:
        sum(i * i for i in range(20000)); time.sleep(0.001)
for _ in range(4):
    threading.Thread(target=compute, daemon=True).start()
for line in sys.stdin:
    n = int(line)
    print(sum(range(n)), flush=True)
"#;
    put(dir, "p.py", PROGRAM);
    let mut child = spawn(dir, &["/usr/bin/python3", "p.py"]);
    let client = by_lines(&mut child, |n| {
        let n = 1000 + n;
        (n.to_string(), (n * (n - 1) / 2).to_string())
    });
    Service { pid: child.id(), children: vec![child], clients: vec![client] }
}

fn redis(dir: &Path) -> Service {
    let port = free_port();
    let child = spawn(dir, &["redis-server", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
    let counter = |key: usize| -> Client {
        let mut at: Option<BufReader<TcpStream>> = None;
        let mut n = 0u64;
        Box::new(move || {
            let text = |e: std::io::Error| e.to_string();
            let stream = match &mut at {
                Some(stream) => stream,
                none => none.insert(BufReader::new(TcpStream::connect(("127.0.0.1", port)).map_err(text)?)),
            };
            let request = format!("*2\r\n$4\r\nINCR\r\n$2\r\nk{key}\r\n");
            stream.get_mut().write_all(request.as_bytes()).map_err(text)?;
            let mut answer = String::new();
            stream.read_line(&mut answer).map_err(text)?;
            n += 1;
            if answer == format!(":{n}\r\n") { Ok(()) } else { Err(format!("{answer:?} instead of {n}")) }
        })
    };
    let pid = child.id();
    tcp(vec![child], pid, (0..4).map(counter).collect())
}

fn nginx(dir: &Path) -> Service {
    let port = free_port();
    let at = dir.display();
    put(
        dir,
        "nginx.conf",
        &format!(
            "worker_processes 1; daemon off; pid {at}/pid; error_log {at}/log; events {{}}\n\
             http {{ access_log off; server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"served by nginx\\n\"; }} }} }}\n"
        ),
    );
    let conf = dir.join("nginx.conf");
    let master = spawn(dir, &["nginx", "-p", dir.to_str().unwrap(), "-c", conf.to_str().unwrap()]);
    let mut clients = vec![by_http(port, "served by nginx"), by_http(port, "served by nginx")];
    until_served(&mut clients[0]);
    let of = master.id();
    let worker = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
    let worker = worker.split_whitespace().next().unwrap().parse().unwrap();
    Service { children: vec![master], pid: worker, clients }
}

fn node(dir: &Path) -> Service {
    const PROGRAM: &str = "require('http').createServer((request, response) => {
        let sum = 0; for (let i = 0; i < 10000; i++) sum += Math.sqrt(i);
        response.end('served by node ' + Math.round(sum) + '\\n');
    }).listen(Number(process.argv[2]), '127.0.0.1');";
    put(dir, "server.js", PROGRAM);
    let port = free_port();
    web(spawn(dir, &["node", "server.js", &port.to_string()]), port, "served by node 666616")
}

fn java(dir: &Path) -> Service {
    const PROGRAM: &str = r#"
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class Server {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/", exchange -> {
            StringBuilder text = new StringBuilder("served by java ");
            long sum = 0;
            for (int i = 0; i < 10000; i++) sum += i;
            byte[] bytes = text.append(sum).append('\n').toString().getBytes();
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(4));
        server.start();
    }
}
"#;
    put(dir, "Server.java", PROGRAM);
    build::compile(&["javac", "Server.java"].map(str::to_owned), dir);
    let port = free_port();
    web(spawn(dir, &["java", "-Xmx256m", "Server", &port.to_string()]), port, "served by java 49995000")
}

fn go(dir: &Path) -> Service {
    const PROGRAM: &str = r#"
package main
import ("fmt"; "net/http"; "os")
func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		done := make(chan int)
		for i := 0; i < 8; i++ { go func(n int) { s := 0; for j := 0; j < 1000; j++ { s += n }; done <- s }(i) }
		sum := 0
		for i := 0; i < 8; i++ { sum += <-done }
		fmt.Fprintf(w, "served by go %d\n", sum)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil { panic(err) }
}
"#;
    put(dir, "server.go", PROGRAM);
    let built = Command::new("go")
        .args(["build", "-o", "server", "server.go"])
        .env("GOCACHE", dir.join("cache"))
        .env("GOFLAGS", "-mod=mod")
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let port = free_port();
    web(spawn(dir, &["./server", &port.to_string()]), port, "served by go 28000")
}

/// The process that serves one client of PostgreSQL.
fn postgres(dir: &Path) -> Service {
    const START: &str = r#"as=; [ $(id -u) = 0 ] && as='setpriv --reuid=postgres --regid=postgres --clear-groups' && chown postgres d
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
$as $bin/initdb -D d -U u -A trust >/dev/null 2>&1
exec $as $bin/postgres -D d -F -c listen_addresses= -c unix_socket_directories=$PWD/d"#;
    fs::create_dir(dir.join("d")).unwrap();
    build::compile(&["chmod", "755", "."].map(str::to_owned), dir);
    let server = spawn(dir, &["bash", "-c", START]);
    let at = dir.join("d");
    let psql = ["psql", "-qAtX", "-h", at.to_str().unwrap(), "-U", "u", "-d", "postgres"];
    let start = Instant::now();
    let ready = || Command::new(psql[0]).args(&psql[1..]).args(["-c", "select 1"]).output().unwrap().status.success();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(120), "the server does not start");
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut child = spawn(dir, &psql);
    child.stdin.as_mut().unwrap().write_all(b"select pg_backend_pid();\n").unwrap();
    let mut number = Vec::new();
    let mut byte = [0];
    while child.stdout.as_mut().unwrap().read_exact(&mut byte).is_ok() && byte[0] != b'\n' {
        number.push(byte[0]);
    }
    let pid = String::from_utf8(number).unwrap().parse().unwrap();
    let client = by_lines(&mut child, |n| {
        let rows = 1000 + n % 500;
        let sum = format!("select sum(i) from (select i from generate_series(1, {rows}) i order by md5(i::text)) t;");
        (sum, (rows * (rows + 1) / 2).to_string())
    });
    Service { children: vec![child, server], pid, clients: vec![client] }
}

/// What `/proc` shows of it that a visit could leave behind: descriptors, threads, and mappings of the profiler's.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    descriptors: usize,
    threads: usize,
    traced: bool,
    foreign: Vec<String>,
}

fn seen(pid: u32) -> Seen {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let maps = fs::read_to_string(proc.join("maps")).unwrap();
    let status = fs::read_to_string(proc.join("status")).unwrap();
    Seen {
        descriptors: fs::read_dir(proc.join("fd")).unwrap().count(),
        threads: fs::read_dir(proc.join("task")).unwrap().count(),
        traced: !status.contains("TracerPid:\t0\n"),
        foreign: maps.lines().filter(|line| line.contains("grind")).map(str::to_owned).collect(),
    }
}

/// The least of several looks: clients come and go, and so do threads of pools.
fn settled(pid: u32) -> Seen {
    let looks = (0..40).map(|_| {
        std::thread::sleep(Duration::from_millis(25));
        seen(pid)
    });
    looks.min_by_key(|seen| (seen.descriptors, seen.threads)).unwrap()
}

fn mappings(pid: u32) -> usize {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines().count()
}

/// The clients' requests and how long the longest took, as long as they go on.
#[derive(Default)]
struct Served {
    requests: AtomicU64,
    longest: AtomicU64,
    over: AtomicBool,
}

impl Served {
    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.swap(0, Ordering::Relaxed))
    }
}

fn visit(name: &str, needs: &[&str], start: impl FnOnce(&Path) -> Service) {
    if !tools::have(needs) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut service = start(dir.path());
    let pid = service.pid;
    let visits: u32 = std::env::var("VISITS").ok().map_or(20, |n| n.parse().expect("VISITS is a number"));
    let mut clients = std::mem::take(&mut service.clients);
    clients.iter_mut().for_each(until_served);
    let served = Served::default();
    let errors = std::thread::scope(|scope| {
        let running: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                let served = &served;
                scope.spawn(move || {
                    while !served.over.load(Ordering::Relaxed) {
                        let began = Instant::now();
                        client()?;
                        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                        served.longest.fetch_max(took, Ordering::Relaxed);
                        served.requests.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        let done = || running.iter().any(std::thread::ScopedJoinHandle::is_finished);
        std::thread::sleep(Duration::from_secs(1));
        let (alone, before) = (served.longest(), settled(pid));
        let maps_before = mappings(pid);
        let requests = served.requests.swap(0, Ordering::Relaxed);
        assert!(before.foreign.is_empty() && !before.traced && requests > 0, "{name}: {before:?}, {requests} requests");
        served.longest();
        let mut took: Vec<Duration> = Vec::new();
        for n in 0..visits {
            if done() {
                break;
            }
            let mut words = tools::under_test().to_vec();
            let tool = if n % 2 == 0 { "cachegrind" } else { "callgrind" };
            words.extend(["-q".to_owned(), format!("--tool={tool}"), format!("--{tool}-out-file=out")]);
            words.extend([format!("--pid={pid}"), format!("--duration={}ms", LASTS.as_millis())]);
            let began = Instant::now();
            let output = run::command(&words, dir.path()).output().unwrap();
            took.push(began.elapsed().saturating_sub(LASTS));
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}, visit {n}: {}: {text}", output.status);
            let now = seen(pid);
            assert!(now.foreign.is_empty() && !now.traced, "{name}, visit {n}: {now:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let longest = served.longest();
        let meanwhile = served.requests.load(Ordering::Relaxed);
        // It goes on afterwards, too.
        std::thread::sleep(Duration::from_millis(300));
        let after = settled(pid);
        served.over.store(true, Ordering::Relaxed);
        let errors: BTreeSet<String> =
            running.into_iter().filter_map(|client| client.join().expect("a client").err()).collect();
        took.sort();
        let at = |share: usize| took.get((took.len() * share / 100).min(took.len().saturating_sub(1))).copied();
        println!(
            "{name}: {} visits, {meanwhile} requests meanwhile; beyond its time a visit took {:?} (middle), {:?} (longest); a client \
             waited {longest:?} at most, {alone:?} without; mappings {maps_before} and {}",
            took.len(),
            at(50).unwrap_or_default(),
            at(100).unwrap_or_default(),
            mappings(pid)
        );
        assert!(after.foreign.is_empty() && !after.traced, "{name}: {after:?}");
        assert!(after.descriptors <= before.descriptors, "{name}: {before:?} before, {after:?} after");
        // Pools of threads may have found a reason to grow.
        assert!(after.threads <= before.threads + 4, "{name}: {before:?} before, {after:?} after");
        errors
    });
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}

macro_rules! visits {
    ($($service:ident: $needs:expr;)*) => {$(
        mod $service {
            #[test]
            #[ignore = "a thousand visits to each of nine programs take an hour; `attach` visits smaller ones in CI: see the top of this file for the command"]
            fn is_visited_again_and_again() {
                super::visit(stringify!($service), &$needs, super::$service);
            }
        }
    )*};
}

visits! {
    busy_c: ["gcc"];
    sqlite: ["sqlite3"];
    python: ["/usr/bin/python3"];
    redis: ["redis-server"];
    nginx: ["nginx"];
    node: ["node"];
    java: ["java", "javac"];
    go: ["go"];
    postgres: ["psql", "setpriv"];
}
