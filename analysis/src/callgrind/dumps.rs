//! The profile of a process, part by part: from what the model found to files.
//!
//! A part has everything that was collected since the last one, or since costs were set to zero; the parts of a run add up
//! to what was collected in all. Names keep their numbers from part to part. Nothing here decides when a part is due.
//!
//! A file of one part appears whole or not at all. One that combines parts grows by a part at a time, in one piece.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use grind_types::Pid;

use cg_calls::Profile;
use cg_format::callgrind::{EventSet, Header, Names, Part, PartHeader, Positions, Writer, command_line};

use super::code::Catalogue;
use super::parts::{Destination, Parts, Trigger};
use super::rows;
use super::settings::{Settings, Threads};
use cg_cli::saved::{Saved, save_text};
use grind_session::broken;

/// What is known of a run before anything is counted.
#[derive(Clone, Debug)]
pub struct About {
    /// What wrote the profile.
    pub creator: String,
    /// The events.
    pub events: EventSet,
    /// The simulated caches, as `desc:` lines say them; none if none are.
    pub caches: Vec<Vec<u8>>,
    /// What estimates cycles, as a `desc:` line says it, if anything does.
    pub estimate: Option<Vec<u8>>,
    /// How profiles are written.
    pub settings: Settings,
    /// Where a part goes that cannot be written where it should.
    pub spare: PathBuf,
}

impl About {
    /// The header of the file of process `pid`, which runs `args`.
    #[must_use]
    pub fn header(&self, pid: Pid, args: &[OsString]) -> Header {
        // The reference has these lines in any case.
        let none = || ["I1 cache: ", "D1 cache: ", "LL cache: "].map(Vec::from).to_vec();
        let mut desc = if self.caches.is_empty() { none() } else { self.caches.clone() };
        desc.extend(self.estimate.clone());
        let program = args.first().map_or(&b""[..], |a| a.as_bytes());
        Header {
            creator: self.creator.clone().into_bytes(),
            pid: u64::try_from(pid.0).ok(),
            cmd: command_line(program, args.iter().skip(1).map(|a| a.as_bytes())),
            desc,
        }
    }
}

/// A file that was, or was to be, written.
#[derive(Debug)]
pub struct Written {
    /// The file that was meant.
    pub path: PathBuf,
    /// What became of it.
    pub saved: Saved,
    /// The part, if it is to be put into the file of the tree: then nothing has been written.
    pub text: Vec<u8>,
    /// What the part adds up to.
    pub total: Vec<i128>,
}

/// What the parts of all processes of a tree have in common: each name has one number in the whole file.
#[derive(Debug)]
pub struct Shared {
    names: Names,
    writer: Writer,
}

impl Shared {
    /// Nothing has a number yet.
    #[must_use]
    pub fn new(settings: &Settings) -> Shared {
        Shared { names: Names::default(), writer: Writer::new(settings.write_options()) }
    }
}

/// The parts of one process.
#[derive(Debug)]
pub struct Dumps {
    about: About,
    header: Header,
    parts: Parts,
    names: Names,
    writer: Writer,
    /// Blocks executed when the part at hand began.
    begun: u64,
    /// What all parts so far add up to.
    total: Vec<i128>,
    /// Executions in them of instructions that the model of cycles does not have.
    unknown: u64,
    /// Something has panicked that costs no counts.
    failed: bool,
}

impl Dumps {
    /// Those of process `pid`, which runs `args`; the last part is `file`.
    #[must_use]
    pub fn new(about: About, pid: Pid, args: &[OsString], file: PathBuf) -> Dumps {
        let header = about.header(pid, args);
        let writer = Writer::new(about.settings.write_options());
        let parts = Parts::new(file, about.settings.combine_dumps || about.settings.tree);
        let total = vec![0; about.events.names().len()];
        Dumps { about, header, parts, names: Names::default(), writer, begun: 0, total, unknown: 0, failed: false }
    }

