// Misses by data object. An object opens into its members (or bytes), the functions that miss it, and its streams.

import { useMemo } from "preact/hooks";
import { compact, digits, plural } from "../../data/format.ts";
import { levelsOf, missesIn, type DataObject, type Member, type Memory, type MissedBy, type Place, type Stream } from "../../data/memory.ts";
import { baseName, stableId } from "../../data/names.ts";
import { turn, turned } from "../../state/memory.ts";
import { signal, type Signal } from "@preact/signals";
import { Empty } from "../../ui/parts.tsx";
import { Table, type TableColumn } from "../../ui/table.tsx";
import { goTo, placeInFull, placeText, share } from "./common.ts";

const sorted = signal({ id: "missed", down: true });

/** What is in a row: the object itself, or one thing of it. */
type Row = { object: DataObject; key: string } & (
    { kind: "object" } | { kind: "member"; member: Member } | { kind: "function"; by: MissedBy } | { kind: "stream"; stream: Stream });

const keyOf = ({ kind, file, line, name, function: of }: DataObject) => stableId(kind, `${baseName(file)}:${line}`, `${name}\n${of}`);
const opens = ({ members, missedBy, streams }: DataObject) => members.length + missedBy.length + streams.length > 0;

function rowsOf(object: DataObject, open: ReadonlySet<string>): Row[] {
    const key = keyOf(object);
    const own: Row = { kind: "object", object, key };
    if (!open.has(key)) { return [own]; }
    return [own, ...object.members.map((member): Row => ({ kind: "member", object, key, member })), ...object.missedBy.map((by): Row => ({ kind: "function", object, key, by })),
        ...object.streams.map((stream): Row => ({ kind: "stream", object, key, stream }))];
}

function placeOf(row: Row): Place {
    return row.kind === "stream" ? row.stream : row.kind === "function" ? row.by : row.object;
}

/** Which bytes a member has. */
function bytesOf({ offset, bytes }: Member): string {
    return bytes === 0 ? "" : bytes === 1 ? `byte ${digits(offset)}` : `bytes ${digits(offset)} to ${digits(offset + bytes - 1)}`;
}

function Name({ row }: { row: Row }) {
    switch (row.kind) {
        case "object": return <><span class="object">{row.object.name}</span>{row.object.structure && <span class="muted"> {row.object.structure.name || "a structure"}</span>}</>;
        case "member": return row.member.name ? <span class="mono">.{row.member.name}</span> : <span class="muted">{bytesOf(row.member) || "between the members"}</span>;
        case "function": return <><span class="muted">in </span>{row.by.function}</>;
        default: return <span class="mono">{row.stream.parts.join("; ")}</span>;
    }
}

function nameInFull(row: Row): string {
    switch (row.kind) {
        case "object": {
            const { name, kind, structure } = row.object;
            return [name, kind, structure ? `${structure.name || "a structure"} of ${digits(structure.bytes)} bytes` : ""].filter((line) => line !== "").join("\n");
        }
        case "member": return row.member.name ? `.${row.member.name}` : bytesOf(row.member) || "between the members";
        case "function": return `in ${row.by.function}`;
        default: return [...row.stream.parts, row.stream.hint, aheadInFull(row.stream)].filter((line) => line !== "").join("\n");
    }
}

/** What a compiler may load ahead of a stream. */
function ahead({ prefetch }: Stream): string {
    return prefetch ? `${prefetch.delta < 0 ? "\u2212" : "+"}${digits(Math.abs(prefetch.delta))} B` : "";
}

function aheadInFull({ prefetch }: Stream): string {
    if (!prefetch) { return ""; }
    return `worth a prefetch ${digits(Math.abs(prefetch.delta))} bytes ${prefetch.delta < 0 ? "back" : "ahead"}, ${prefetch.keep ? "to be kept (t0): most lines are in the last level" : "used once (nta): most lines come from memory"}`;
}

function size(row: Row): string {
    if (row.kind === "member") { return row.member.name ? `${bytesOf(row.member).replace(/^bytes? /, "").replace(" to ", "\u2013")}${row.object.structure ? ` of ${digits(row.object.structure.bytes)}` : ""}` : ""; }
    if (row.kind !== "object") { return ""; }
    const { bytes, blocks } = row.object;
    return blocks > 1 ? `${compact(bytes)}, ${compact(blocks)} blocks` : bytes > 0 ? compact(bytes) : "";
}

function sizeInFull(row: Row): string {
    if (row.kind === "member") { return [bytesOf(row.member), row.object.structure ? `of ${digits(row.object.structure.bytes)}` : ""].filter((part) => part !== "").join(" "); }
    if (row.kind !== "object") { return ""; }
    const { bytes, blocks, peak } = row.object;
    return blocks > 1 ? `${digits(bytes)} bytes in ${digits(blocks)} blocks, at most ${digits(peak)} bytes at a time` : `${digits(bytes)} bytes`;
}

/** What a row is, in a word or two; of a stream how well it uses lines. */
function sort(row: Row, line: number): [string, string] {
    if (row.kind === "stream") {
        const { used } = row.stream;
        return used === undefined ? ["", ""] : [`${used} B/line`, `${used} of ${line} bytes of each line are used until it is loaded again`];
    }
    const word = row.kind === "object" ? row.object.kind : row.kind === "member" && !row.object.structure ? "bytes" : row.kind;
    return [word, word];
}

