//! Readable names, against those that the reference's demangler gave, and the limits.

use itanium_demangle::demangle;

fn shown(name: &str) -> Option<String> {
    demangle(name.as_bytes()).map(|text| String::from_utf8(text).expect("these names are text"))
}

/// The file alternates mangled names and what the reference makes of them.
#[test]
fn as_the_reference_shows_them() {
    let golden: Vec<&str> = include_str!("golden/names.txt").lines().collect();
    assert!(golden.len() > 400 && golden.len().is_multiple_of(2));
    let wrong: Vec<String> = golden
        .chunks(2)
        .filter(|pair| shown(pair[0]).as_deref() != Some(pair[1]))
        .map(|pair| format!("{}\n  ours      {:?}\n  reference {}", pair[0], shown(pair[0]), pair[1]))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), golden.len() / 2, wrong.join("\n"));
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
