//! Readable names, against those that the reference's demangler gave, and the limits.

use itanium_demangle::demangle;

fn shown(name: &str) -> Option<String> {
    demangle(name.as_bytes()).map(|text| String::from_utf8(text).expect("these names are text"))
}

/// Compares with a file that alternates mangled names and what the reference makes of them, which may be nothing.
fn compare(golden: &str) {
    let golden: Vec<&str> = golden.lines().collect();
    assert!(golden.len() > 200 && golden.len().is_multiple_of(2));
    let wrong: Vec<String> = golden
        .chunks(2)
        .filter(|pair| shown(pair[0]).as_deref().unwrap_or(pair[0]) != pair[1])
        .map(|pair| format!("{}\n  ours      {:?}\n  reference {}", pair[0], shown(pair[0]), pair[1]))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), golden.len() / 2, wrong.join("\n"));
}

#[test]
fn as_the_reference_shows_them() {
    compare(include_str!("golden/names.txt"));
}

/// Names that hardly any compiler writes, made by a grammar: what the reference shows or refuses, right or wrong.
#[test]
fn rare_names_are_shown_or_refused_as_by_the_reference() {
    compare(include_str!("golden/rare.txt"));
}

#[test]
fn what_is_not_mangled_has_no_other_form() {
    let long = format!("_Z1100{}v", "a".repeat(1100));
    for name in ["", "main", "_Zebra", "_Z", "_ZN3fooE@@V1", "_ZN3foo", "_GLOBAL__sub_I_main", &long] {
        assert_eq!(shown(name), None, "{name}");
    }
}

/// The reference gives up beyond 1024 bytes.
#[test]
fn the_longest_name() {
    let long = format!("_Z1017{}v", "a".repeat(1017));
    assert_eq!(shown(&long), Some(format!("{}()", "a".repeat(1017))));
}

/// Each type of the list is a pair of the one before.
#[test]
fn what_stands_for_too_much_is_refused() {
    let doubled = |times: usize| {
        let digit = |i: usize| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
        let pairs: String = (1..=times).map(|i| format!("S0_IS{0}_S{0}_E", digit(i))).collect();
        shown(&format!("_Z1f1aSt4pairIS_S_E{pairs}"))
    };
    assert_eq!(doubled(0).as_deref(), Some("f(a, std::pair<a, a>)"));
    assert!(doubled(10).is_some_and(|text| text.len() > 10_000));
    assert_eq!(doubled(30), None);
}

/// What is tried and undone within itself must not be tried twice as often at each level.
#[test]
fn nested_attempts_end() {
    let start = std::time::Instant::now();
    for piece in ["F1fIXsr4mainIE4m", "1fIXsr4mainI", "sr1aIXsr1bIX", "cvT_IX"] {
        let _ = shown(&format!("_Z1a{}", piece.repeat(1000 / piece.len())));
        let _ = shown(&format!("_Z1aF1fIX{}", piece.repeat(900 / piece.len())));
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

/// Deep names must not exhaust the stack of a test thread, whether they are demangled or not.
#[test]
fn deep_names() {
    let pointers = |n: usize| format!("_Z1f{}i", "P".repeat(n));
    assert_eq!(shown(&pointers(300)), Some(format!("f(int{})", "*".repeat(300))));
    let functions = format!("_Z1f{}i{}", "PF".repeat(330), "iE".repeat(330));
    let templates = format!("_Z1f{}i{}", "1AI".repeat(250), "E".repeat(250));
    let locals = format!("_Z{}1fvE1gv", "Z".repeat(200));
    let expressions = format!("_Z1fIXn{}Li1EEEvv", "gng".repeat(300));
    for name in [pointers(1015), functions, templates, locals, expressions] {
        let _ = shown(&name);
    }
}
