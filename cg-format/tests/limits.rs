//! Faults and odd files, each with the answer that a user sees.

use cg_format::cachegrind::{ReadOptions, read};

#[track_caller]
fn refused(text: &[u8], message: &str) {
    let error = read(text, "x", &ReadOptions::default()).expect_err("it is refused");
    assert_eq!(error.to_string(), message);
}

const HEAD: &str = "cmd: x\nevents: Ir Dr\n";

#[test]
fn faults_are_named_with_their_line() {
    refused(
        b"",
        "x:1: missing a `command:` line: it is empty, as a profile is whose program was killed or goes on, or whose disk was \
         full",
    );
    refused(b"hello\n", "x:1: missing a `command:` line: this is no profile, which would begin with `desc:` or `cmd:`");
    refused(b"events: Ir\n", "x:1: missing a `command:` line");
    refused(b"desc: a\n", "x:2: missing a `command:` line");
    refused(b"cmd:x\n", "x:1: missing a `command:` line");
    refused(b"cmd: x\n", "x:2: missing an `events:` line");
    refused(b"cmd: x\nevents: \n", "x:2: missing an `events:` line");
    refused(b"cmd: x\nevents: Ir Ir\n", "x:2: event `Ir` is listed twice or is not UTF-8");
    let body = |body: &str, message: &str| refused(format!("{HEAD}{body}").as_bytes(), message);
    let events: Vec<String> = (0..257).map(|i| format!("e{i}")).collect();
    refused(
        format!("cmd: x\nevents: {}\n", events.join(" ")).as_bytes(),
        "x:2: more than 256 events: this is no profile",
    );
    body("", "x:3: missing `summary:` line, aborting");
    body("1 2\nsummary: 2 0\n", "x:3: counts or a function before the first `fl=` line");
    body("fn=f\n", "x:3: counts or a function before the first `fl=` line");
    body("fl=a\n1 2 3 4\n", "x:4: malformed or too many event counts");
    body("fl=a\n1 2 x\n", "x:4: malformed or too many event counts");
    body("fl=a\n1x 2\n", "x:4: malformed or too many event counts");
    body("fl=a\n99999999999999999999 1\n", "x:4: the line number is larger than 64 bits hold");
    body("fl=a\n1 9999999999999999999999999999999999999\n", "x:4: a count is larger than 10^36");
    body("fl=a\nfi=b\n", "x:4: malformed line: fi=b");
    body(
        "fl=a\n1 2 3\nsummary: 2\n",
        "x:5: `summary:` line doesn't match computed total\n- summary:  [2, 0]\n- computed: [2, 3]",
    );
}

#[test]
fn a_file_without_lines_is_refused_before_it_fills_the_memory() {
    struct Zeros;
    impl std::io::Read for Zeros {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(0);
            Ok(buffer.len())
        }
    }
    let error = read(Zeros, "x", &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "x:1: a line is longer than 16 MiB: this is no profile");
}

#[test]
fn sums_beyond_64_bits_are_exact() {
    let text = format!("{HEAD}fl=a\nfn=f\n{}summary: 36893488147419103228 0\n", "1 9223372036854775807\n".repeat(4));
    let profile = read(text.as_bytes(), "x", &ReadOptions::default()).unwrap();
    assert_eq!(profile.total(), [4 * i128::from(i64::MAX), 0]);
    let function = profile.files().next().unwrap().functions().nth(1).unwrap();
    assert_eq!(function.rows().count(0, 0), 4 * i128::from(i64::MAX));
}

#[test]
fn crlf_and_missing_ends_are_fine() {
    let text = "cmd: x\r\nevents: Ir\r\n# note\r\n\r\nfl=a\r\nfn=f\r\n1 5\r\nsummary: 5";
    let profile = read(text.as_bytes(), "x", &ReadOptions::default()).unwrap();
    assert_eq!(profile.header.cmd, b"x");
    let file = profile.files().next().unwrap();
    assert_eq!(file.name(), b"a");
    assert_eq!(file.functions().nth(1).unwrap().name(), b"f");
    assert_eq!(profile.total(), [5]);
}
