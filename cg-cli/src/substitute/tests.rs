//! Substitutions against results computed with the reference's regular expressions.

use super::*;

#[track_caller]
fn check(argument: &str, name: &str, expected: &str) {
    let substitution = Substitution::parse(argument).unwrap_or_else(|error| panic!("{error}"));
    let result = substitution.apply(name.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(result).unwrap(), expected, "{argument} on {name}");
}

#[track_caller]
fn refused(argument: &str, at: usize, cause: &str) {
    let error = Substitution::parse(argument).err().unwrap_or_else(|| panic!("{argument} was accepted"));
    assert_eq!((error.at, error.cause.as_str()), (at, cause), "{argument}");
}

#[test]
fn the_form_is_that_of_sed() {
    check("s/a/b/", "banana", "bbnana");
    check("s/a/b/g", "banana", "bbnbnb");
    check("s/A/b/gi", "banana", "bbnbnb");
    check("s/A/b/ig", "banana", "bbnbnb");
    check("s/A/b/i", "banana", "bbnana");
    check(r"s/v[12]\//vN\//", "./v1/a.c", "./vN/a.c");
    check("s//x/", "ab", "xab");
    check("s/a//g", "banana", "bnn");
    // With slashes to spare the last ones count.
    check("s/a/b/c/", "xa/by", "xcy");
}

#[test]
fn groups_are_filled_in() {
    check(r"s/(\w+)\.(\w+)/\2.\1/", "table.c", "c.table");
    check(r"s/(?P<stem>\w+)\.c/\g<stem>/", "table.c", "table");
    check(r"s/(a)|(b)/[\1\2]/g", "ab", "[a][b]");
    check(r"s/(a)(b)?/<\2>/", "ac", "<>c");
    check(r"s/b/\g<0>\g<0>/", "abc", "abbc");
    check(r"s/b/\\n\t\.\101/", "abc", "a\\n\t\\.Ac");
    check(r"s/b/\0x\07/", "b", "\0x\x07");
}

#[test]
fn look_around_and_references_work() {
    check(r"s/(?<=foo)bar/X/", "barfoobar", "barfooX");
    check(r"s/(?<!foo)bar/X/", "foobarbar", "foobarX");
    check(r"s/foo(?=bar)/X/", "foo foobar", "foo Xbar");
    check(r"s/foo(?!bar)/X/", "foobar foo", "foobar X");
    check(r"s/(\w)\1/<\1>/g", "aabbc", "<a><b>c");
    check(r"s/(?P<q>.)x(?P=q)/-/", "axbxb", "ax-");
    check(r"s/(<)?(\w+)(?(1)>|!)/X/g", "<a> b!", "X X");
    check(r"s/(?>a+)b/X/", "aab", "X");
    check(r"s/(a)\1{2}/X/", "aaa", "X");
}

#[test]
fn empty_matches_follow_pythons_rule() {
    check("s/x*/-/g", "abxd", "-a-b--d-");
    check("s/|a/-/g", "ab", "---b-");
    check("s/$/X/", "ab", "abX");
    check("s/^/X/g", "ab", "Xab");
    check(r"s/\b/|/g", "ab c", "|ab| |c|");
    check("s/x*/-/g", "é", "-é-");
}

