//! Sums that several processes make together, as a launcher of parallel programs starts them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn merge(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cg_merge"));
    command.args(args).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "MV2_COMM_WORLD_RANK", "PALS_RANKID"] {
        command.env_remove(name);
    }
    command
}

/// As `mpirun -n SIZE cg_merge --reduce` would start them, the last one first.
fn start(folder: &Path, size: usize, args: &[&str]) -> Vec<Child> {
    (0..size)
        .rev()
        .map(|rank| {
            let mut command = merge(folder, &[&["--reduce", "--patience=60"], args].concat());
            command.env("OMPI_COMM_WORLD_RANK", rank.to_string()).env("OMPI_COMM_WORLD_SIZE", size.to_string());
            command.env("PMIX_NAMESPACE", "42.1").spawn().unwrap()
        })
        .collect()
}

/// Names come in another order in each, and some are in few only.
fn profile(number: u64) -> String {
    let mut text = String::from("desc: d\ncmd: x\nevents: Ir Dr\n");
    let mut sum = [0, 0];
    for i in 0..40 {
        let function = (i * 7 + number * 13) % (50 + number % 5);
        let counts = [1 + (number * 31 + i) % 97, i % 3];
        text += &format!("fl=file{}\nfn=f{function}\n{} {} {}\n", function % 6, i % 9, counts[0], counts[1]);
        sum = [sum[0] + counts[0], sum[1] + counts[1]];
    }
    text + &format!("summary: {} {}\n", sum[0], sum[1])
}

#[test]
fn the_sum_is_that_of_one_process_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..41).map(|number| format!("cg.{number}")).collect();
    for (name, number) in names.iter().zip(0..) {
        fs::write(folder.path().join(name), profile(number)).unwrap();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(merge(folder.path(), &[&["-o", "one"], &names[..]].concat()).status().unwrap().success());
    let one = fs::read_to_string(folder.path().join("one")).unwrap();
    for size in [1, 2, 4, 7, 48] {
        for (args, expected) in
            [([&["-o", "sum"], &names[..]].concat(), true), (vec!["-o", "sum", "cg.%r"], size == 41)]
        {
            if args.len() == 3 && size > 41 {
                continue;
            }
            for child in start(folder.path(), size, &args) {
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success(), "{size}: {}", String::from_utf8_lossy(&output.stderr));
            }
            let sum = fs::read_to_string(folder.path().join("sum")).unwrap();
            assert_eq!(sum == one, expected, "{size}");
            fs::remove_file(folder.path().join("sum")).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len() + 1, "nothing is left behind");
        }
    }
}

#[test]
fn a_process_that_fails_is_named_by_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3 {
        fs::write(folder.path().join(format!("cg.{number}")), profile(number)).unwrap();
    }
    let mut ends: Vec<_> =
        start(folder.path(), 4, &["-o", "sum", "cg.%r"]).into_iter().map(|c| c.wait_with_output().unwrap()).collect();
    let first = ends.pop().unwrap();
    let message = String::from_utf8_lossy(&first.stderr).into_owned();
    assert_eq!(first.status.code(), Some(1));
    assert!(message.contains("process 2: process 3: cg.3: No such file"), "{message}");
    assert!(!folder.path().join("sum").exists());
}

#[test]
fn without_a_launcher_the_message_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let output = merge(folder.path(), &["--reduce", "-o", "sum", "a"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"), "{message}");
}

#[test]
fn open_mpi_starts_it() {
    if !grind_tests::tools::have(&["mpirun"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for number in 0..4 {
        fs::write(folder.path().join(format!("cg.{number}")), profile(number)).unwrap();
    }
    let one = merge(folder.path(), &["cg.0", "cg.1", "cg.2", "cg.3"]).output().unwrap().stdout;
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", "4", env!("CARGO_BIN_EXE_cg_merge")]);
    command.args(["--reduce", "-o", "sum", "cg.%r"]).current_dir(folder.path());
    assert!(command.status().unwrap().success());
    assert_eq!(fs::read(folder.path().join("sum")).unwrap(), one);
}
