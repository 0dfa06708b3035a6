//! From the command line to a [`Model`]: reads, subtracts, renames.

use anyhow::anyhow;
use cg_cli::load::{self, Loaded};
use cg_cli::progress::Progress;
use cg_cli::rename::Renamer;
use cg_format::cachegrind::{Detail, ReadOptions};

use crate::model::Model;
use crate::options::Options;

/// Reads the inputs that `options` names.
pub(crate) fn model(options: &Options) -> anyhow::Result<Model> {
    load::check_stdin(&options.files)?;
    let detail = if options.annotates() { Detail::Lines } else { Detail::Functions };
    let read = ReadOptions { detail, ..ReadOptions::default() };
    let progress = Progress::start("cg_annotate");
    let counter = &progress.counter;
    let mut renamer = Renamer::new(options.mod_filename.as_ref(), options.mod_funcname.as_ref());
    let names = options.files.iter().map(|file| cg_cli::input::name(file));
    if !options.diff {
        let Loaded { mut profile, headers, .. } = load::sum(&options.files, &read, counter)?;
        drop(progress);
        renamer.rename(&mut profile)?;
        return Ok(Model::new(profile, names.zip(headers).collect(), None, renamer.originals));
    }
    let [first, second] = &options.files[..] else { return Err(anyhow!("--diff needs two files")) };
    let pair = [first, second];
    let mut loaded = load::pair(pair, &read, counter)?;
    drop(progress);
    let sides = [&loaded[0], &loaded[1]].map(|side| side.profile.total().to_vec());
    // Renamed first: what is joined by it must meet.
    for side in &mut loaded {
        renamer.rename(&mut side.profile)?;
    }
    load::subtract(&mut loaded, pair)?;
    let [before, after] = loaded;
    let headers = [before.headers, after.headers].concat();
    Ok(Model::new(before.profile, names.zip(headers).collect(), Some(sides), renamer.originals))
}
