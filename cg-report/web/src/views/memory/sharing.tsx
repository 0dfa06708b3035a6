// Lines that threads share, and who uses which bytes of them.

import type { Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { digits, plural } from "../../data/format.ts";
import type { DataObject, Memory, SharedLines, SharedUse } from "../../data/memory.ts";
import { turn, turned } from "../../state/memory.ts";
import { Empty } from "../../ui/parts.tsx";
import { Table, type TableColumn } from "../../ui/table.tsx";
import { goTo, placeText, share } from "./common.ts";

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

export function Sharing({ data, objects, chosen }: { data: NonNullable<Memory["sharing"]>; objects: readonly DataObject[]; chosen: Signal<number> }) {
    const { line, threads, others, counted, rows: all } = data;
    const closed = turned.value;
    const rows = useMemo(() => [...all].sort((a, b) => (counted ? b.reads + b.writes - a.reads - a.writes : b.lines - a.lines)).flatMap((lines, at): SharedRow[] => {
        const key = `s${at}`;
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
            tree={(place) => ({ level: at(place).use ? 1 : 0, open: at(place).use ? undefined : !closed.has(at(place).key) })} onToggle={(place) => turn(at(place).key)}
            onSelect={(place) => { chosen.value = place; }} onActivate={(place) => { const first = at(place).use?.places[0]; if (first) { goTo(first); } }}
            footer={<><span>{plural(all.length, "way")} of sharing among {plural(threads, "thread")}, lines of {line} bytes</span>{others > 0 && <span>{digits(others)} lines are in no row</span>}</>} />
    );
}
