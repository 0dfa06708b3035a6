//! The same command twice gives the same profile, byte for byte: addresses, features and environment are the same each time.
//! How calls and returns are translated makes no difference.
//!
//! Hash seeds are fixed by the harness. Python also reads the clock; that is a system call here, as the vDSO is hidden.

use grind_tests::run::Job;
use grind_tests::tools;

fn check(words: &[&str], traced: bool) {
    if !tools::have(&words[..1]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("text"), "b 2\na 1\nc 3\n".repeat(300)).expect("a writable folder");
    let job = Job { trace_children: traced, ..Job::new(words.to_vec(), dir.path()) };
    let paired = |from: &str| {
        let option = format!("--pair-calls-from={from}");
        job.profiled(&tools::under_test().iter().cloned().chain([option]).collect::<Vec<_>>())
    };
    let [first, second, pairs, none] = [job.grind(), job.grind(), paired("0"), paired("1048576")].map(|run| {
        run.profiles();
        // Process ids name the files and nothing else; processes are in order of their ids.
        run.raw.into_iter().map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect::<Vec<_>>()
    });
    for (what, other) in [("again", &second), ("calls in pairs", &pairs), ("no calls in pairs", &none)] {
        assert_eq!(first.len(), other.len(), "number of profiles ({what})");
        for (a, b) in first.iter().zip(other) {
            let differ: Vec<_> = a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(10).collect();
            assert!(a == b, "{words:?}: the profiles differ ({what}): {differ:#?}");
        }
    }
}

macro_rules! twice {
    ($($name:ident $traced:literal $words:expr;)*) => {
        $(#[test] fn $name() { check(&$words, $traced); })*
    };
}

twice! {
    static_and_dynamic_start false ["/bin/true"];
    sort false ["sort", "-k2", "text"];
    xz false ["xz", "-c", "text"];
    python3 false ["/usr/bin/python3", "-S", "-B", "-c", "print(sum(len(str(i)) for i in range(20000)), {str(i) for i in range(9)})"];
    perl false ["perl", "-e", "my %h; $h{$_ % 77} .= $_ for 1..9999; print join ',', map { $_, $h{$_} } sort keys %h"];
    sqlite3 false ["sqlite3", ":memory:", "select hex(zeroblob(99)), printf('%.3f', 1.5)"];
    gcc true ["bash", "-c", "echo 'int main(void) { return 1; }' > a.c; gcc -pipe -S -o - a.c"];
    shell true ["sh", "-c", "sort -u text; cat text; expr 1 + 1"];
}
