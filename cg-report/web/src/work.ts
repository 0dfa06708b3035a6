// Work beside the page: started, waited for, and ended when nobody wants its answer any more.
//
// The program that runs there stands packed in the page, since one from file:// has nothing to load it from; it is unpacked when
// it is first needed.

import { bytesOf, inflate } from "./data/columns.ts";
import type { Job } from "./worker.ts";

let script: Promise<string> | undefined;

async function unpacked(): Promise<string> {
    const code = await inflate(bytesOf(document.getElementById("worker")?.textContent ?? ""));
    return URL.createObjectURL(new Blob([code as Uint8Array<ArrayBuffer>], { type: "text/javascript" }));
}

export function startWorker(job: Job, done: (answer: unknown) => void, failed?: (why: string) => void): { stop: () => void } {
    let worker: Worker | undefined;
    let wanted = true;
    const stop = () => {
        wanted = false;
        worker?.terminate();
    };
    const fail = (why: string) => {
        stop();
        failed?.(why);
    };
    script ??= unpacked();
    script.then((url) => {
        if (!wanted) { return; }
        worker = new Worker(url);
        worker.onmessage = ({ data }) => {
            stop();
            if (data.fault) { failed?.(data.fault); } else { done(data.answer); }
        };
        worker.onerror = (error) => fail(error.message || "the worker failed");
        worker.postMessage(job);
    }).catch((error) => { if (wanted) { fail(String(error)); } });
    return { stop };
}
