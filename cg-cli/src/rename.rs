//! `--mod-filename` and `--mod-funcname`: the names of a whole profile changed by substitutions.

use std::collections::{BTreeSet, HashMap};

use cg_format::cachegrind::Profile;

use crate::substitute::{ApplyError, Substitution};

/// Renames files and functions, remembering what files were called.
#[derive(Debug)]
pub struct Renamer<'a> {
    file: Option<&'a Substitution>,
    function: Option<&'a Substitution>,
    /// For each new name of a file the names that it had; empty if files are not renamed.
    pub originals: HashMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

impl<'a> Renamer<'a> {
    /// Renames by these substitutions; without any it changes nothing.
    #[must_use]
    pub fn new(file: Option<&'a Substitution>, function: Option<&'a Substitution>) -> Self {
        Self { file, function, originals: HashMap::new() }
    }

    /// Renames what is in `profile`; what then has the same name becomes one.
    ///
    /// # Errors
    /// An expression takes too long on a name, or joined counts are too large.
    pub fn rename(&mut self, profile: &mut Profile) -> anyhow::Result<()> {
        if self.file.is_some() || self.function.is_some() {
            *profile = self.renamed(profile)?;
        }
        Ok(())
    }

    fn renamed(&mut self, profile: &Profile) -> anyhow::Result<Profile> {
        let mut renamed = Profile::with_header(profile.header.clone());
        // A fault cannot leave the closures below, so it waits here.
        let mut failed: [Option<ApplyError>; 2] = [None, None];
        let [failed_file, failed_function] = &mut failed;
        // A function often stands in many files.
        let mut known: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        renamed.merge_renamed(
            profile,
            |name| {
                let new = apply(self.file, name, failed_file);
                self.originals.entry(new.clone()).or_default().insert(name.to_vec());
                new
            },
            |name| match known.get(name) {
                Some(new) => new.clone(),
                None => {
                    let new = apply(self.function, name, failed_function);
                    known.insert(name.to_vec(), new.clone());
                    new
                }
            },
        )?;
        match failed.into_iter().flatten().next() {
            Some(error) => Err(error.into()),
            None => Ok(renamed),
        }
    }
}

fn apply(substitution: Option<&Substitution>, name: &[u8], failed: &mut Option<ApplyError>) -> Vec<u8> {
    match substitution.map(|substitution| substitution.apply(name)) {
        Some(Ok(name)) => name,
        Some(Err(error)) => {
            failed.get_or_insert(error);
            name.to_vec()
        }
        None => name.to_vec(),
    }
}
