// What runs beside the page: the layout of graphs, and searches by regular expressions.

import { layout, type LayoutJob } from "./layout/layered.ts";

export type Job = LayoutJob | { kind: "search"; pattern: string; names: string[] };

self.onmessage = ({ data }: MessageEvent<Job>) => {
    try {
        if (data.kind === "search") {
            const pattern = new RegExp(data.pattern, "i");
            self.postMessage({ answer: Uint8Array.from(data.names, (name) => (pattern.test(name) ? 1 : 0)) });
        } else {
            self.postMessage({ answer: layout(data) });
        }
    } catch (error) {
        self.postMessage({ fault: String(error) });
    }
};
