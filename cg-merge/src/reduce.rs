//! `--reduce`: the sum is made by all processes that a launcher of parallel programs has started, as a tree of sums.
//!
//! Each process adds up a run of the inputs, or what it finds under its own rank, and then the sums of its partners, of which
//! there are log2 of the number of processes for the first one. Sums travel as files beside the output, which all processes
//! see: no library of any launcher is needed, only the variables with rank and size, so it works under all of them. A file
//! appears whole or not at all, so one that is there is complete. Invariants: the result is the one of a single process, byte
//! for byte; a process that fails says so to the one that waits for it; nothing is left behind but the output.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use cg_cli::launcher::LAUNCHERS;

/// A process among those that were started together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    rank: usize,
    size: usize,
    /// What tells this start from others.
    job: String,
}

impl Place {
    /// What the launcher says. `job` is what the user says, which counts more.
    ///
    /// # Errors
    /// There is no launcher, or what it says makes no sense.
    pub(crate) fn find(job: Option<&str>, env: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        let all = LAUNCHERS.iter().filter_map(|l| Some((l.rank, l.size?, l.jobs)));
        let known = all.clone().find(|(rank, size, _)| env(rank).is_some() && env(size).is_some());
        let Some((rank, size, jobs)) = known else {
            let names: Vec<String> = all.map(|(rank, size, _)| format!("{rank} and {size}")).collect();
            bail!(
                "--reduce: no launcher of parallel programs has given this process a rank: {} are not set",
                names.join(", ")
            );
        };
        let number = |name: &str| -> anyhow::Result<usize> {
            let value = env(name).unwrap_or_default();
            value
                .to_str()
                .and_then(|text| text.parse().ok())
                .with_context(|| format!("{name}: `{}` is no number", value.display()))
        };
        let place = (number(rank)?, number(size)?);
        if place.0 >= place.1 {
            bail!("{rank} is {}, but {size} is {}", place.0, place.1);
        }
        let found: Vec<String> =
            jobs.iter().filter_map(|name| Some(env(name)?.to_string_lossy().into_owned())).collect();
        let job = job.map(str::to_owned).or_else(|| (!found.is_empty()).then(|| found.join("."))).with_context(|| {
            format!("--reduce: the launcher gives its jobs no names ({} are not set): give this one a name with --job=NAME", jobs.join(", "))
        })?;
        // It becomes a part of a file's name.
        let job = job.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
        Ok(Self { rank: place.0, size: place.1, job })
    }

    /// The inputs of this process: those of its rank if they have `%r` in their names, else a run of neighbours, about as many
    /// as the others have.
    ///
    /// # Errors
    /// Standard input is among them: it is not the same for all.
    pub(crate) fn inputs(&self, files: &[OsString]) -> anyhow::Result<Vec<OsString>> {
        if files.iter().any(|file| file == "-") {
            bail!("--reduce: standard input (`-`) is not the same for all processes");
        }
        if files.iter().any(|file| has_rank(file)) {
            return Ok(files.iter().map(|file| with_rank(file, self.rank)).collect());
        }
        let at = |rank: usize| files.len() * rank / self.size;
        Ok(files[at(self.rank)..at(self.rank + 1)].to_vec())
    }

    /// Where the sum of `rank` is while it waits for its partner.
    fn parcel(&self, output: &Path, rank: usize) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(output.file_name().unwrap_or_default());
        name.push(format!(".{}.{rank}", self.job));
        output.with_file_name(name)
    }

    /// The processes whose sums this one adds to its own, in this order, and the one that it hands its sum to.
    fn partners(&self) -> (Vec<usize>, Option<usize>) {
        let mut from = Vec::new();
        let mut step = 1;
        while step < self.size {
            if self.rank & step != 0 {
                return (from, Some(self.rank - step));
            }
            if self.rank + step < self.size {
                from.push(self.rank + step);
            }
            step *= 2;
        }
        (from, None)
    }
}

fn has_rank(file: &OsStr) -> bool {
    file.as_bytes().windows(2).any(|pair| pair == b"%r")
}

