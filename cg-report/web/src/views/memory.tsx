// The data objects of the run: what was missed at each and in which steps, how far apart accesses of a line are, and which lines
// threads share. What is shown is the run's, whatever parts or side of the profile are chosen.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { compact, digits, percent, plural } from "../data/format.ts";
import { accesses, hasMemory, memory, missesOf, together, type DataObject, type Distances, type Memory as Data, type Place, type SharedLines, type SharedUse, type Stream } from "../data/memory.ts";
import { activate, model, numbering, reveal } from "../state/store.ts";
import { goalLine } from "./machine.tsx";
import { Empty, Loading, Segments } from "../ui/parts.tsx";
import { Table, type TableColumn } from "../ui/table.tsx";

type Kind = "objects" | "distances" | "sharing";
const kind = signal<Kind>("objects");
const sortObjects = signal({ id: "missed", down: true });
const open = signal<ReadonlySet<string>>(new Set());
const chosen = signal(-1);

/** Whether the report has data objects. */
export function wantsMemory(): boolean {
    return hasMemory(model().pack);
}

const base = (path: string) => path.slice(path.lastIndexOf("/") + 1);

function placeText({ file, line, function: name }: Place): string {
    const at = file ? `${base(file)}${line > 0 ? `:${line}` : ""}` : "";
    return [at, name].filter((part) => part !== "").join(" ");
}

/** The function of a place, if the profile has it; -1 otherwise. */
function functionOf({ file, function: name }: Place): number {
    const report = model();
    if (name === "") { return -1; }
    let found = -1;
    for (let f = 0; f < report.functions; f++) {
        if (report.names[f] !== name) { continue; }
        if (file === "" || report.file(f) === file || base(report.file(f)) === base(file)) { return f; }
        found = found < 0 ? f : found;
    }
    return found;
}

/** Shows the code of a place. */
function goTo(at: Place) {
    const f = functionOf(at);
    if (f < 0) { return; }
    activate(f);
    reveal("code");
    const file = model().files.indexOf(at.file);
    if (file >= 0 && at.line > 0) { goalLine.value = { file, line: at.line, by: "machine" }; }
}

const share = (value: number, of: number) => (numbering.value === "percent" || numbering.value === "parent" ? percent(value, of) : digits(value));
const toggle = (key: string) => {
    const next = new Set(open.value);
    if (!next.delete(key)) { next.add(key); }
    open.value = next;
};

interface ObjectRow {
    object: DataObject;
    stream?: Stream;
    key: string;
}

const FIRST = ["D1mr", "D1mw"];

