//! Real commands, natively and under grind: the same output, the same end, and readable profiles.
//!
//! One line a command: its name, a shell script that prepares the folder natively (and is kept, so that both runs find the
//! same, at the same place), and the command itself; `traced` ones also profile what they execute. What a case leaves in its
//! folder is its own to show: if it matters, the command prints it.

use std::time::Duration;

use grind_tests::compare::assert_same;
use grind_tests::run::Job;
use grind_tests::{disturb, tools};

/// Text with repetition and variety, the same on every machine.
const TEXT: &str = r#"awk 'BEGIN { for (i = 0; i < 4000; i++) { x = (x * 1103515245 + 12345) % 2147483648;
    print i, x, "line", x % 17, substr("the quick brown fox jumps over the lazy dog", x % 30 + 1, 9) } }' > text"#;

/// A C program that is compiled in several cases.
const SOURCE: &str = r#"cat > a.c <<'E'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int cmp(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
int main(int argc, char **argv) {
    char *w[200];
    for (int i = 0; i < 200; i++) { w[i] = malloc(16); snprintf(w[i], 16, "w%d", i * 7919 % 1000); }
    qsort(w, 200, sizeof *w, cmp);
    double s = 0;
    for (int i = 0; i < 200; i++) s += atof(w[i] + 1) / (i + 1);
    printf("%s %s %.9f %d\n", w[0], w[199], s, argc);
    return 7;
}
E"#;

/// A program with a race, an overflow and a use of freed memory, each built to be found.
const SANITIZED: &str = r#"cat > a.c <<'E'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int x;
static void *f(void *a) { x++; return a; }
int main(int argc, char **argv) {
    (void)argv;
#if defined thread
    pthread_t t; pthread_create(&t, 0, f, 0); usleep(200000); x++; pthread_join(t, 0); return 0;
#elif defined undefined
    int y = 0x7fffffff; y += argc; return y == 3;
#else
    char *volatile p = malloc(10); free(p); return p[argc];
#endif
}
E
for s in address undefined thread; do gcc -g -fsanitize=$s -D$s -o $s a.c -pthread; done"#;

/// A Go program with goroutines, channels, a mutex, timers and a recovered nil dereference.
const GO: &str = r#"export HOME=$PWD; cat > a.go <<'E'
package main
import ("fmt"; "sort"; "strings"; "sync"; "time")
func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }
func main() {
    var wg sync.WaitGroup; var mu sync.Mutex; m := map[int]string{}
    for i := 0; i < 100; i++ { wg.Add(1); go func(i int) { defer wg.Done(); s := strings.Repeat("x", fib(i%15)); mu.Lock(); m[i] = s; mu.Unlock(); time.Sleep(time.Millisecond) }(i) }
    wg.Wait(); k := []int{}; for i := range m { k = append(k, i) }; sort.Ints(k)
    func() { defer func() { fmt.Println("recovered", recover()) }(); var p *int; *p = 1 }()
    c := make(chan int); go func() { for i := 0; i < 5000; i++ { c <- i }; close(c) }(); s := 0; for v := range c { s += v }
    fmt.Println(len(k), s)
}
E
go build -o a a.go"#;

/// A Go program whose goroutines are preempted by signals and whose collector runs all the time.
const GO_GARBAGE: &str = r#"export HOME=$PWD; cat > a.go <<'E'
package main
import ("fmt"; "os"; "runtime"; "runtime/debug")
type T struct { l, r *T }
func tree(n int) *T { if n == 0 { return &T{} }; return &T{tree(n - 1), tree(n - 1)} }
func (t *T) n() int { if t.l == nil { return 1 }; return 1 + t.l.n() + t.r.n() }
func main() {
    debug.SetGCPercent(10)
    done := make(chan int)
    for g := 0; g < 4; g++ { go func() { s := 0; for i := 0; i < 15; i++ { s += tree(10).n() }; done <- s }() }
    spin := 0; go func() { for { spin++ } }()
    s := 0; for g := 0; g < 4; g++ { s += <-done }
    runtime.GC(); fmt.Println(s); os.Exit(3)
}
E
go build -o a a.go"#;

