//! The messages of pprof's `profile.proto`, version 3 of protocol buffers.
//!
//! Field numbers and meanings are those of the published format. Strings are indices into the string table, whose first
//! entry is empty; ids of locations, functions and mappings are above 0.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// What the values of a sample are.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Values of stacks.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Objects.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in the code.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// The strings; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Time of collection, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Duration, in nanoseconds.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What `period` counts.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// Events between two samples.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Free text, as strings.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type of values that is shown unless another one is asked for, as a string.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// A type of values.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// What is counted, as a string.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// Its unit, as a string.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// Values of a stack.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// Ids of locations, the innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// A value for each type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// What else is known.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// Something that is known of a sample.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// What, as a string.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Its value, as a string.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// Its value, if it is a number.
    #[prost(int64, tag = "3")]
    pub num: i64,
}

/// An object in memory.
#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// Address after the last.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Where that is in the file.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The file, as a string.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Its build id, as a string.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether names of functions are known.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Whether names of files are known.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Whether lines are known.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Whether inlined functions are known.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in the code.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The object.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The address.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Function and line; several where code was inlined, the innermost first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// The line, from 1.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name, as a string.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Its name for the linker, as a string.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Its file, as a string.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// Its first line.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}