    /// Exchanges names and their numbers for those that all processes share, and back.
    pub fn exchange(&mut self, shared: &mut Shared) {
        std::mem::swap(&mut self.names, &mut shared.names);
        std::mem::swap(&mut self.writer, &mut shared.writer);
    }

    /// The number of the part at hand, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.parts.number()
    }

    /// The sum of all parts so far, event by event.
    #[must_use]
    pub fn total(&self) -> &[i128] {
        &self.total
    }

    /// Executions in all parts so far of instructions that the model of cycles does not have.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Whether something has panicked that costs no counts, but has to be told; it is forgotten.
    pub fn has_failed(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    /// Costs were set to zero when so many blocks had been executed.
    pub fn zeroed(&mut self, blocks: u64) {
        self.begun = blocks;
    }

    /// Writes a part, for that reason and described by those lines: `found` is what was collected by each thread (numbers from 1) since the last one, `blocks` how many
    /// blocks have been executed in all. `broken`: something has failed, so that it is not all.
    pub fn write(
        &mut self,
        (trigger, descriptions): (&Trigger, Vec<Vec<u8>>),
        blocks: u64,
        mut found: Vec<(u64, Profile)>,
        catalogue: &mut Catalogue,
        broken: Option<&str>,
    ) -> Vec<Written> {
        let number = self.parts.number();
        let kept_apart = self.about.settings.threads();
        if kept_apart == Threads::ByKernel {
            // One stays in any case: a part tells why it was written, too.
            let stays = found.iter().position(|(_, profile)| !is_empty(profile)).unwrap_or(0);
            let mut numbers = 0..;
            found.retain(|(_, profile)| numbers.next() == Some(stays) || !is_empty(profile));
        }
        let separate = kept_apart != Threads::Together;
        let (threads, profiles): (Vec<Option<u64>>, Vec<Profile>) = if separate {
            found.into_iter().map(|(thread, profile)| (Some(thread), profile)).unzip()
        } else {
            let mut all = Profile::default();
            for (_, profile) in found {
                all.merge(profile);
            }
            (vec![None], vec![all])
        };
        let numbers: Vec<u64> = threads.iter().copied().flatten().collect();
        let destinations = self.parts.next(trigger, &numbers);
        let mut header = self.part_header(trigger, blocks);
        // Behind the first line that only parts have, so that readers do not take them for the file's.
        header.desc.splice(1..1, descriptions);
        header.desc.extend(broken.map(broken::description));
        self.begun = blocks;
        let mut written = Vec::new();
        for ((thread, profile), destination) in threads.into_iter().zip(profiles).zip(destinations) {
            self.unknown += catalogue.counters.unknown(&profile);
            header.number = Some(number);
            header.thread = thread;
            let resolved = catalogue.resolve(&profile, &[]);
            if resolved.failed {
                self.failed = true;
                header.desc.push(broken::description(&broken::first("debug information cannot be read")));
            }
            let (mut text, mut total) = (Vec::new(), Vec::new());
            let saved = match rows::part(header.clone(), &profile, &[], &resolved, &mut self.names) {
                Err(error) => Saved::Nowhere(error.to_string()),
                Ok(part) => {
                    total = part.total();
                    for (sum, more) in self.total.iter_mut().zip(&total) {
                        *sum += more;
                    }
                    if self.about.settings.tree {
                        // Behind what other processes have written, it has to say what is simulated once more.
                        let desc = if number == 1 { &self.header.desc[..] } else { &[] };
                        let composed = self.writer.part(&mut text, &self.names, &part, desc);
                        composed.map_or_else(|error| Saved::Nowhere(error.to_string()), |()| Saved::AsAsked)
                    } else {
                        self.save(&part, &destination)
                    }
                }
            };
            written.push(Written { path: destination.path, saved, text, total });
        }
        written
    }

    fn part_header(&self, trigger: &Trigger, blocks: u64) -> PartHeader {
        let settings = &self.about.settings;
        PartHeader {
            number: None,
            thread: None,
            desc: vec![format!("Timerange: Basic block {} - {blocks}", self.begun).into_bytes(), trigger.description()],
            positions: Positions { instr: settings.dump_instr, line: settings.dump_line },
            types: self.about.events.types(),
            events: self.about.events.names(),
        }
    }

    fn save(&mut self, part: &Part, to: &Destination) -> Saved {
        let mut text = Vec::new();
        let composed = if to.append {
            self.writer.part(&mut text, &self.names, part, &[])
        } else {
            let header = self.writer.header(&mut text, &self.header);
            header.and_then(|()| self.writer.part(&mut text, &self.names, part, &self.header.desc))
        };
        if let Err(error) = composed {
            return Saved::Nowhere(error.to_string());
        }
        if !to.append {
            return save_text(&to.path, "callgrind.out", &self.about.spare, |out| out.write_all(&text));
        }
        // A blank line keeps it apart from the `totals:` before.
        text.insert(0, b'\n');
        match append(to, &text) {
            Ok(()) => Saved::AsAsked,
            Err(error) => Saved::Nowhere(cg_cli::reason::reason(&error)),
        }
    }
}