function Objects({ data }: { data: Data }) {
    const { events, totals, objects } = data;
    const { id, down } = sortObjects.value;
    const first = events.map((name, at) => (FIRST.includes(name) ? at : -1)).filter((at) => at >= 0);
    const missed = (counts: readonly number[]) => (first.length > 0 ? first : [0]).reduce((sum, at) => sum + (counts[at] ?? 0), 0);
    const expanded = open.value;
    const rows = useMemo(() => {
        const column = events.indexOf(id);
        const key = (object: DataObject) => (id === "bytes" ? object.bytes : column >= 0 ? object.counts[column] : missed(object.counts));
        const sorted = objects.filter(({ counts, bytes }) => bytes > 0 || counts.some((count) => count > 0))
            .sort((a, b) => (key(b) - key(a)) * (down ? 1 : -1) || (a.name < b.name ? -1 : 1));
        return sorted.flatMap((object): ObjectRow[] => {
            const at = `${object.kind} ${object.file} ${object.line} ${object.name}`;
            const own: ObjectRow = { object, key: at };
            return expanded.has(at) ? [own, ...object.streams.map((stream) => ({ object, stream, key: at }))] : [own];
        });
    }, [data, id, down, expanded]);
    if (objects.length === 0) { return <Empty title="No objects were told apart"><p>Record with <code>--cache-sim=yes --objects=yes</code>.</p></Empty>; }
    const all = missed(totals);
    const at = (row: number) => rows[row];
    const size = ({ bytes, blocks }: DataObject) => (blocks > 1 ? `${compact(bytes)}, ${compact(blocks)} blocks` : bytes > 0 ? compact(bytes) : "");
    const columns: TableColumn[] = [
        { id: "name", title: "Object, stream", text: true, least: 220, cell: (row) => (at(row).stream ? <span class="mono">{at(row).stream?.parts.join("; ")}</span> : <span class="object">{at(row).object.name}</span>),
            full: (row) => { const { stream, object } = at(row); return stream ? [...stream.parts, stream.hint].filter((part) => part !== "").join("\n") : `${object.name}\n${object.kind}`; } },
        { id: "missed", title: "D1 misses", width: 92, hint: "Misses of the first-level data cache: reads and writes", bar: (row) => (at(row).stream?.misses ?? missed(at(row).object.counts)) / Math.max(all, 1),
            cell: (row) => share(at(row).stream?.misses ?? missed(at(row).object.counts), all), full: (row) => digits(at(row).stream?.misses ?? missed(at(row).object.counts)) },
        { id: "kind", title: "Kind", width: 74, text: true, cell: (row) => { const { stream, object } = at(row); return stream ? (stream.used === undefined ? "" : `${stream.used} B/line`) : object.kind; },
            full: (row) => { const { stream, object } = at(row); return stream ? (stream.used === undefined ? "" : `${stream.used} of ${data.streams?.line} bytes of each line are used until it is loaded again`) : object.kind; } },
        { id: "place", title: "Where", width: 220, text: true, cell: (row) => placeText(at(row).stream ?? at(row).object), full: (row) => { const { file, line, function: name } = at(row).stream ?? at(row).object; return `${file}:${line}\n${name}`; } },
        { id: "bytes", title: "Bytes", width: 150, hint: "Bytes; of several blocks all together, and the most at a time", cell: (row) => (at(row).stream ? "" : size(at(row).object)), full: (row) => { const { bytes, blocks, peak } = at(row).object; return blocks > 1 ? `${digits(bytes)} bytes in ${digits(blocks)} blocks, at most ${digits(peak)} bytes at a time` : `${digits(bytes)} bytes`; } },
        ...events.map((name, event): TableColumn => ({ id: name, title: name, width: 84, cell: (row) => (at(row).stream ? "" : share(at(row).object.counts[event], totals[event])),
            full: (row) => `${digits(at(row).object.counts[event])} ${name}` })),
    ];
    const hints = objects.flatMap((object) => object.streams.filter(({ hint }) => hint !== "").map((stream) => ({ object, stream }))).sort((a, b) => b.stream.misses - a.stream.misses).slice(0, 3);
    return (
        <>
            {hints.map(({ object, stream }, key) => <p key={key} class="hint" role="note"><strong>{object.name}</strong>, {placeText(stream)}: {stream.hint}.</p>)}
            <Table label="Data objects" rows={rows.map((_, row) => row)} columns={columns} sort={sortObjects.value} selected={chosen.value < rows.length ? chosen.value : undefined}
                tree={(row) => ({ level: at(row).stream ? 1 : 0, open: at(row).stream || at(row).object.streams.length === 0 ? undefined : expanded.has(at(row).key) })}
                onToggle={(row) => toggle(at(row).key)} onSelect={(row) => { chosen.value = row; }} onActivate={(row) => goTo(at(row).stream ?? at(row).object)}
                onSort={(next) => { if (next === "bytes" || next === "missed" || events.includes(next)) { sortObjects.value = { id: next, down: next === id ? !down : true }; } }}
                footer={<><span>{plural(objects.length, "object")}; their misses add up to the profile's</span>
                    {data.streams ? data.streams.others > 0 && <span>{digits(data.streams.others)} misses are in no stream</span> : <span>--streams=misses tells in which steps</span>}</>} />
        </>
    );
}

/** Sizes of caches that rows are told for, in bytes. */
const SIZES = [32768, 262144, 1048576, 8388608];
const named = (bytes: number) => (bytes >= 1048576 ? `${bytes / 1048576} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`);