fn with_rank(file: &OsStr, rank: usize) -> OsString {
    let mut name = Vec::new();
    let mut rest = file.as_bytes();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"%r") {
        name.extend_from_slice(&rest[..at]);
        name.extend_from_slice(rank.to_string().as_bytes());
        rest = &rest[at + 2..];
    }
    name.extend_from_slice(rest);
    OsString::from_vec(name)
}

/// What a process does with sums.
pub(crate) trait Sums {
    /// A sum of profiles.
    type Sum;
    /// The sum of inputs; none if there are none.
    fn read(&mut self, files: &[OsString]) -> anyhow::Result<Option<Self::Sum>>;
    /// Adds a sum to the one before it.
    fn join(&mut self, sum: Option<Self::Sum>, more: &Path) -> anyhow::Result<Option<Self::Sum>>;
    /// Writes a sum, whole or not at all.
    fn write(&mut self, sum: Option<&Self::Sum>, to: &Path) -> anyhow::Result<()>;
}

/// Does this process's share. The first one writes `output`.
///
/// # Errors
/// This process's share, or that of one below it, has failed, or one has not come within `patience`.
pub(crate) fn run(
    place: &Place,
    files: &[OsString],
    output: &Path,
    patience: Duration,
    sums: &mut impl Sums,
) -> anyhow::Result<()> {
    let (from, to) = place.partners();
    let done = share(place, files, output, patience, &from, to, sums);
    if let (Err(error), Some(_)) = (&done, to) {
        // Whoever waits need not wait longer. If this fails, too, that one's patience will end.
        let text = format!("process {}: {error:#}\n", place.rank);
        let mut name = place.parcel(output, place.rank).into_os_string();
        name.push(FAILED);
        let _ = cg_format::atomic::write_file(Path::new(&name), 0o600, |out| out.write_all(text.as_bytes()));
    }
    done
}

/// Behind the name of a sum that there will not be.
const FAILED: &str = ".failed";

fn share(
    place: &Place,
    files: &[OsString],
    output: &Path,
    patience: Duration,
    from: &[usize],
    to: Option<usize>,
    sums: &mut impl Sums,
) -> anyhow::Result<()> {
    let inputs = place.inputs(files)?;
    let mut sum = sums.read(&inputs)?;
    for partner in from {
        let parcel = place.parcel(output, *partner);
        wait_for(&parcel, *partner, patience)?;
        let joined = sums.join(sum, &parcel);
        fs::remove_file(&parcel).with_context(|| parcel.display().to_string())?;
        sum = joined?;
    }
    match to {
        Some(_) => sums.write(sum.as_ref(), &place.parcel(output, place.rank)),
        None if sum.is_none() => bail!("no input files"),
        None => sums.write(sum.as_ref(), output),
    }
}