/// Whether nothing has been collected.
fn is_empty(profile: &Profile) -> bool {
    let Profile { collected, arcs, counters, skipped, .. } = profile;
    arcs.is_empty() && counters.is_empty() && skipped.is_empty() && collected.iter().all(|cost| *cost == 0)
}

fn append(to: &Destination, text: &[u8]) -> io::Result<()> {
    OpenOptions::new().append(true).open(&to.path)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use grind_names::opened::Opened;

    use super::*;
    use cg_calls::{Calls, Config};
    use std::path::Path;

    fn dumps(folder: &Path, settings: Settings) -> Dumps {
        let about = About {
            creator: "grind".into(),
            events: settings.events(cg_format::events::Caches::None, false),
            caches: Vec::new(),
            estimate: None,
            settings,
            spare: folder.to_owned(),
        };
        Dumps::new(about, Pid(7), &["prog".into(), "a\nb\\".into()], folder.join("out"))
    }

    /// What a thread finds that spends `n` in an anonymous function at 0x1000.
    fn found(catalogue: &mut Catalogue, n: u64) -> Profile {
        let mut calls = Calls::new(Config { contexts: true, ..Config::arcs_only(1) }, &[0]);
        calls.begin(catalogue, 0x1000);
        let counter = catalogue.counters.add_at(0x1000, [1]);
        for _ in 0..n {
            calls.block(counter);
        }
        calls.take(&[n])
    }

    fn read(folder: &Path, name: &str) -> String {
        std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    #[test]
    fn parts_go_to_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut d = dumps(folder.path(), Settings::default());
        let mut c = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        let one = found(&mut c, 5);
        let written = d.write((&Trigger::Request(Some(b"here".into())), vec![]), 10, vec![(1, one)], &mut c, None);
        assert!(matches!(&written[..], [Written { path, saved: Saved::AsAsked, .. }] if path.ends_with("out.1")));
        d.zeroed(30);
        let two = [found(&mut c, 6), found(&mut c, 7)];
        d.write((&Trigger::End, vec![]), 40, two.into_iter().zip([1, 2]).map(|(p, n)| (n, p)).collect(), &mut c, None);
        assert_eq!(d.total(), [18]);
        let expected = "# callgrind format\nversion: 1\ncreator: grind\npid: 7\ncmd:  prog a\\nb\\\\\npart: 1\n\n\n\
                        desc: I1 cache: \ndesc: D1 cache: \ndesc: LL cache: \n\n\
                        desc: Timerange: Basic block 0 - 10\ndesc: Trigger: Client Request: here\n\n\
                        positions: line\nevents: Ir\nsummary: 5\n\n\nob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001000\n0 5\n\n\
                        totals: 5\n";
        assert_eq!(read(folder.path(), "out.1"), expected);
        let last = read(folder.path(), "out");
        for line in ["part: 2", "desc: Timerange: Basic block 30 - 40", "desc: Trigger: Program termination", "0 13"] {
            assert!(last.lines().any(|l| l == line), "{line} is not in {last}");
        }
    }

    #[test]
    fn combined_parts_share_header_and_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.combine_dumps = true;
        let mut d = dumps(folder.path(), settings);
        let mut c = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        for n in [3, 4] {
            let profile = found(&mut c, n);
            d.write((&Trigger::Blocks(9), vec![]), n, vec![(1, profile)], &mut c, None);
        }
        let text = read(folder.path(), "out");
        assert_eq!(text.matches("version: 1").count(), 1);
        assert_eq!(text.matches("fn=(1) 0x0000000000001000").count(), 2);
        let profile = cg_format::callgrind::read_profile(text.as_bytes(), "out").unwrap();
        assert_eq!(profile.parts.iter().map(Part::total).collect::<Vec<_>>(), [[3], [4]]);
    }

    #[test]
    fn threads_may_be_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.separate_threads = Threads::Apart;
        let mut d = dumps(folder.path(), settings);
        let mut c = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        let (one, two) = (found(&mut c, 1), found(&mut c, 2));
        d.write((&Trigger::End, vec![]), 3, vec![(1, one), (12, two)], &mut c, None);
        assert!(read(folder.path(), "out-01").contains("\nthread: 1\n"));
        assert!(read(folder.path(), "out-12").contains("\ntotals: 2\n"));
        assert_eq!(d.total(), [3]);
    }

    #[test]
    fn combined_parts_of_threads_are_in_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        (settings.combine_dumps, settings.separate_threads) = (true, Threads::Apart);
        let mut d = dumps(folder.path(), settings);
        let mut c = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        for trigger in [Trigger::Blocks(9), Trigger::End] {
            let (one, two) = (found(&mut c, 1), found(&mut c, 2));
            d.write((&trigger, vec![]), 3, vec![(1, one), (2, two)], &mut c, None);
        }
        let profile = cg_format::callgrind::read_profile(read(folder.path(), "out").as_bytes(), "out").unwrap();
        let parts = profile.parts.iter().map(|part| (part.header.number, part.header.thread, part.total()));
        let expected =
            [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(n, thread)| (Some(n), Some(thread), vec![i128::from(thread)]));
        assert_eq!(parts.collect::<Vec<_>>(), expected);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn threads_that_did_nothing_are_left_out_where_the_kernel_numbers_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        (settings.combine_dumps, settings.separate_threads) = (true, Threads::ByKernel);
        let mut d = dumps(folder.path(), settings);
        let mut c = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        let mut nothing = || (0..3).map(|n| (70 + n, found(&mut c, 0))).collect::<Vec<_>>();
        let (mut one, none) = (nothing(), nothing());
        one[1].1 = found(&mut c, 4);
        d.write((&Trigger::Blocks(9), vec![]), 3, one, &mut c, None);
        d.write((&Trigger::End, vec![]), 3, none, &mut c, None);
        let profile = cg_format::callgrind::read_profile(read(folder.path(), "out").as_bytes(), "out").unwrap();
        let parts = profile.parts.iter().map(|part| (part.header.number, part.header.thread, part.total()));
        assert_eq!(parts.collect::<Vec<_>>(), [(Some(1), Some(71), vec![4]), (Some(2), Some(70), vec![0])]);
    }

    #[test]
    fn a_part_that_cannot_be_written_is_kept_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let mut d = dumps(folder.path(), Settings::default());
        d.parts = Parts::new(folder.path().join("absent/out"), false);
        let mut c = Catalogue::new(Settings::default(), Opened::new(grind_symbols::Options::default()));
        let profile = found(&mut c, 1);
        let written = d.write((&Trigger::End, vec![]), 3, vec![(1, profile)], &mut c, None);
        let [Written { saved: Saved::Elsewhere(reason, path), .. }] = &written[..] else { panic!("{written:?}") };
        assert_eq!(reason, "No such file or directory");
        assert!(path.starts_with(folder.path()) && path.exists());
    }
}
