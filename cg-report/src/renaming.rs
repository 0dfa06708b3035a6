//! How names are changed before anything is compared, as options want it: by substitutions, without folders.
//!
//! Whoever compares names with those of a profile changes them in the same way.

use cg_cli::substitute::Substitution;

use crate::names::last;

/// How names are changed before anything is compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renaming<'a> {
    pub(crate) file: Option<&'a Substitution>,
    pub(crate) function: Option<&'a Substitution>,
    /// Whether folders are left out of names of files and objects.
    pub(crate) redact: bool,
}

impl Renaming<'_> {
    /// Whether any name may change.
    pub(crate) fn changes(&self) -> bool {
        self.file.is_some() || self.function.is_some() || self.redact
    }

    /// The name of a function, as it is shown.
    pub(crate) fn function(&self, name: &[u8]) -> anyhow::Result<Vec<u8>> {
        apply(self.function, name)
    }

    /// That of a file.
    pub(crate) fn file(&self, name: &[u8]) -> anyhow::Result<Vec<u8>> {
        let name = apply(self.file, name)?;
        Ok(if self.redact { last(&name).to_vec() } else { name })
    }

    /// That of an object.
    pub(crate) fn object(&self, name: &[u8]) -> Vec<u8> {
        if self.redact { last(name).to_vec() } else { name.to_vec() }
    }
}

fn apply(substitution: Option<&Substitution>, name: &[u8]) -> anyhow::Result<Vec<u8>> {
    match substitution {
        Some(substitution) => Ok(substitution.apply(name)?),
        None => Ok(name.to_vec()),
    }
}