/// Until another process has put its sum there.
fn wait_for(parcel: &Path, partner: usize, patience: Duration) -> anyhow::Result<()> {
    let mut failed = parcel.to_owned().into_os_string();
    failed.push(FAILED);
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match fs::metadata(parcel) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| parcel.display().to_string());
            }
            Err(_) => {}
        }
        if let Ok(text) = fs::read_to_string(&failed) {
            let _ = fs::remove_file(&failed);
            return Err(anyhow!("{}", text.trim_end()));
        }
        if start.elapsed() > patience {
            bail!(
                "process {partner} has not handed over its sum ('{}') within {} s: it has ended, or sees another folder \
                 (--patience=SECONDS waits longer)",
                parcel.display(),
                patience.as_secs()
            );
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: usize, size: usize) -> Place {
        Place { rank, size, job: "j".into() }
    }

    /// Sums as text: what was added, in order.
    struct Texts;

    impl Sums for Texts {
        type Sum = String;
        fn read(&mut self, files: &[OsString]) -> anyhow::Result<Option<String>> {
            if files.iter().any(|file| file == "bad") {
                bail!("bad cannot be read");
            }
            let text: Vec<_> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
            Ok((!text.is_empty()).then(|| text.join(" ")))
        }
        fn join(&mut self, sum: Option<String>, more: &Path) -> anyhow::Result<Option<String>> {
            let more = fs::read_to_string(more)?;
            Ok(match sum {
                _ if more.is_empty() => sum,
                None => Some(more),
                Some(sum) => Some(format!("{sum} {more}")),
            })
        }
        fn write(&mut self, sum: Option<&String>, to: &Path) -> anyhow::Result<()> {
            let text = sum.cloned().unwrap_or_default();
            Ok(cg_format::atomic::write_file(to, 0o600, |out| out.write_all(text.as_bytes()))?)
        }
    }

    fn reduce(folder: &Path, size: usize, files: &[OsString]) -> Vec<anyhow::Result<()>> {
        let output = folder.join("sum");
        let patience = Duration::from_secs(20);
        thread::scope(|scope| {
            let all: Vec<_> = (0..size)
                .rev()
                .map(|rank| {
                    let output = &output;
                    scope.spawn(move || run(&place(rank, size), files, output, patience, &mut Texts))
                })
                .collect();
            all.into_iter().rev().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn any_number_of_processes_adds_up_all_inputs_in_their_order() {
        let files: Vec<OsString> = (0..23).map(|i| format!("f{i}").into()).collect();
        let expected = files.iter().map(|f| f.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        for size in [1, 2, 3, 4, 5, 7, 8, 16, 31] {
            let folder = tempfile::tempdir().unwrap();
            assert!(reduce(folder.path(), size, &files).iter().all(Result::is_ok), "{size}");
            assert_eq!(fs::read_to_string(folder.path().join("sum")).unwrap(), expected, "{size}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{size}: nothing is left behind");
        }
    }

    #[test]
    fn ranks_read_what_has_their_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(reduce(folder.path(), 6, &["d%r/cg.%r".into()]).iter().all(Result::is_ok));
        let text = fs::read_to_string(folder.path().join("sum")).unwrap();
        assert_eq!(text, "d0/cg.0 d1/cg.1 d2/cg.2 d3/cg.3 d4/cg.4 d5/cg.5");
    }

    #[test]
    fn a_failure_reaches_the_first_process_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut files: Vec<OsString> = (0..8).map(|i| format!("f{i}").into()).collect();
        files[7] = "bad".into();
        let start = Instant::now();
        let results = reduce(folder.path(), 8, &files);
        assert!(start.elapsed() < Duration::from_secs(10));
        let failed: Vec<usize> = (0..8).filter(|rank| results[*rank].is_err()).collect();
        assert_eq!(failed, [0, 4, 6, 7]);
        assert!(results[0].as_ref().unwrap_err().to_string().contains("process 7: bad cannot be read"));
        assert!(!folder.path().join("sum").exists());
    }

    #[test]
    fn who_does_not_come_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("sum");
        let error = run(&place(0, 2), &["a".into(), "b".into()], &output, Duration::ZERO, &mut Texts).unwrap_err();
        assert!(error.to_string().starts_with("process 1 has not handed over its sum"), "{error}");
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let find = |pairs: &[(&str, &str)], job| {
            Place::find(job, |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "8"), ("PMIX_NAMESPACE", "7/1")];
        assert_eq!(find(&open_mpi, None).unwrap(), Place { rank: 3, size: 8, job: "7_1".into() });
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_JOB_ID", "5"), ("SLURM_STEP_ID", "1")];
        assert_eq!(find(&slurm, None).unwrap(), Place { rank: 0, size: 2, job: "5.1".into() });
        let plain = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        assert!(find(&plain, None).unwrap_err().to_string().contains("--job=NAME"));
        assert_eq!(find(&plain, Some("x/y")).unwrap().job, "x_y");
        for wrong in [&[][..], &[("PMI_RANK", "2"), ("PMI_SIZE", "2")], &[("PMI_RANK", "x"), ("PMI_SIZE", "2")]] {
            assert!(find(wrong, Some("j")).is_err(), "{wrong:?}");
        }
    }
}
