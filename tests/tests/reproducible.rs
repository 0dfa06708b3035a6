//! The same command twice gives the same profile, byte for byte: addresses, features and environment are the same each time.
//!
//! Python reads the clock, and the vDSO's code takes paths that depend on the time; there all but that function is compared.

use grind_tests::compare::{assert_none, differences};
use grind_tests::run::Job;
use grind_tests::tools;

fn check(words: &[&str], traced: bool) {
    if !tools::have(&words[..1]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("text"), "b 2\na 1\nc 3\n".repeat(300)).expect("a writable folder");
    let job = Job { trace_children: traced, ..Job::new(words.to_vec(), dir.path()) };
    let [first, second] = [job.grind(), job.grind()].map(|run| {
        run.profiles();
        // Process ids name the files and nothing else; processes are in order of their ids.
        run.raw.into_iter().map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect::<Vec<_>>()
    });
    assert_eq!(first.len(), second.len(), "number of profiles");
    for (a, b) in first.iter().zip(&second) {
        let differ: Vec<_> = a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(10).collect();
        assert!(a == b, "{words:?}: the profiles differ: {differ:#?}");
    }
}

macro_rules! twice {
    ($($name:ident $traced:literal $words:expr;)*) => {
        $(#[test] fn $name() { check(&$words, $traced); })*
    };
}

#[test]
fn python3_but_for_the_clock() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let script = "print(sum(len(str(i)) for i in range(20000)), {str(i) for i in range(9)})";
    let job = Job::new(["/usr/bin/python3", "-S", "-B", "-c", script], dir.path());
    let [first, second] = [job.grind().only(), job.grind().only()];
    let clock = |place: &(String, String, u64)| ["clock_gettime", "time", "gettimeofday"].contains(&place.1.as_str());
    assert_none("places in two runs", &differences(&first.ir, &second.ir, clock));
}

twice! {
    static_and_dynamic_start false ["/bin/true"];
    sort false ["sort", "-k2", "text"];
    xz false ["xz", "-c", "text"];
    perl false ["perl", "-e", "my %h; $h{$_ % 77} .= $_ for 1..9999; print join ',', map { $_, $h{$_} } sort keys %h"];
    sqlite3 false ["sqlite3", ":memory:", "select hex(zeroblob(99)), printf('%.3f', 1.5)"];
    gcc true ["bash", "-c", "echo 'int main(void) { return 1; }' > a.c; gcc -pipe -S -o - a.c"];
    shell true ["sh", "-c", "sort -u text; cat text; expr 1 + 1"];
}