/// Nothing is looked for twice: at each place there is an empty match, and the next other one is far away, or nowhere.
#[test]
fn empty_matches_take_time_as_the_name_is_long() {
    let name = "-".repeat(100_000) + "b";
    let start = std::time::Instant::now();
    for (argument, expected) in [("s/|b/x/g", "x-".repeat(100_000) + "xxx"), ("s/|a/x/g", "x-".repeat(100_000) + "xbx")]
    {
        let substitution = Substitution::parse(argument).unwrap();
        assert!(substitution.apply(name.as_bytes()).unwrap() == expected.as_bytes(), "{argument}");
    }
    // A hundredth of that, where it is not the square.
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn spellings_of_python_mean_what_they_mean_there() {
    check("s/a{,2}/X/", "aaa", "Xa");
    check("s/a{/X/", "a{b", "Xb");
    check("s/{}/X/", "a{}", "aX");
    check("s/{a}/X/", "{a}", "X");
    check("s/[[a]/X/g", "[ab]", "XXb]");
    check("s/[]a]/X/g", "[ab]", "[XbX");
    check("s/[a&&b]/X/g", "a&c", "XXc");
    check("s/[a-]/X/g", "a-b", "XXb");
    check("s/[+--]/Y/g", "+,-.", "YYY.");
    check(r"s/[\w.]+/X/", "a.b c", "X c");
    check(r"s/[\101\x42\u0043]+/X/", "ABCD", "XD");
    check(r"s/\101/X/", "A", "X");
    check(r"s/\x41\060/X/", "A0", "X");
    check(r"s/a\Z/X/", "aa", "aX");
    check("s/(?i)A/X/", "a", "X");
    check("s/(?i:A)b/X/", "ab", "X");
    check("s/(?x) a b # c/X/", "ab", "X");
    check("s/a(?#b)c/X/", "ac", "X");
    check(r"s/\./_/g", "a.b.c", "a_b_c");
    check(r"s/~~<>#&-/X/", "~~<>#&-", "X");
    check("s/é+/e/", "caféé", "cafe");
    check(r"s/operator\(\)<.*?>/op/", "f::operator()<int>::g<x>", "f::op::g<x>");
    check("s/a++b/X/", "aab", "X");
}

#[test]
fn faults_are_named_at_their_character() {
    refused("x/a/b/", 0, "a substitution must start with `s/`");
    refused("s/a/b", 5, "a substitution must have the form `s/old/new/`");
    refused("", 0, "a substitution must start with `s/`");
    refused("s/", 2, "a substitution must have the form `s/old/new/`");
    refused("s//", 3, "a substitution must have the form `s/old/new/`");
    refused("s/a/b/x", 6, "unknown flag `x`: only g and i are known");
    refused("s/a/b/gg", 7, "flag `g` is given twice");
    refused("s/a(b/c/", 3, "missing ), unterminated group");
    refused("s/ab)/c/", 4, "unbalanced parenthesis");
    refused("s/a[b/c/", 3, "unterminated character set");
    refused(r"s/\/[b-a]/c/", 5, "bad character range");
    refused("s/*a/b/", 2, "nothing to repeat");
    refused("s/a(?:*)/b/", 6, "nothing to repeat");
    refused("s/a**/b/", 4, "multiple repeat");
    refused("s/a{3,2}/b/", 3, "min repeat greater than max repeat");
    refused(r"s/a\h/b/", 3, "bad escape \\h");
    refused(r"s/a\K/b/", 3, "bad escape \\K");
    refused(r"s/(a)\2/b/", 6, "invalid group reference 2");
    refused(r"s/(a\1)/b/", 5, "cannot refer to an open group");
    refused(r"s/a/\1/", 5, "invalid group reference 1");
    refused(r"s/a/\g<x>/", 7, "unknown group name `x`");
    refused(r"s/a/\q/", 4, "bad escape \\q");
    refused("s/a(?i)b/c/", 3, "global flags not at the start of the expression");
    refused("s/(?<n>a)/c/", 3, "unknown extension ?<");
    refused("s/(?P<1>a)/c/", 6, "bad character in group name `1`");
    refused(r"s/\x4/c/", 2, "incomplete escape \\x: 2 hexadecimal digits are needed");
}

#[test]
fn a_message_points_at_the_fault() {
    let message = Substitution::parse("s/a(b/c/").unwrap_err().to_string();
    assert_eq!(message, "missing ), unterminated group at character 4\n  s/a(b/c/\n     ^");
}

#[test]
fn names_need_not_be_utf8() {
    let substitution = Substitution::parse("s/f(.)/[\\1]/").unwrap();
    assert_eq!(substitution.apply(b"caf\xe9\xff.c").unwrap(), b"ca[\xe9]\xff.c");
}

#[test]
fn an_expression_that_explodes_ends_with_an_error() {
    let substitution = Substitution::parse(r"s/^(?:(a+)+\1)+$/x/").unwrap();
    let name = [b"a".repeat(60), b"!".to_vec()].concat();
    let error = substitution.apply(&name).unwrap_err();
    assert!(error.to_string().contains("takes too long"), "{error}");
}