/** The counts of a row, of all events that it has. */
function countsOf(row: Row): readonly number[] {
    return row.kind === "member" ? row.member.counts : row.kind === "function" ? row.by.counts : row.kind === "object" ? row.object.counts : [];
}

export function Objects({ data, chosen }: { data: Memory; chosen: Signal<number> }) {
    const { events, totals, objects } = data;
    const { id, down } = sorted.value;
    const first = levelsOf(events);
    const missed = (row: Row) => (row.kind === "stream" ? row.stream.misses : missesIn(countsOf(row), first));
    const open = turned.value;
    const rows = useMemo(() => {
        const column = events.indexOf(id);
        const key = ({ bytes, counts }: DataObject) => (id === "bytes" ? bytes : column >= 0 ? counts[column] : missesIn(counts, first));
        return objects.filter(({ counts, bytes }) => bytes > 0 || counts.some((count) => count > 0))
            .sort((a, b) => (key(b) - key(a)) * (down ? 1 : -1) || (a.name < b.name ? -1 : 1)).flatMap((object) => rowsOf(object, open));
    }, [data, id, down, open]);
    const hints = useMemo(() => objects.flatMap((object) => object.streams.filter(({ hint }) => hint !== "").map((stream) => ({ object, stream })))
        .sort((a, b) => b.stream.misses - a.stream.misses).slice(0, 3), [objects]);
    const prefetched = useMemo(() => objects.flatMap(({ streams }) => streams).filter(({ prefetch }) => prefetch).length, [objects]);
    if (objects.length === 0) { return <Empty title="No objects were told apart"><p>Record with <code>--cache-sim=yes --objects=yes</code>.</p></Empty>; }
    const all = missesIn(totals, first);
    const at = (place: number) => rows[place];
    const line = data.streams?.line ?? 0;
    const columns: TableColumn[] = [
        { id: "name", title: "Object, member, stream", text: true, least: 220, cell: (place) => <Name row={at(place)} />, full: (place) => nameInFull(at(place)) },
        { id: "missed", title: "D1 misses", width: 92, hint: "Misses of the first-level data cache: reads and writes", bar: (place) => missed(at(place)) / Math.max(all, 1),
            cell: (place) => share(missed(at(place)), all), full: (place) => digits(missed(at(place))) },
        { id: "kind", title: "Kind", width: 74, text: true, cell: (place) => sort(at(place), line)[0], full: (place) => sort(at(place), line)[1] },
        ...(prefetched > 0 ? [{ id: "ahead", title: "Ahead", width: 84, text: true, hint: "How far ahead a prefetch is worth it: advice, by assumptions about a processor", cell: (place: number) => { const row = at(place); return row.kind === "stream" ? ahead(row.stream) : ""; },
            full: (place: number) => { const row = at(place); return row.kind === "stream" ? aheadInFull(row.stream) : ""; } }] : []),
        { id: "place", title: "Where", width: 220, text: true, cell: (place) => { const row = at(place); return row.kind === "member" ? "" : placeText(row.kind === "function" ? { ...row.by, function: "" } : placeOf(row)); },
            full: (place) => { const row = at(place); return row.kind === "member" ? "" : row.kind === "function" ? `${row.by.file}\n${row.by.module}` : placeInFull(placeOf(row)); } },
        { id: "bytes", title: "Bytes", width: 150, hint: "Bytes; of several blocks all together, and the most at a time; of a member its place in the structure", cell: (place) => size(at(place)), full: (place) => sizeInFull(at(place)) },
        ...events.map((name, event): TableColumn => ({ id: name, title: name, width: 84, cell: (place) => { const count = countsOf(at(place))[event]; return count === undefined ? "" : share(count, totals[event]); },
            full: (place) => { const count = countsOf(at(place))[event]; return count === undefined ? "" : `${digits(count)} ${name}`; } })),
    ];
    return (
        <>
            {data.included && <p class="hint" role="note">{!data.included.exact && <strong>{"\u2248 "}</strong>}{data.included.text}.</p>}
            {hints.map(({ object, stream }, key) => <p key={key} class="hint" role="note"><strong>{object.name}</strong>, {placeText(stream)}: {stream.hint}.</p>)}
            <Table label="Data objects" rows={rows.map((_, place) => place)} columns={columns} sort={sorted.value} selected={chosen.value < rows.length ? chosen.value : undefined}
                tree={(place) => ({ level: at(place).kind === "object" ? 0 : 1, open: at(place).kind === "object" && opens(at(place).object) ? open.has(at(place).key) : undefined })}
                onToggle={(place) => turn(at(place).key)} onSelect={(place) => { chosen.value = place; }} onActivate={(place) => goTo(placeOf(at(place)))}
                onSort={(next) => { if (next === "bytes" || next === "missed" || events.includes(next)) { sorted.value = { id: next, down: next === id ? !down : true }; } }}
                footer={<><span>{plural(objects.length, "object")}; their misses add up to the profile's</span>
                    {prefetched > 0 && <span>{plural(prefetched, "stream")} worth a prefetch</span>}
                    {data.streams ? data.streams.others > 0 && <span>{digits(data.streams.others)} misses are in no stream</span> : <span>--streams=misses tells in which steps</span>}</>} />
        </>
    );
}