/** Which share of accesses caches of each size would miss. */
function Curve({ all, line, row, name }: { all: Distances; line: number; row: Distances | undefined; name: string }) {
    const most = Math.max(12, all.bins.length);
    const [width, height, left, below] = [640, 150, 44, 22];
    const x = (bits: number) => left + (bits / most) * (width - left - 12);
    const whole = Math.max(accesses(all), 1);
    const top = Math.max(...[all, ...(row ? [row] : [])].map((one) => missesOf(one, 0) / Math.max(accesses(one), 1)), 1e-6);
    const y = (share: number) => 8 + (1 - share / top) * (height - below - 12);
    const steps = (one: Distances) => Array.from({ length: most + 1 }, (_, bits) => `${bits === 0 ? "M" : "L"}${x(bits).toFixed(1)} ${y(missesOf(one, bits) / Math.max(accesses(one), 1)).toFixed(1)}`).join("");
    const told = Array.from({ length: most + 1 }, (_, bits) => `${named(line * 2 ** bits)} ${percent(missesOf(all, bits), whole)} %`);
    return (
        <svg class="curve" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Accesses that caches of each size miss: ${told.join(", ")}`}>
            {[0, 0.5, 1].map((part) => (
                <g key={part}><line x1={left} x2={width - 12} y1={y(top * part)} y2={y(top * part)} class="rule" /><text x={left - 5} y={y(top * part) + 4} text-anchor="end">{percent(top * part, 1)} %</text></g>
            ))}
            {Array.from({ length: most + 1 }, (_, bits) => bits).filter((bits) => bits % 4 === 0).map((bits) => <text key={bits} x={x(bits)} y={height - 6} text-anchor="middle">{named(line * 2 ** bits)}</text>)}
            <path d={steps(all)} class="whole"><title>{`the whole program: ${told.join(", ")}`}</title></path>
            {row && <path d={steps(row)} class="one"><title>{name}</title></path>}
        </svg>
    );
}

const by = signal<"function" | "line">("function");
const sortDistances = signal({ id: "32768", down: true });
const row = signal(-1);

function Reuse({ data: { line, sample, rows: all } }: { data: NonNullable<Data["reuse"]> }) {
    const { id, down } = sortDistances.value;
    const whole = useMemo(() => together(all, () => "")[0] ?? { file: "", line: 0, function: "", first: 0, bins: [] }, [all]);
    const bits = (bytes: number) => Math.max(0, Math.round(Math.log2(bytes / Math.max(line, 1))));
    const rows = useMemo(() => {
        const some = by.value === "line" ? [...all] : together(all, ({ file, function: name }) => `${file}\u0000${name}`);
        const key = (one: Distances) => (id === "accesses" ? accesses(one) : id === "first" ? one.first : missesOf(one, bits(Number(id))));
        return some.sort((a, b) => (key(b) - key(a)) * (down ? 1 : -1) || accesses(b) - accesses(a));
    }, [all, by.value, id, down]);
    const counted = (value: number, of: number) => (numbering.value === "absolute" ? digits(value * sample) : percent(value, of));
    const missed = (one: Distances, bytes: number) => missesOf(one, bits(bytes));
    const at = (place: number) => rows[place];
    const name = (one: Distances) => `${base(one.file)}${by.value === "line" && one.line > 0 ? `:${one.line}` : ""} ${one.function}`;
    const columns: TableColumn[] = [
        ...SIZES.map((bytes): TableColumn => ({ id: String(bytes), title: named(bytes), width: 84, hint: `Accesses that a cache of ${named(bytes)} misses, all in one set, as a share of all that it misses`,
            bar: (place) => missed(at(place), bytes) / Math.max(missed(whole, bytes), 1), cell: (place) => counted(missed(at(place), bytes), missed(whole, bytes)),
            full: (place) => `${digits(missed(at(place), bytes) * sample)} of ${digits(accesses(at(place)) * sample)} accesses` })),
        { id: "first", title: "First", width: 84, hint: "Accesses to lines that the thread had not accessed before, which every cache misses", cell: (place) => counted(at(place).first, whole.first), full: (place) => digits(at(place).first * sample) },
        { id: "accesses", title: "Accesses", width: 92, cell: (place) => counted(accesses(at(place)), accesses(whole)), full: (place) => digits(accesses(at(place)) * sample) },
        { id: "name", title: by.value === "line" ? "Line" : "Function", text: true, least: 220, cell: (place) => name(at(place)), full: (place) => `${at(place).file}\n${at(place).function}` },
    ];
    const one = rows[row.value];
    return (
        <>
            <div class="bar-tools">
                <Segments label="Rows" value={by.value} onChange={(value) => { by.value = value; row.value = -1; }} options={[["function", "Functions"], ["line", "Lines"]]} />
                <span class="muted">{sample > 1 ? `\u2248 one of ${digits(sample)} lines was looked at; ` : ""}lines of {line} bytes, a cache of one set that replaces what was used longest ago</span>
            </div>
            <Curve all={whole} line={line} row={one} name={one ? name(one) : ""} />
            <Table label="Distances" rows={rows.map((_, place) => place)} columns={columns} sort={sortDistances.value} selected={row.value < 0 ? undefined : row.value}
                onSelect={(place) => { row.value = place; }} onActivate={(place) => goTo(at(place))}
                onSort={(next) => { if (next !== "name") { sortDistances.value = { id: next, down: next === id ? !down : true }; } }}
                footer={<span>{digits(rows.length)} rows, {digits(accesses(whole) * sample)} accesses{one ? `; the second line of the picture is ${name(one)}` : "; choose a row to see it in the picture"}</span>} />
        </>
    );
}

interface SharedRow {
    lines: SharedLines;
    use?: SharedUse;
    key: string;
}

/** The bytes of a line that a thread has read and written. */
function Bytes({ line, use }: { line: number; use: SharedUse }) {
    const cell = (spans: [number, number][], at: number) => spans.some(([from, to]) => at >= from && at < to);
    const runs: { from: number; to: number; kind: string }[] = [];
    for (let at = 0; at < line; at++) {
        const now = cell(use.written, at) ? "written" : cell(use.read, at) ? "read" : "";
        const last = runs[runs.length - 1];
        if (last && last.kind === now) { last.to = at + 1; } else { runs.push({ from: at, to: at + 1, kind: now }); }
    }
    return <span class="bytes-used" aria-hidden="true">{runs.map(({ from, to, kind: what }) => <span key={from} class={what} style={{ width: `${((to - from) * 100) / line}%` }} />)}</span>;
}

function Sharing({ data, objects }: { data: NonNullable<Data["sharing"]>; objects: readonly DataObject[] }) {
    const { line, threads, others, counted, rows: all } = data;
    const closed = open.value;
    const rows = useMemo(() => [...all].sort((a, b) => (counted ? b.reads + b.writes - a.reads - a.writes : b.lines - a.lines)).flatMap((lines, at): SharedRow[] => {
        const key = `shared ${at}`;
        // They begin open: who uses what is what there is to see.
        return closed.has(key) ? [{ lines, key }] : [{ lines, key }, ...lines.uses.map((use) => ({ lines, use, key }))];
    }), [all, closed, counted]);
    if (all.length === 0) { return <Empty title="No lines are shared"><p>No line that a thread wrote was used by another one while both lived.</p></Empty>; }
    const whole = all.reduce((sum, { reads, writes }) => sum + reads + writes, 0);
    const name = (object: number) => objects[object]?.name ?? "line";
    const at = (place: number) => rows[place];
    const range = (use: SharedUse) => {
        const ends = [...use.read, ...use.written];
        const [from, to] = [Math.min(...ends.map(([first]) => first)), Math.max(...ends.map(([, last]) => last))];
        return ends.length === 0 ? "" : `${name(use.object)}+${use.offset + from}..${use.offset + to - 1}`;
    };
    const said = (use: SharedUse) => `T${use.thread} ${[use.read.length > 0 ? "reads" : "", use.written.length > 0 ? "writes" : ""].filter((word) => word !== "").join(" and ")} ${range(use)}`;
    const every: TableColumn[] = [
        { id: "what", title: "Shared, thread", text: true, least: 220, cell: (place) => {
            const { lines, use } = at(place);
            if (use) { return said(use); }
            const names = [...new Set(lines.uses.map(({ object }) => name(object)))].join(", ");
            return <><strong class={lines.falsely ? "falsely" : ""}>{lines.falsely ? "false" : "true"}</strong> <span class="object">{names}</span></>;
        }, full: (place) => { const { use, lines } = at(place); return use ? said(use) : lines.falsely ? "No byte that one of them writes is used by another one: give each lines of its own" : "At least one byte that one of them writes is used by another one"; } },
        { id: "reads", title: "Reads", width: 92, cell: (place) => share((at(place).use ?? at(place).lines).reads, whole), full: (place) => digits((at(place).use ?? at(place).lines).reads) },
        { id: "writes", title: "Writes", width: 92, cell: (place) => share((at(place).use ?? at(place).lines).writes, whole), full: (place) => digits((at(place).use ?? at(place).lines).writes) },
        { id: "lines", title: "Lines", width: 64, hint: `Lines of ${line} bytes that the same threads share in the same way`, cell: (place) => (at(place).use ? "" : digits(at(place).lines.lines)) },
        { id: "bytes", title: "Bytes of the line", width: 210, text: true, hint: "Full: written; hatched: read", cell: (place) => { const { use } = at(place); return use ? <Bytes line={line} use={use} /> : ""; },
            full: (place) => { const { use } = at(place); const say = (spans: [number, number][]) => spans.map(([from, to]) => `${from}..${to - 1}`).join(" ") || "none"; return use ? `reads bytes ${say(use.read)}; writes bytes ${say(use.written)}` : ""; } },
        { id: "where", title: "Where", width: 220, text: true, cell: (place) => at(place).use?.places.map(placeText).join("; ") ?? "", full: (place) => at(place).use?.places.map(({ file, line: number, function: of }) => `${file}:${number} ${of}`).join("\n") ?? "" },
    ];
    const columns = counted ? every : every.filter(({ id }) => id !== "reads" && id !== "writes");
    return (
        <Table label="Shared lines" rows={rows.map((_, place) => place)} columns={columns} selected={chosen.value >= 0 && chosen.value < rows.length ? chosen.value : undefined}
            tree={(place) => ({ level: at(place).use ? 1 : 0, open: at(place).use ? undefined : !closed.has(at(place).key) })} onToggle={(place) => toggle(at(place).key)}
            onSelect={(place) => { chosen.value = place; }} onActivate={(place) => { const first = at(place).use?.places[0]; if (first) { goTo(first); } }}
            footer={<><span>{plural(all.length, "way")} of sharing among {plural(threads, "thread")}, lines of {line} bytes</span>{others > 0 && <span>{digits(others)} lines are in no row</span>}</>} />
    );
}

export function MemoryView() {
    const pack = model().pack;
    if (!hasMemory(pack)) {
        return <Empty title="This report has no data objects"><p>Record with <code>--cache-sim=yes --objects=yes</code>, and add <code>--mem mem.out.PID</code> when the report is made.</p></Empty>;
    }
    const data = memory(pack);
    if (!data) { return <Loading />; }
    const { reuse, sharing } = data;
    const kinds: [Kind, string, string][] = [["objects", "Objects", "Misses by data object, and in which steps"],
        ...(reuse ? [["distances", "Distances", "Other lines that were accessed since a line was accessed last"] as [Kind, string, string]] : []),
        ...(sharing ? [["sharing", "Sharing", "Lines that threads share"] as [Kind, string, string]] : [])];
    const wanted = data.objects.length === 0 && kind.value === "objects" ? kinds[kinds.length - 1][0] : kind.value;
    const shown = kinds.some(([id]) => id === wanted) ? wanted : "objects";
    return (
        <div class="view">
            {kinds.length > 1 && <div class="bar-tools"><Segments label="Memory" value={shown} onChange={(value) => { kind.value = value; chosen.value = -1; }} options={kinds} /></div>}
            {shown === "objects" && <Objects data={data} />}
            {shown === "distances" && reuse && <Reuse data={reuse} />}
            {shown === "sharing" && sharing && <Sharing data={sharing} objects={data.objects} />}
        </div>
    );
}
