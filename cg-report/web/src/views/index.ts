// The views, in the order of their tabs. A view is a component that asks for the data it shows; nothing else knows it.

import type { ComponentType } from "preact";
import { live } from "../state/live.ts";
import { isDiff, model } from "../state/store.ts";
import { Cache, hasCaches } from "./cache.tsx";
import { Calls } from "./calls.tsx";
import { CallTree } from "./calltree.tsx";
import { Code } from "./code.tsx";
import { Flame } from "./flame.tsx";
import { AllFunctions } from "./all.tsx";
import { FlowGraph } from "./flowgraph.tsx";
import { Graph } from "./graph.tsx";
import { InlinedView } from "./inlined.tsx";
import { Live } from "./live.tsx";
import { Loops } from "./loops.tsx";
import { Overview } from "./overview.tsx";
import { MemoryView, wantsMemory } from "./memory.tsx";
import { hasParts, Parts } from "./parts.tsx";
import { Why } from "./why.tsx";
import { Treemap } from "./treemap.tsx";

export interface View {
    id: string;
    title: string;
    hint: string;
    component: ComponentType;
    /** Whether this report has what it shows; where that is not so for a reason that can be told, the view tells it. */
    wanted?: () => boolean;
}

export const VIEWS: View[] = [
    { id: "overview", title: "Overview", hint: "Totals and what costs most", component: Overview },
    { id: "flame", title: "Flame", hint: "Call paths as stacked cells", component: Flame },
    { id: "graph", title: "Graph", hint: "The call graph around the active function", component: Graph },
    { id: "treemap", title: "Treemap", hint: "Call paths as nested rectangles", component: Treemap },
    { id: "calls", title: "Calls", hint: "Callers and callees", component: Calls },
    { id: "code", title: "Code", hint: "Source with costs", component: Code },
    { id: "calltree", title: "Call tree", hint: "Call paths as a table", component: CallTree },
    { id: "loops", title: "Loops", hint: "Loops of the active function", component: Loops, wanted: () => model().pack.head.sides[0].jumps },
    { id: "flow", title: "Blocks", hint: "Blocks of the active function and how often each way between them was taken", component: FlowGraph, wanted: () => model().pack.head.sides[0].jumps && model().pack.head.sides[0].addresses },
    { id: "inlined", title: "Inlined", hint: "What was inlined into the active function", component: InlinedView, wanted: () => model().pack.head.sides[0].addresses },
    { id: "cache", title: "Cache", hint: "Cache misses and their rates", component: Cache, wanted: hasCaches },
    { id: "memory", title: "Memory", hint: "Data objects, streams, distances, shared lines", component: MemoryView, wanted: wantsMemory },
    { id: "parts", title: "Parts", hint: "Dumps, threads and processes, one by one", component: Parts, wanted: hasParts },
    { id: "why", title: "Why", hint: "What the change consists of", component: Why, wanted: () => isDiff.value },
    { id: "live", title: "Live", hint: "The run that goes on", component: Live, wanted: () => live.value !== undefined },
    { id: "functions", title: "Functions", hint: "All functions with all events", component: AllFunctions },
];
