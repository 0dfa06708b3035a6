//! The areas of the code that one may want to test alone, and the tests of each. What belongs to an area is said here only.

/// A part of the tests.
pub(crate) struct Area {
    /// What one types.
    pub(crate) name: &'static str,
    /// What it is about.
    pub(crate) about: &'static str,
    /// Arguments of `cargo test`, a run each.
    pub(crate) runs: &'static [&'static [&'static str]],
    /// Whether it compares with files that `bless` writes anew.
    pub(crate) golden: bool,
}

const fn area(name: &'static str, about: &'static str, golden: bool, runs: &'static [&'static [&'static str]]) -> Area {
    Area { name, about, runs, golden }
}

/// All areas.
pub(crate) const AREAS: &[Area] = &[
    area("listings", "emitted code, byte by byte", true, &[&["-p", "grind-codegen", "--lib", "tests"]]),
    area(
        "ground",
        "what the engine stands on: addresses, layout, instructions, the encoder, ptrace, records",
        false,
        &[&[
            "-p",
            "grind-types",
            "-p",
            "grind-layout",
            "-p",
            "grind-isa",
            "-p",
            "grind-asm",
            "-p",
            "grind-ptrace",
            "-p",
            "grind-trace",
        ]],
    ),
    area(
        "engine",
        "the engine by itself",
        false,
        &[
            &["-p", "grind-fragments", "-p", "grind-codegen", "-p", "grind-code-cache", "-p", "grind-guest"],
            &["-p", "grind-session", "-p", "grind-engine"],
        ],
    ),
    area(
        "semantics",
        "programs do under grind what they do natively",
        false,
        &[&["-p", "grind-tests", "--", "semantics::"], &["-p", "grind-tests", "--", "processes::"]],
    ),
    area(
        "counts",
        "counts equal Valgrind's and those of single steps",
        false,
        &[&["-p", "grind-tests", "--", "static_oracle::", "dynamic_oracle::", "reproducible::"]],
    ),
    area(
        "caches",
        "caches and branch prediction",
        false,
        &[
            &["-p", "cg-sim", "-p", "grind-objects"],
            &["-p", "grind-engine", "--test", "simulation"],
            &["-p", "grind-tests", "--", "cache_oracle::", "dynamic_simulation::", "objects::"],
            &["-p", "grind-tests", "--", "levels::", "tlbs::", "distances::", "sharing::", "sharing_order::"],
        ],
    ),
    area(
        "calls",
        "call graphs",
        false,
        &[
            &["-p", "cg-calls"],
            &[
                "-p",
                "grind-tests",
                "--",
                "callgrind_followed::",
                "callgrind_oracle::",
                "callgrind_options::",
                "callgrind_simulation::",
                "codspeed::",
                "frames::",
            ],
        ],
    ),
    area(
        "contexts",
        "contexts of the statistics",
        false,
        &[&["-p", "grind-tests", "--", "contexts::"], &["-p", "grind-client-requests"]],
    ),
    area("formats", "readers and writers of profiles", false, &[&["-p", "cg-format"], &["-p", "grind-fuzz"]]),
    area(
        "names",
        "functions, files and lines from debug information, and of code that is made",
        false,
        &[&["-p", "grind-symbols", "-p", "grind-names"]],
    ),
    area("analysis", "from counts and records to profiles", false, &[&["-p", "grind-analysis"]]),
    area("runner", "options, log, profiles of a run", false, &[&["-p", "grind"]]),
    area(
        "reports",
        "what the post-processors print",
        true,
        &[&[
            "-p",
            "cg-annotate",
            "-p",
            "cg-merge",
            "-p",
            "cg-diff",
            "-p",
            "mem-annotate",
            "-p",
            "callgrind-annotate",
            "-p",
            "cg-model",
            "-p",
            "cg-export",
            "-p",
            "cg-cli",
        ]],
    ),
    area(
        "manuals",
        "manual pages and completions",
        true,
        &[
            &["-p", "grind", "--", "manual::"],
            &[
                "-p",
                "cg-annotate",
                "-p",
                "cg-merge",
                "-p",
                "cg-diff",
                "-p",
                "mem-annotate",
                "-p",
                "callgrind-annotate",
                "-p",
                "cg-export",
                "-p",
                "cg-report",
                "-p",
                "cargo-grind",
                "--bins",
            ],
            &["-p", "cg-control", "--lib"],
        ],
    ),
    area(
        "page",
        "the page of cg_report, from the side of Rust",
        false,
        &[&["-p", "cg-report"], &["-p", "grind-tests", "--", "live::"]],
    ),
    area("cargo", "profiling what cargo runs", false, &[&["-p", "cargo-grind"]]),
    area(
        "control",
        "talking to a run, and the live view",
        false,
        &[
            &["-p", "callgrind-control", "-p", "cg-control", "-p", "cg-top"],
            &["-p", "grind", "--", "live::"],
            &["-p", "grind-tests", "--", "control::", "callgrind_control::", "collection::"],
        ],
    ),
    area(
        "book",
        "the commands of README and book, and what they print",
        true,
        &[&["-p", "grind-tests", "--", "book::"]],
    ),
    area(
        "documents",
        "links, names of files and tests, figures of the documents",
        false,
        &[&["-p", "grind-tests", "--", "documents::"], &["-p", "grind-bench"]],
    ),
];

/// The area called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Area> {
    AREAS.iter().find(|a| a.name == name)
}

/// A line for each area (only those with golden files, if so wanted).
pub(crate) fn list(golden: bool) -> String {
    let lines = AREAS.iter().filter(|a| a.golden || !golden).map(|a| format!("  {:<11} {}\n", a.name, a.about));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn areas_name_packages_and_tests_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut packages = std::collections::BTreeMap::new();
        for entry in std::fs::read_dir(root).unwrap() {
            let folder = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
            let name = text.lines().find_map(|l| l.strip_prefix("name = \"")?.strip_suffix('"').map(str::to_owned));
            packages.extend(name.map(|name| (name, folder)));
        }
        let mut names = BTreeSet::new();
        for area in AREAS {
            assert!(names.insert(area.name), "two areas are called {}", area.name);
            for run in area.runs {
                let mut folder = None;
                for pair in run.windows(2) {
                    match pair {
                        ["-p", package] => folder = Some(packages.get(*package).unwrap_or_else(|| panic!("{package}"))),
                        ["--test", test] => {
                            let tests = folder.unwrap().join("tests");
                            let there = tests.join(format!("{test}.rs")).is_file()
                                || tests.join(test).join("main.rs").is_file();
                            assert!(there, "{}: no test {test}", area.name);
                        }
                        _ => {}
                    }
                }
                for module in run.iter().filter_map(|word| word.strip_suffix("::")) {
                    let file = folder.unwrap().join("tests").join(format!("{module}.rs"));
                    assert!(file.is_file(), "{}: no {}", area.name, file.display());
                }
            }
        }
    }
}
