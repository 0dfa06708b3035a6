// The head of the report, as `head.rs` writes it.

import type { ColumnInfo } from "./columns.ts";

export interface EventInfo {
    name: string;
    /** The number that its columns have. */
    column: number;
    meaning: string;
    /** Whether inclusive costs of it are spread along calls, which is an estimate. */
    spread: boolean;
}

export interface Input {
    name: string;
    parts: number;
    desc: string[];
}

export interface SideInfo {
    command: string;
    creator: string;
    /** Whether costs have addresses of instructions. */
    addresses: boolean;
    jumps: boolean;
    calculated: boolean;
    /** Decimal, one for each event. */
    totals: string[];
    inputs: Input[];
    /** All runs of one thing, if there are several; the one that is shown is `shown`. */
    runs: Run[];
    shown: number;
}

/** A run of what is compared. */
export interface Run {
    name: string;
    /** Decimal, one for each event. */
    totals: string[];
}

/** An event that is computed from others. */
export interface FormulaInfo {
    name: string;
    formula: string;
}

/** A part of the new side: a dump, a thread, a file. */
export interface PartInfo {
    /** Which of the inputs it comes from. */
    input: number;
    pid?: number;
    /** What the process ran last, and its arguments, where the profile is of a tree of processes. */
    program?: string;
    command?: string;
    number?: number;
    thread?: number;
    desc: string[];
    /** Decimal, one for each event. */
    totals: string[];
}

/** What became of samples of another profiler. */
export interface SamplesInfo {
    name: string;
    /** What kind of file it was, and what a sample counts. */
    kind: string;
    event: string;
    total: number;
    /** What belongs to functions of the profile, and of that what belongs to instructions. */
    matched: number;
    placed: number;
    /** How many places belong to nothing, and the first of them. */
    unmatched: number;
    lost: { object: string; name: string; count: number }[];
}

export interface Warning {
    kind: string;
    text: string;
}

export interface Head {
    schema: number;
    version: string;
    title: string;
    redacted: boolean;
    /** Where links to source lines lead, with {file} and {line}, if there are to be any. */
    editor?: string;
    embeds: boolean;
    functions: number;
    events: EventInfo[];
    formulas: FormulaInfo[];
    /** Whether the report begins with its first file alone. */
    separate: boolean;
    /** A place among events and then formulas. */
    primary: number;
    sides: SideInfo[];
    /** Parts that can be looked at one by one, if there are several. */
    parts: PartInfo[];
    samples?: SamplesInfo;
    /** Functions that are the same by their bodies alone. */
    renamed: { f: number; from: number }[];
    sources: { file: number; state: "ok" | "newer" | "missing" | "binary" | "large"; path?: string }[];
    objects: { object: number; state: "ok" | "missing" | "changed" }[];
    warnings: Warning[];
    columns: Record<string, ColumnInfo>;
}

export const SCHEMA = 3;
