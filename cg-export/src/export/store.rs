//! `--format=parquet`: profiles as rows of a data set that DuckDB, Spark and others query as it is.
//!
//! One row for each line of a function in a context and each event that is not 0: `count` is self cost, so sums over any
//! columns mean something. Folders `benchmark=…/commit=…/run=…` are columns to readers. What one call writes is one file,
//! which appears whole and is named after its content: writing the same again changes nothing, and calls on many machines
//! do not meet. Memory is bounded by one profile and one row group.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use std::{fs, mem};

use anyhow::{Context, anyhow};
use cg_cli::progress::Counter;
use cg_cli::rank::ranks;
use cg_model::Heads;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use tempfile::NamedTempFile;

use crate::load::{Input, lossy};
use crate::options::Options;

/// Columns of the files; the order is that of [`Columns::write`].
const SCHEMA: &str = "message profile {
    REQUIRED INT64 time (TIMESTAMP(MILLIS,true));
    OPTIONAL INT32 rank;
    OPTIONAL INT64 process;
    OPTIONAL BYTE_ARRAY command (UTF8);
    OPTIONAL BYTE_ARRAY object (UTF8);
    OPTIONAL BYTE_ARRAY file (UTF8);
    REQUIRED BYTE_ARRAY function (UTF8);
    OPTIONAL INT32 line;
    OPTIONAL BYTE_ARRAY context (UTF8);
    REQUIRED BYTE_ARRAY event (UTF8);
    REQUIRED INT64 count;
}";

/// Rows of a row group: what is kept in memory.
const GROUP: usize = 1 << 19;

/// What is not known stands for nothing in the file.
const UNKNOWN: &[&[u8]] = &[b"", b"???"];

/// Writes the profiles that options name.
pub(crate) fn write(options: &Options, counter: &Arc<Counter>) -> anyhow::Result<()> {
    let ranks = ranks(&options.files, options.rank.as_ref())?;
    let folder = folder(options)?;
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let failed = || format!("{}: cannot write the data set", folder.display());
    // Readers pass over files that begin with a dot.
    let temporary = tempfile::Builder::new().prefix(".part-").tempfile_in(&folder).with_context(failed)?;
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let out = Hashed { inner: BufWriter::with_capacity(1 << 16, temporary), hash: FNV_BASIS };
    let mut writer = SerializedFileWriter::new(out, schema, properties).with_context(failed)?;
    let mut columns = Columns::default();
    for (path, rank) in options.files.iter().zip(ranks) {
        let input = Input::read(path, counter)?;
        let time = match options.time {
            Some(seconds) => seconds.checked_mul(1000).context("--time is too large")?,
            None => changed(path).with_context(|| input.name.clone())?,
        };
        let rank =
            rank.map(i32::try_from).transpose().with_context(|| format!("{}: its rank is too large", input.name))?;
        columns.add(&input, time, rank);
        if columns.count.len() >= GROUP {
            mem::take(&mut columns).write(writer.next_row_group().with_context(failed)?).with_context(failed)?;
        }
    }
    if !columns.count.is_empty() {
        columns.write(writer.next_row_group().with_context(failed)?).with_context(failed)?;
    }
    let out = writer.into_inner().with_context(failed)?;
    let name = format!("part-{:016x}.parquet", out.hash);
    let temporary = out.inner.into_inner().map_err(io::IntoInnerError::into_error).with_context(failed)?;
    // Temporary files are for their owner alone; a data set is for whoever the folder is for.
    let mode = fs::metadata(&folder).map_or(0o644, |meta| meta.permissions().mode() & 0o666);
    temporary.as_file().set_permissions(fs::Permissions::from_mode(mode)).with_context(failed)?;
    persist(temporary, &folder.join(name))
}

fn persist(temporary: NamedTempFile, path: &std::path::Path) -> anyhow::Result<()> {
    temporary.persist(path).map(drop).map_err(|error| anyhow!(error.error)).with_context(|| path.display().to_string())
}

/// When a file was last changed, in milliseconds since 1970; for standard input, now.
fn changed(path: &std::ffi::OsStr) -> anyhow::Result<i64> {
    let time = if path == "-" { std::time::SystemTime::now() } else { fs::metadata(path)?.modified()? };
    let since = time.duration_since(UNIX_EPOCH).context("it was changed before 1970")?;
    Ok(i64::try_from(since.as_millis())?)
}

