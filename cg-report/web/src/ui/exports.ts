// What can be taken out of the report: graphs as DOT, paths as folded stacks and for speedscope, pictures as PNG.

import { pathTo } from "../layout/expand.ts";
import { treeOf, ways } from "../state/paths.ts";
import { event, model } from "../state/store.ts";
import { save } from "./save.ts";

export { csv, csvCell, save } from "./save.ts";

/** A string of DOT. */
export function dotString(text: string): string {
    return `"${text.replaceAll("\\", "\\\\").replaceAll("\"", "\\\"").replaceAll("\n", "\\n")}"`;
}

/** Saves a picture as it is seen. */
export function savePng(canvas: HTMLCanvasElement | null | undefined, name: string) {
    canvas?.toBlob((blob) => { if (blob) { save(name, blob); } });
}

export const exporters = {
    /** Paths below a function as speedscope reads them. */
    speedscope(root: number): string {
        const names = new Map<string, number>();
        const samples: number[][] = [];
        const weights: number[] = [];
        for (const line of exporters.folded(root).split("\n")) {
            const at = line.lastIndexOf(" ");
            if (at < 0) { continue; }
            samples.push(line.slice(0, at).split(";").map((name) => {
                const known = names.get(name) ?? names.size;
                names.set(name, known);
                return known;
            }));
            weights.push(Number(line.slice(at + 1)));
        }
        return JSON.stringify({
            $schema: "https://www.speedscope.app/file-format-schema.json", exporter: "cg_report", name: model().pack.head.title,
            shared: { frames: [...names.keys()].map((name) => ({ name })) },
            profiles: [{ type: "sampled", name: event.value.name, unit: "none", startValue: 0, endValue: weights.reduce((sum, weight) => sum + weight, 0), samples, weights }],
        });
    },

    /** Paths below a function, one a line, as flame graph tools read them. */
    folded(root: number): string {
        const way = ways(false, [model().side]);
        if (!way) { return ""; }
        // What was recorded is all there; what is estimated has no end.
        const tree = treeOf(way, root, { budget: way.chains ? Infinity : 20_000, least: 0.5 });
        const lines: string[] = [];
        for (let node = 0; node < tree.count; node++) {
            const cost = Math.round(tree.own[0][node] + tree.rest[0][node]);
            if (cost <= 0) { continue; }
            const names = (root >= 0 ? [root] : []).concat(pathTo(tree, node)).map((f) => model().names[f].replaceAll(";", ","));
            lines.push(`${names.join(";") || "(no function)"} ${cost}`);
        }
        return `${lines.join("\n")}\n`;
    },
};