/// A Java program with threads, under the collector that the virtual machine chooses.
const JAVA_THREADS: &str = r#"cat > A.java <<'E'
import java.util.*; import java.util.concurrent.*;
public class A { public static void main(String[] a) throws Exception {
    ExecutorService e = Executors.newFixedThreadPool(6); List<Future<Long>> f = new ArrayList<>();
    for (int t = 0; t < 12; t++) { final int n = t; f.add(e.submit(() -> { long s = 0; Map<Integer, int[]> m = new HashMap<>();
        for (int i = 0; i < 20000; i++) { m.put(i % 500, new int[50]); s += m.get(i % 500).length + n; } return s; })); }
    long s = 0; for (Future<Long> x : f) s += x.get(); e.shutdown(); System.gc();
    try { int[] z = null; z[0] = 1; } catch (NullPointerException x) { System.out.println("npe"); }
    try { System.out.println(1 / (int) (s - s)); } catch (ArithmeticException x) { System.out.println("div"); }
    try { deep(0); } catch (StackOverflowError x) { System.out.println("deep"); }
    System.out.println(s); } static int deep(int n) { return deep(n + 1) + 1; } }
E
javac A.java"#;

/// A cluster is made, serves a query over a socket, and is shut down.
const POSTGRES: &str = r#"as=; [ $(id -u) = 0 ] && as='setpriv --reuid=postgres --regid=postgres --clear-groups'
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
$as $bin/initdb -D d -N -A trust -U u --no-instructions --locale=C >/dev/null 2>&1 || exit 9
$as $bin/postgres -D d -F -c listen_addresses= -c unix_socket_directories=$PWD/d >/dev/null 2>&1 & server=$!
until psql -h $PWD/d -U u -d postgres -c '' >/dev/null 2>&1; do sleep 0.2; done
psql -h $PWD/d -U u -d postgres -Atc "create table t as select n, md5(n::text) m from generate_series(1, 3000) n; create index on t(m); select count(*), max(m) from t where m > '8'"
kill -INT $server; wait $server; echo $?"#;

/// A set-up that needs programs.
fn need(programs: &str, setup: &str) -> String {
    format!("# need {programs}\n{setup}")
}

fn check(name: &str, traced: bool, setup: &str, words: &[&str]) {
    // What begins with a dot is made by the set-up.
    if !words[0].starts_with("./") && !tools::have(&words[..1]) {
        return;
    }
    if name == "gforth" && disturb::wanted() != disturb::Disturbance::None {
        eprintln!("skipped: it catches SIGURG and ends");
        return;
    }
    // Programs that the command runs by itself.
    let needed = setup.lines().filter_map(|l| l.strip_prefix("# need ")).flat_map(str::split_whitespace);
    if !tools::have(&needed.collect::<Vec<_>>()) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    // Both runs are at the same place, since programs print it and hash it.
    let (work, kept) = (dir.path().join("work"), dir.path().join("kept"));
    std::fs::create_dir(&work).expect("a folder");
    let start = std::time::Instant::now();
    let native_only = |words: &[&str]| {
        let done = Job::new(words.to_vec(), &work).native();
        assert!(done.status.success(), "{name}: cannot be prepared\n{}", done.show());
    };
    if setup.is_empty() {
        std::fs::create_dir(&kept).expect("a folder");
    } else {
        native_only(&["bash", "-ec", setup]);
        // With owners, modes and times.
        native_only(&["cp", "-a", ".", &kept.display().to_string()]);
    }
    let job = Job { trace_children: traced, limit: Duration::from_secs(240), ..Job::new(words.to_vec(), &work) };
    let prepared = start.elapsed();
    let native = job.native();
    let middle = start.elapsed();
    // Who has been killed a moment ago may still be there.
    std::fs::rename(&work, dir.path().join("done")).expect("the folder of the native run");
    std::fs::rename(&kept, &work).expect("the folder that was kept");
    let tested = job.grind();
    // Shown with --nocapture: what the suite's time goes into.
    eprintln!(
        "{name}: {:.2} s preparing, {:.2} s native, {:.2} s under grind",
        prepared.as_secs_f64(),
        (middle - prepared).as_secs_f64(),
        (start.elapsed() - middle).as_secs_f64()
    );
    assert_same(name, &native, &tested.outcome, &tested.log);
    if tools::under_test().iter().any(|w| w == "--tool=callgrind") {
        return tested.check_calls();
    }
    let profiles = tested.profiles();
    for profile in &profiles {
        assert!(profile.total() > 100, "{name}: an empty profile of {}", profile.command);
    }
    if traced {
        assert!(profiles.len() > 1, "{name}: the commands that it ran have no profile of their own");
    }
}

