//! What `--record` leaves behind: every single time, and what machine and code it is of. Nothing is rounded or averaged here;
//! a folder like that is data of `runs/`, which `grind_bench::data` reads.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// One time that was taken.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    /// The program's name in the table.
    pub(crate) program: &'static str,
    /// What was measured: `count`, `calls`, `cache`, `cache+branch`, or the last two with `calls+` in front.
    pub(crate) metric: &'static str,
    /// `native`, `grind` or `valgrind`.
    pub(crate) by: &'static str,
    /// Wall-clock seconds.
    pub(crate) seconds: f64,
}

/// Writes `raw.csv` and `env.toml` into `folder`, which is made if need be.
///
/// # Errors
/// If it cannot be written to.
pub(crate) fn write(folder: &Path, times: &[Time], valgrind: bool) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut raw = String::from("program,metric,by,seconds\n");
    for Time { program, metric, by, seconds } in times {
        writeln!(raw, "{program},{metric},{by},{seconds:.6}")?;
    }
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())
    };
    put("raw.csv", &raw)?;
    put("env.toml", &environment(valgrind))
}

/// What can be found out of the machine and the code; what cannot is left out.
fn environment(valgrind: bool) -> String {
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|t| !t.is_empty())
    };
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    let mut env = String::from("# The run of `raw.csv`: every single wall-clock time, in seconds.\n");
    let mut text = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(env, "{key} = {:?}", value);
        }
    };
    text("date", Some(date(days)));
    text("cpu", model);
    text("commit", said("git", &["rev-parse", "--short", "HEAD"]));
    text("kernel", said("uname", &["-r"]));
    text("clock", Some("wall".into()));
    text("valgrind", valgrind.then(|| said("valgrind", &["--version"])).flatten());
    if let Ok(n) = std::thread::available_parallelism() {
        let _ = writeln!(env, "cores = {n}");
    }
    env
}

/// The date, as in `2026-11-25`, so many days after 1970 began.
fn date(days: u64) -> String {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for days in months {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(789), "1972-02-29");
        assert_eq!(date(20_782), "2026-11-25");
        assert_eq!(date(11_322), "2000-12-31");
    }
}