/// The folder of the partition.
fn folder(options: &Options) -> anyhow::Result<PathBuf> {
    let mut folder = options.output.clone().context("--format=parquet wants -o FOLDER")?;
    for (key, value) in [("benchmark", &options.benchmark), ("commit", &options.commit), ("run", &options.run)] {
        // What readers of such folders take for nothing.
        let value = value.as_deref().map_or_else(|| "__HIVE_DEFAULT_PARTITION__".to_owned(), escaped);
        folder.push(format!("{key}={value}"));
    }
    Ok(folder)
}

/// A value as part of a name of a folder.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(char::from(byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A column of which some values may be missing.
#[derive(Debug)]
struct Optional<T> {
    values: Vec<T>,
    /// For each row 1 if it has a value, else 0.
    levels: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self { values: Vec::new(), levels: Vec::new() }
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

/// Rows, column by column.
#[derive(Debug, Default)]
struct Columns {
    time: Vec<i64>,
    rank: Optional<i32>,
    process: Optional<i64>,
    command: Optional<ByteArray>,
    object: Optional<ByteArray>,
    file: Optional<ByteArray>,
    function: Vec<ByteArray>,
    line: Optional<i32>,
    context: Optional<ByteArray>,
    event: Vec<ByteArray>,
    count: Vec<i64>,
}

fn known(name: &[u8]) -> Option<ByteArray> {
    (!UNKNOWN.contains(&name)).then(|| ByteArray::from(lossy(name).into_bytes()))
}

impl Columns {
    fn add(&mut self, input: &Input, time: i64, rank: Option<i32>) {
        let names = &input.names;
        let heads = Heads::new(names.functions().map(|function| names.function_name(function)));
        let process = input.header.pid.and_then(|pid| i64::try_from(pid).ok());
        let command = known(input.command().as_bytes());
        let events: Vec<ByteArray> = input.events.iter().map(|event| ByteArray::from(event.as_str())).collect();
        // Bytes of a name are shared by all its rows.
        let functions: Vec<(ByteArray, Option<ByteArray>)> = names
            .functions()
            .map(|function| {
                let split = heads.split(names.function_name(function));
                let callers: Vec<&[u8]> = split.callers.iter().rev().copied().collect();
                (ByteArray::from(lossy(split.head).into_bytes()), known(&callers.join(&b';')))
            })
            .collect();
        let files: Vec<Option<ByteArray>> = {
            let mut files = vec![None; names.file_count()];
            input.rows.iter().for_each(|row| files[row.file.index()] = known(names.file_name(row.file)));
            files
        };
        let objects: Vec<Option<ByteArray>> =
            names.functions().map(|function| known(names.object_name(names.get(function).object))).collect();
        for row in &input.rows {
            let (function, context) = &functions[row.function.index()];
            for (event, count) in events.iter().zip(&row.costs).filter(|(_, count)| **count != 0) {
                self.time.push(time);
                self.rank.push(rank);
                self.process.push(process);
                self.command.push(command.clone());
                self.object.push(objects[row.function.index()].clone());
                self.file.push(files[row.file.index()].clone());
                self.function.push(function.clone());
                self.line.push(i32::try_from(row.line).ok().filter(|line| *line > 0));
                self.context.push(context.clone());
                self.event.push(event.clone());
                self.count.push(*count);
            }
        }
    }

    fn write<W: Write + Send>(self, mut writer: SerializedRowGroupWriter<'_, W>) -> parquet::errors::Result<()> {
        let group = &mut writer;
        column::<Int64Type, W>(group, &self.time, None)?;
        column::<Int32Type, W>(group, &self.rank.values, Some(&self.rank.levels))?;
        column::<Int64Type, W>(group, &self.process.values, Some(&self.process.levels))?;
        column::<ByteArrayType, W>(group, &self.command.values, Some(&self.command.levels))?;
        column::<ByteArrayType, W>(group, &self.object.values, Some(&self.object.levels))?;
        column::<ByteArrayType, W>(group, &self.file.values, Some(&self.file.levels))?;
        column::<ByteArrayType, W>(group, &self.function, None)?;
        column::<Int32Type, W>(group, &self.line.values, Some(&self.line.levels))?;
        column::<ByteArrayType, W>(group, &self.context.values, Some(&self.context.levels))?;
        column::<ByteArrayType, W>(group, &self.event, None)?;
        column::<Int64Type, W>(group, &self.count, None)?;
        writer.close().map(drop)
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> parquet::errors::Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(parquet::errors::ParquetError::General("there are more columns than the schema has".to_owned()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Passes bytes on, and hashes them by FNV-1a: files of other content get other names.
struct Hashed<W> {
    inner: W,
    hash: u64,
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        for byte in &bytes[..count] {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