macro_rules! commands {
    ($($kind:ident $name:ident($setup:expr) $words:expr;)*) => {
        $(#[test] fn $name() { check(stringify!($name), stringify!($kind) == "traced", AsRef::<str>::as_ref(&$setup), &$words); })*
    };
}

commands! {
    // coreutils and text tools
    plain ls(TEXT) ["ls", "-l", "--time-style=+", "/etc"];
    plain cat(TEXT) ["cat", "text"];
    plain wc(TEXT) ["wc", "text"];
    plain sort_u(TEXT) ["sort", "-u", "-k3", "text"];
    plain sort_parallel(TEXT) ["sort", "--parallel=4", "-S1M", "-k2n", "text"];
    plain sha256sum(TEXT) ["sha256sum", "text"];
    plain factor("") ["factor", "1234567890123456789", "600851475143"];
    plain seq_format("") ["seq", "-f", "%.3g", "1", "0.5", "200"];
    plain od(TEXT) ["od", "-Ax", "-tx1z", "-N", "2000", "text"];
    plain awk(TEXT) ["awk", "{ n[$5] += $2; l += length } END { for (k in n) s += n[k]; printf \"%d %d %.6e\\n\", NR, l, s }", "text"];
    plain sed(TEXT) ["sed", "-nE", "s/([a-z]+) ([a-z]+)$/\\2-\\1/p", "text"];
    plain grep(TEXT) ["grep", "-cE", "fox|l[ai]zy|(1|2)3+4", "text"];
    plain diff_status("seq 1 100 > a; seq 2 101 > b") ["diff", "a", "b"];
    plain bc("") ["bash", "-c", "echo 'scale=60; 4*a(1)' | bc -l"];
    plain jq("echo '[{\"a\":1,\"b\":[1,2,{\"c\":null}]},{\"a\":2}]' > j") ["jq", "-c", "map(.a) , .[0].b[2]", "j"];
    plain file("cp /bin/true t") ["file", "t", "/bin/sh"];
    plain dd(TEXT) ["dd", "if=text", "bs=100", "count=30", "status=none"];
    plain date("") ["date", "-u", "-d", "@1234567890", "+%c"];
    plain false_status("") ["false"];
    plain missing_operand("") ["cp"];
    plain yes_head("") ["bash", "-c", "yes | head -n 3; echo ${PIPESTATUS[@]}"];
    plain timeout_kills("") ["timeout", "-s", "TERM", "0.3", "sleep", "20"];
    // archives
    plain gzip(TEXT) ["gzip", "-9nc", "text"];
    plain bzip2(TEXT) ["bzip2", "-c", "text"];
    plain xz(TEXT) ["xz", "-6c", "text"];
    plain xz_threads("seq 1 200000 > big") ["xz", "-1", "-T2", "--block-size=200KiB", "-c", "big"];
    plain zstd_threads(TEXT) ["zstd", "-T2", "-q", "-c", "text"];
    traced tar_xz(TEXT) ["bash", "-c", "tar c --owner=0 --group=0 --mtime=@0 text | xz | xz -d | tar xO | sha1sum"];
    plain tar_j(TEXT) ["tar", "cJf", "/dev/null", "text"];
    // shells
    plain bash_loop("") ["bash", "-c", "for ((i=0;i<2000;i++)); do s=$((s+i*i)); a[i%10]=$s; done; echo ${a[@]}"];
    plain bash_pipeline(TEXT) ["bash", "-c", "cat text | tr a-z A-Z | sort -k3 | uniq -c | tail -3; echo $?"];
    traced bash_pipeline_traced(TEXT) ["bash", "-c", "cat text | tr a-z A-Z | sort -k3 | uniq -c | tail -3; echo $?"];
    plain bash_subshells("") ["bash", "-c", "for i in 1 2 3 4 5 6 7 8; do (exit $i); echo $?; x=$(echo $i); done; echo $x"];
    plain bash_trap("") ["bash", "-c", "trap 'echo got; exit 3' USR1; kill -USR1 $BASHPID; echo no"];
    plain bash_killed("") ["bash", "-c", "kill -SEGV $$"];
    plain bash_job_control("") ["bash", "-c", "set -m; exec 2>/dev/null; sleep 20 & kill -KILL %1; wait %1; echo $?"];
    plain bash_coproc("") ["bash", "-c", "coproc cat; echo hello >&${COPROC[1]}; read -u ${COPROC[0]} x; echo $x; kill $COPROC_PID"];
    plain dash("") ["dash", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; echo $i; exit 4"];
    traced find_xargs("mkdir -p d/e; for i in 1 2 3 4 5; do echo $i > d/e/$i; done") ["bash", "-c", "find d -type f -print0 | sort -z | xargs -0 -n2 -P1 cat"];
    plain xargs_parallel("") ["bash", "-c", "seq 40 | xargs -P4 -n1 expr 1 + | sort -n | tail -2"];
    plain script("printf '#!/bin/bash\\necho $0 $1; exit 5\\n' > s; chmod +x s") ["./s", "x"];
    traced script_env("printf '#!/usr/bin/env -S perl -w\\nprint \"p @ARGV\\n\"\\n' > s; chmod +x s") ["bash", "-c", "./s y; echo $?"];
    traced script_chain("printf '#!/bin/sh\\necho inner $@\\n' > i; printf '#!/bin/sh\\n./i $@; exit 9\\n' > o; chmod +x i o") ["./o", "z"];
    // interpreters
    plain perl("") ["perl", "-e", "my %h; for (1..20000) { $h{$_ % 977} .= chr(65 + $_ % 26) } my $n = 0; for (sort keys %h) { $n++ while $h{$_} =~ /[AEIOU].?[^XYZ]/g } print \"$n\\n\""];
    plain perl_fork("") ["perl", "-e", "for (1..5) { my $p = fork; if (!$p) { exit $_ } waitpid $p, 0; print $? >> 8, qq{\\n} } print `echo sub`"];
    plain perl_die("") ["perl", "-e", "$SIG{ALRM} = sub { die qq{alarm\\n} }; alarm 1; 1 while 1"];
    plain python_objects("") ["/usr/bin/python3", "-c", "import json\nclass A:\n  def __init__(s, i): s.i = i\nl = [A(i) for i in range(5000)]\nd = json.dumps({str(a.i): [a.i, str(a.i * 3)] for a in l})\nprint(len(d), sum(v[0] for v in json.loads(d).values()))"];
    plain python_exception("") ["/usr/bin/python3", "-c", "import sys\ntry: 1/0\nexcept ZeroDivisionError as e: print(e)\nsys.exit('bye')"];
    plain python_threads("") ["/usr/bin/python3", "-c", "import threading, queue\nq = queue.Queue()\ndef f(n):\n  for i in range(500): q.put(n * i)\nt = [threading.Thread(target=f, args=(n,)) for n in range(8)]\n[x.start() for x in t]; [x.join() for x in t]\nprint(sum(q.get() for _ in range(4000)))"];
    plain python_subprocess("") ["/usr/bin/python3", "-c", "import subprocess\nfor i in range(3): print(subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit %d' % i], capture_output=True))"];
    traced python_subprocess_traced("") ["/usr/bin/python3", "-c", "import subprocess\nprint(subprocess.check_output('expr 6 \\\\* 7', shell=True))"];
    plain python_multiprocessing("") ["/usr/bin/python3", "-c", "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n  with m.get_context('fork').Pool(3) as p: print(sum(p.map(f, range(200))))"];
    traced python_spawn("cat > m.py <<'E'\nimport multiprocessing as m\ndef f(x): return x + 1\nif __name__ == '__main__':\n  with m.get_context('spawn').Pool(2) as p: print(p.map(f, range(5)))\nE") ["/usr/bin/python3", "m.py"];
    plain python_asyncio("") ["/usr/bin/python3", "-c", "import asyncio\nasync def f(n):\n  await asyncio.sleep(0.01 * n)\n  return n\nasync def main(): print(await asyncio.gather(*[f(n) for n in range(20)]))\nasyncio.run(main())"];
    plain python_signals("") ["/usr/bin/python3", "-c", "import signal, time\nn = 0\ndef h(s, f):\n  global n; n += 1\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)\nx = 0\nwhile n < 50: x += 1\nsignal.setitimer(signal.ITIMER_REAL, 0)\nprint('done')"];
    plain python_ctypes("") ["/usr/bin/python3", "-c", "import ctypes\nl = ctypes.CDLL(None)\nC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\na = (ctypes.c_int * 50)(*[i * 37 % 50 for i in range(50)])\nl.qsort(a, 50, 4, C(lambda p, q: p[0] - q[0]))\nprint(list(a))"];
    plain python_sqlite_zlib("") ["/usr/bin/python3", "-c", "import sqlite3, zlib, hashlib\nc = sqlite3.connect(':memory:'); c.execute('create table t(a, b)')\nc.executemany('insert into t values(?, ?)', ((i, str(i)) for i in range(2000)))\nprint(c.execute('select sum(a), max(b) from t').fetchone(), hashlib.sha256(zlib.compress(b'abc' * 9999)).hexdigest())"];
    plain python_faulthandler("") ["/usr/bin/python3", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"];
    plain node("echo 'let s = 0; for (let i = 0; i < 3e5; i++) s = (s * 31 + i) | 0; console.log(s, JSON.stringify([...\"abc\"].map(c => c + 1)));' > a.js") ["node", "a.js"];
    plain node_async("echo 'const fs = require(\"fs\"); fs.readFile(\"a.js\", (e, d) => setTimeout(() => { console.log(d.length); process.exit(6) }, 20));' > a.js") ["node", "a.js"];
    plain java("cat > A.java <<'E'\nimport java.util.*;\npublic class A { public static void main(String[] a) throws Exception { Map<Integer,String> m = new TreeMap<>(); for (int i = 0; i < 20000; i++) m.put(i * 7919 % 10007, \"v\" + i); Thread t = new Thread(() -> System.out.println(\"thread\")); t.start(); t.join(); Object o = null; try { o.hashCode(); } catch (NullPointerException e) { System.out.println(\"npe\"); } System.out.println(m.size() + m.get(5)); System.exit(3); } }\nE\njavac A.java") ["java", "A"];
    plain java_interpreted("printf 'public class A { public static void main(String[] a) { System.out.println(6 * 7); } }' > A.java; javac A.java") ["java", "-Xint", "-XX:+UseSerialGC", "-Xshare:auto", "A"];
    // compilers
    plain gcc(SOURCE) ["gcc", "-O2", "-c", "-o", "a.o", "a.c"];
    traced gcc_traced(SOURCE) ["bash", "-c", "gcc -O2 -o a a.c && ./a; echo $?"];
    plain cc1_assembly(SOURCE) ["gcc", "-O3", "-S", "-o", "-", "a.c"];
    traced gxx_traced("printf '#include <iostream>\\n#include <map>\\nint main() { std::map<int, int> m; m[3] = 4; std::cout << m[3] << std::endl; }' > a.cc") ["bash", "-c", "g++ -o a a.cc && ./a"];
    traced rustc("echo 'fn main() { let v: Vec<u32> = (0..9).collect(); println!(\"{v:?}\") }' > a.rs") ["bash", "-c", "rustc --emit=metadata --crate-name a -o a.rmeta a.rs && echo built; echo $?"];
    traced make_j2("for i in 1 2 3; do echo \"int f$i(void) { return $i; }\" > f$i.c; done; echo 'int f1(void), f2(void), f3(void); int main(void) { return f1() + f2() + f3(); }' > m.c; printf 'm: m.o f1.o f2.o f3.o\\n\\tgcc -o m $^\\n%%.o: %%.c\\n\\t@gcc -c -o $@ $<\\n' > Makefile") ["bash", "-c", "make -s -j2 && ./m; echo $?"];
    plain openmp(need("gcc", "printf '#include <stdio.h>\nint main(void) { long s = 0;\n#pragma omp parallel for reduction(+:s) num_threads(4)\nfor (int i = 0; i < 100000; i++) s += i; printf(\"%%ld\\\\n\", s); }\n' > a.c; gcc -O2 -fopenmp -o a a.c")) ["./a"];
    traced gcc_link_time(SOURCE) ["bash", "-c", "gcc -O2 -flto -o a a.c && ./a; echo $?"];
    traced script_terminal("") ["script", "-qec", "echo hi; test -t 0 && echo terminal; exit 3", "/dev/null"];
    plain java_zgc(need("java javac", JAVA_THREADS)) ["java", "-XX:+UseZGC", "A"];
    traced sanitizers(need("gcc", SANITIZED)) ["bash", "-c", "for s in address undefined thread; do ./$s > out 2>&1; echo $s $? $(grep -c 'ERROR\\|WARNING\\|runtime error' out); done"];
    plain objdump("cp /bin/true t") ["objdump", "-d", "--section=.text", "t"];
    plain readelf("cp /bin/true t") ["readelf", "-a", "t"];
    traced nm_ld(SOURCE) ["bash", "-c", "gcc -c a.c && ld -r -o b.o a.o && nm b.o; echo $?"];
    // databases, version control, cryptography, editors, debuggers
    plain sqlite3("") ["sqlite3", ":memory:", "create table t(a integer primary key, b text); with recursive c(n) as (select 1 union all select n + 1 from c where n < 5000) insert into t select n, hex(n * 7919) from c; create index i on t(b); select count(*), sum(a), max(b) from t where b between '31' and '35'; select substr(b, 1, 2) as k, count(*) from t group by k order by 2 desc, 1 limit 3;"];
    plain git_log("git init -q .; git config user.email a@b; git config user.name n; for i in 1 2 3; do echo $i > f; git add f; GIT_AUTHOR_DATE=\"100000000$i +0000\" GIT_COMMITTER_DATE=\"100000000$i +0000\" git commit -qm c$i; done") ["git", "log", "--stat", "--format=%H %s"];
    traced git_session("") ["bash", "-c", "export GIT_AUTHOR_DATE='1000000001 +0000' GIT_COMMITTER_DATE='1000000001 +0000'; git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm one && git log --format=%H%s && git gc -q && git fsck"];
    plain openssl_digest(TEXT) ["openssl", "dgst", "-sha512", "text"];
    plain openssl_cipher(TEXT) ["openssl", "enc", "-aes-256-gcm", "-K", "00", "-iv", "00", "-in", "text"];
    plain openssl_aes(TEXT) ["bash", "-c", "openssl enc -aes-128-cbc -K 0011 -iv 22 -in text 2>&1 | sha256sum"];
    plain openssl_prime("") ["openssl", "prime", "-hex", "C90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"];
    plain vim("printf 'one\\ntwo\\n' > f") ["vim", "-es", "-u", "NONE", "-c", "%s/o/0/g", "-c", "%p", "-c", "wq", "f"];
    plain gdb_batch("") ["gdb", "--batch", "-nx", "-ex", "p 6*7"];
    traced psql_version("") ["bash", "-c", "psql --version; echo $?"];
    // more compilers and languages
    plain clang(SOURCE) ["clang", "-O2", "-c", "-o", "a.o", "a.c"];
    traced clang_traced(need("clang", SOURCE)) ["bash", "-c", "clang -O1 -o a a.c && ./a; echo $?"];
    traced cargo_build("# need cargo\nmkdir src; printf '[package]\\nname = \"p\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[workspace]\\n' > Cargo.toml; echo 'fn main() { println!(\"{}\", (1..=20u64).product::<u64>()) }' > src/main.rs") ["bash", "-c", "cargo build --offline -q 2>/dev/null && ./target/debug/p"];
    plain go_program(need("go", GO)) ["./a"];
    plain go_collects_garbage(need("go", GO_GARBAGE)) ["./a"];
    traced go_build("# need go\nprintf 'package main\\nfunc main() { println(6 * 7) }\\n' > a.go; export HOME=$PWD; GOFLAGS=-p=2 go build -o warm a.go") ["bash", "-c", "export HOME=$PWD; echo '// changed' >> a.go; go build -o a a.go && ./a 2>&1"];
    plain luajit("") ["luajit", "-e", "local s, t = 0, {} for i = 1, 3e6 do s = (s * 31 + i) % 1000003 t[i % 97] = s end local c = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield(i) end end) for i = 1, 1000 do s = s + c() end print(s, #t, pcall(error, 'x'))"];
    plain lua("") ["lua5.4", "-e", "local t = {} for i = 1, 50000 do t[#t + 1] = tostring(i * 7 % 1009) end table.sort(t) print(#table.concat(t), t[1], t[#t])"];
    plain ruby("") ["ruby", "-e", "h = Hash.new(0); 20000.times { |i| h[(i * 7919 % 977).to_s] += i }; p h.size, h.values.max; p 4.times.map { |i| Thread.new { (0..3000).sum * i } }.map(&:value); f = Fiber.new { 3.times { |i| Fiber.yield i }; nil }; p 4.times.map { f.resume }; begin; 1 / 0; rescue => e; p e.message; end; puts `echo sub`; exit 4"];
    plain ruby_forks("") ["ruby", "-e", "5.times { |i| pid = fork { exit!(i + 1) }; Process.wait pid; p $?.exitstatus }; trap('USR1') { puts 'usr1' }; Process.kill('USR1', $$); sleep 0.05"];
    plain php("") ["php", "-r", "$a = []; for ($i = 0; $i < 100000; $i++) { $a[$i % 977] = ($a[$i % 977] ?? 0) + $i; } ksort($a); echo array_sum($a), ' ', md5(serialize($a)), ' ', preg_match_all('/[aeiou]./', str_repeat('interpreters ', 500)), \"\\n\"; exit(5);"];
    plain sbcl("") ["sbcl", "--noinform", "--no-userinit", "--eval", "(progn (defun f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (print (f 22)) (let ((l nil)) (dotimes (i 200000) (push (make-string 16) l)) (print (length l))) (handler-case (error \"x\") (error () (print :caught))) (handler-case (labels ((r (n) (1+ (r (1+ n))))) (r 0)) (storage-condition () (print :deep))) (gc :full t) (print (funcall (compile nil '(lambda (x) (* x 7))) 6)) (terpri) (sb-ext:exit :code 3))"];
    plain pypy("# need pypy3") ["pypy3", "-c", "print(sum(i * i % 7 for i in range(1000000)), len({str(i) for i in range(20000)}))"];
    plain guile("") ["guile", "--no-auto-compile", "-c", "(display (let f ((n 20)) (if (< n 2) n (+ (f (- n 1)) (f (- n 2)))))) (newline) (exit 3)"];
    plain tcl("echo 'set s 0; for {set i 0} {$i < 20000} {incr i} {incr s $i}; puts $s; exit 2' > a.tcl") ["tclsh", "a.tcl"];
    plain gforth("") ["gforth", "-e", ": f 0 100000 0 do i + loop . ; f bye"];
    traced erlang("") ["erl", "-noshell", "-eval", "P = self(), [spawn(fun() -> P ! lists:sum(lists:seq(1, N)) end) || N <- lists:seq(1, 200)], io:format(\"~p~n\", [lists:sum([receive X -> X end || _ <- lists:seq(1, 200)])]), halt(4)."];
    plain java_threads(JAVA_THREADS) ["java", "A"];
    plain node_workers("cat > a.js <<'E'\nconst { Worker, isMainThread, parentPort, workerData } = require('worker_threads');\nif (isMainThread) { let n = 0, s = 0; for (let i = 0; i < 3; i++) new Worker(__filename, { workerData: i }).on('message', v => { s += v; if (++n == 3) console.log(s); }); }\nelse { let s = 0; for (let i = 0; i < 1e5; i++) s = (s * 31 + i + workerData) % 1000003; parentPort.postMessage(s); }\nE") ["node", "a.js"];
    plain node_wasm("cat > a.js <<'E'\nconst b = new Uint8Array([0,97,115,109,1,0,0,0,1,6,1,96,1,127,1,127,3,2,1,0,5,3,1,0,1,7,5,1,1,102,0,0,10,12,1,10,0,32,0,65,7,106,40,2,0,11]);\nconst f = new WebAssembly.Instance(new WebAssembly.Module(b)).exports.f;\nlet s = 0; for (let i = 0; i < 60000; i++) s += f(i & 1023); console.log(s);\ntry { f(65536) } catch (e) { console.log(e.message) }\nE") ["node", "a.js"];
    // servers and their clients
    traced redis("# need redis-server redis-cli redis-benchmark") ["bash", "-c", "redis-server --port 0 --unixsocket $PWD/s --save '' --logfile log & until redis-cli -s s ping 2>/dev/null | grep -q PONG; do sleep 0.1; done; redis-benchmark -s s -n 1000 -c 5 -q -t set,get,lpush >/dev/null; redis-cli -s s set a 7; redis-cli -s s incr a; redis-cli -s s shutdown nosave; wait $!; echo $?"];
    traced nginx("# need nginx curl\nmkdir logs html; echo hello > html/index.html; printf 'daemon off; worker_processes 2; user root; pid nginx.pid; error_log logs/e;\\nevents { worker_connections 64; }\\nhttp { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5; server { listen unix:'\"$PWD\"'/s; root '\"$PWD\"'/html; gzip on; } }\\n' > c") ["bash", "-c", "nginx -p $PWD -c $PWD/c 2>/dev/null & until [ -S s ]; do sleep 0.1; done; for i in 1 2 3 4 5; do curl -s --unix-socket s http://x/; done; curl -s -o /dev/null -w '%{http_code}\\n' --unix-socket s http://x/none; until [ -s nginx.pid ]; do sleep 0.1; done; kill -QUIT $(cat nginx.pid); wait $!; echo $?"];
    traced postgres("# need psql setpriv\nchmod 755 .. .; mkdir d; if [ $(id -u) = 0 ]; then chown postgres d; fi") ["bash", "-c", POSTGRES];
    // media, tools that trace, boxes of tools
    plain ffmpeg("") ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10", "-t", "1", "-threads", "2", "-f", "md5", "-"];
    plain imagemagick("") ["convert-im6.q16", "-size", "120x120", "gradient:red-blue", "-blur", "0x3", "-resize", "50%", "-depth", "8", "rgb:-"];
    plain busybox("") ["busybox", "sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; echo $i | sed s/3/6/; seq 100 | sort -rn | head -2; echo x | md5sum; exit 2"];
    plain openssl_speed("# need openssl") ["bash", "-c", "openssl speed -seconds 1 -bytes 1024 sha256 2>/dev/null | wc -l"];
    plain openssl_speed_multi("# need openssl") ["bash", "-c", "openssl speed -seconds 1 -bytes 64 -multi 2 aes-128-cbc >/dev/null 2>&1; echo $?"];
    plain gdb_reads_symbols("# need gcc\nprintf 'int f(int x) { return x * 3; } int main(void) { return f(2); }' > a.c; gcc -g -o a a.c") ["gdb", "--batch", "-nx", "-ex", "info line f", "-ex", "p sizeof(int)", "./a"];
    plain unshare_user("# need unshare\nunshare -r true") ["bash", "-c", "unshare -r id -u; echo $?"];
    traced unshare_pid("# need unshare\nunshare -r true") ["unshare", "-rpf", "sh", "-c", "echo $$; exit 3"];
    traced tar_zstd(TEXT) ["bash", "-c", "tar c --owner=0 --group=0 --mtime=@0 text | zstd -q -T2 | zstd -dq | tar xO | sha1sum"];
    traced make_eight_objects("# need make gcc\nfor i in $(seq 8); do echo \"int f$i(void) { return $i; }\" > f$i.c; done; printf 'all: $(patsubst %%.c,%%.o,$(wildcard f*.c))\\n\\t@ls *.o | wc -l\\n%%.o: %%.c\\n\\t@gcc -O1 -c -o $@ $<\\n' > Makefile") ["make", "-s", "-j2"];
    plain python_pools("") ["/usr/bin/python3", "-c", "from concurrent.futures import *\nwith ThreadPoolExecutor(8) as e: print(sum(e.map(lambda x: x * x, range(500))))\nimport subprocess, asyncio\nasync def f(i):\n  p = await asyncio.create_subprocess_exec('expr', str(i), '+', '1', stdout=subprocess.PIPE)\n  return int((await p.communicate())[0])\nasync def main(): print(await asyncio.gather(*[f(i) for i in range(6)]))\nasyncio.run(main())"];
}

/// Links and runs the same program in every way an executable can be laid out.
#[test]
fn kinds_of_executables() {
    for (name, words) in [
        ("pie", "gcc -pie -fPIE"),
        ("non_pie", "gcc -no-pie -fno-pie"),
        ("static", "gcc -static -no-pie"),
        ("static_pie", "gcc -static-pie -fPIE"),
        ("bind_now", "gcc -Wl,-z,now"),
        ("lazy", "gcc -Wl,-z,lazy"),
        ("musl", "musl-gcc"),
        ("musl_static", "musl-gcc -static"),
    ] {
        if tools::have(&words.split(' ').take(1).collect::<Vec<_>>()) {
            check(name, false, &format!("{SOURCE}\n{words} -O1 -o a a.c"), &["./a", "one"]);
        }
    }
}
