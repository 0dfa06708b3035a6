//! The same command twice gives the same profile, byte for byte: addresses, features and environment are the same each time.
//! How calls and returns are translated makes no difference, nor how new code is asked for, nor from when on emitted code follows calls.
//!
//! Hash seeds are fixed by the harness. Python also reads the clock; that is a system call here, as the vDSO is hidden. Sort is told how
//! much memory to take: else it takes another way where less than an eighth of the machine's is free.

use grind_tests::run::Job;
use grind_tests::tools;

fn check(words: &[&str], traced: bool) {
    if !tools::have(&words[..1]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("text"), "b 2\na 1\nc 3\n".repeat(300)).expect("a writable folder");
    let job = Job { trace_children: traced, ..Job::new(words.to_vec(), dir.path()) };
    let first = with(&job, &[]);
    let others =
        [("again", ""), ("calls in pairs", "--pair-calls-from=0"), ("no calls in pairs", "--pair-calls-from=1048576")];
    for (what, option) in others {
        let options: &[&str] = if option.is_empty() { &[] } else { &[option] };
        same(words, what, &first, &with(&job, options));
    }
    // Asked for with stops and without, code is simulated alike.
    for tool in ["--tool=cachegrind", "--tool=callgrind"] {
        let [stops, asks] = ["--beside=never", "--beside=always"].map(|beside| {
            with(&job, &[tool, "--I1=4096,2,32", "--D1=2048,2,32", "--LL=65536,4,64", "--branch-sim=yes", beside])
        });
        same(words, tool, &stops, &asks);
    }
    // When calls cease to be told is up to chance.
    let [followed, ways @ ..] = ["--told-first=0", "--told-first=3", "--told-first=1000", "--tell-calls=yes"]
        .map(|way| (way, with(&job, &["--tool=callgrind", "--collect-jumps=yes", way])));
    for (way, told) in ways {
        same(words, way, &followed.1, &told);
    }
}

/// The profiles of all processes, in order of their ids. (These name the files and, but for callgrind's header, nothing else.)
fn with(job: &Job<'_>, options: &[&str]) -> Vec<String> {
    let words = tools::under_test().iter().cloned().chain(options.iter().map(|&option| option.to_owned()));
    let run = job.profiled(&words.collect::<Vec<_>>());
    match options.contains(&"--tool=callgrind") {
        true => run.check_calls(),
        false => drop(run.profiles()),
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let named = |line: &&str| !line.starts_with("pid: ");
    run.raw.into_iter().map(|(_, bytes)| text(bytes).lines().filter(named).collect::<Vec<_>>().join("\n")).collect()
}

fn same(words: &[&str], what: &str, first: &[String], other: &[String]) {
    assert_eq!(first.len(), other.len(), "number of profiles ({what})");
    for (a, b) in first.iter().zip(other) {
        let differ: Vec<_> = a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(10).collect();
        assert!(a == b, "{words:?}: the profiles differ ({what}): {differ:#?}");
    }
}

macro_rules! twice {
    ($($name:ident $traced:literal $words:expr;)*) => {
        $(#[test] fn $name() { check(&$words, $traced); })*
    };
}

twice! {
    static_and_dynamic_start false ["/bin/true"];
    sort false ["sort", "-S1M", "-k2", "text"];
    xz false ["xz", "-c", "text"];
    python3 false ["/usr/bin/python3", "-S", "-B", "-c", "print(sum(len(str(i)) for i in range(20000)), {str(i) for i in range(9)})"];
    perl false ["perl", "-e", "my %h; $h{$_ % 77} .= $_ for 1..9999; print join ',', map { $_, $h{$_} } sort keys %h"];
    sqlite3 false ["sqlite3", ":memory:", "select hex(zeroblob(99)), printf('%.3f', 1.5)"];
    gcc true ["bash", "-c", "echo 'int main(void) { return 1; }' > a.c; gcc -pipe -S -o - a.c"];
    shell true ["sh", "-c", "sort -S1M -u text; cat text; expr 1 + 1"];
}
