// The data of the report. What is not unpacked yet is asked for, and whoever asked is told when it is there.

import { signal } from "@preact/signals";
import { bytesOf, decode, inflate, type Column, type ColumnInfo } from "./columns.ts";
import type { Head } from "./head.ts";

/** How text of columns is got. */
export type Data = (start: number, length: number) => Promise<string>;

/** What is said when nobody serves the page any more. */
export const ENDED = "cg_report has ended: what was not looked at yet cannot be shown.";

/** Nobody serves it. */
export class Ended extends Error {}

/** Columns from where the page comes from. */
export function served(below: string): Data {
    return async (start, length) => {
        const answer = await fetch(`${below}${start}-${length}`) // lint: the policy allows this where the page is served
            .catch(() => { throw new Ended(); });
        if (!answer.ok) { throw new Error(`the server says ${answer.status}`); }
        return answer.text();
    };
}

/** Columns of the page itself: those that are seen first, and the others, which the browser reads meanwhile. */
export function inside(first: string, rest: () => Promise<string>): Data {
    return async (start, length) => {
        const end = start + length;
        return end <= first.length ? first.slice(start, end) : (await rest()).slice(start - first.length, end - first.length);
    };
}

export class Pack {
    readonly head: Head;
    private data: Data;
    private readonly columns = new Map<string, Column>();
    private readonly texts = new Map<string, string>();
    private readonly waiting = new Map<string, Promise<void>>();
    private readonly version = signal(0);
    /** Why something could not be unpacked, as a sentence. */
    readonly fault = signal("");

    constructor(head: Head, data: Data) {
        this.head = head;
        this.data = data;
    }

    /**
     * Takes the text of the columns out of the memory that scripts have, where most of it would lie without being looked at again:
     * columns come from a blob from then on, or from where they were where the browser has no room for one.
     */
    putAway(texts: () => [string, string]) {
        const blob = new Blob(texts());
        this.data = async (start, length) => {
            try {
                return await blob.slice(start, start + length).text();
            } catch {
                const [first, rest] = texts();
                return inside(first, async () => rest)(start, length);
            }
        };
    }

    has(name: string): boolean {
        return Object.hasOwn(this.head.columns, name);
    }

    /** How many values a column has. */
    count(name: string): number {
        return this.has(name) ? this.head.columns[name][2] : 0;
    }

    /** Unpacks columns and texts. */
    async load(...names: string[]): Promise<void> {
        await Promise.all(names.map((name) => this.start(name)));
    }

    /** A column if it is there; else it comes, and who asked within a component or an effect is called again. */
    column(name: string): Column | undefined {
        const found = this.columns.get(name);
        if (!found) { this.want(name); }
        return found;
    }

    text(name: string): string | undefined {
        const found = this.texts.get(name);
        if (found === undefined) { this.want(name); }
        return found;
    }

    /** Columns that are there because they were loaded at the start. */
    now(name: string): Column {
        const found = this.columns.get(name);
        if (!found) { throw new Error(`${name} is not loaded`); }
        return found;
    }

    private want(name: string) {
        void this.version.value;
        void this.start(name).catch((error) => this.damaged(name, error));
    }

    /** Has the reader know why something is not shown. */
    damaged(name: string, error: unknown) {
        this.fault.value = error instanceof Ended ? ENDED : `A part of this report is damaged: ${name}: ${error}`;
    }

    private start(name: string): Promise<void> {
        if (this.columns.has(name) || this.texts.has(name)) { return Promise.resolve(); }
        let pending = this.waiting.get(name);
        if (!pending) {
            pending = this.unpack(name);
            this.waiting.set(name, pending);
        }
        return pending;
    }

    private async unpack(name: string) {
        if (!this.has(name)) { throw new Error("not in this report"); }
        const info: ColumnInfo = this.head.columns[name];
        const [start, length] = info;
        // (Never before who asked has gone on, since it may be in the middle of computing something.)
        const text = length > 0 ? await this.data(start, length) : "";
        const bytes = await (length === 0 ? new Uint8Array(0) : inflate(bytesOf(text)));
        if (name.startsWith("names.") || name.startsWith("src.") || name.startsWith("text.")) {
            this.texts.set(name, new TextDecoder().decode(bytes));
        } else {
            this.columns.set(name, decode(bytes, info));
        }
        this.waiting.delete(name);
        this.version.value += 1;
    }
}
