// Runs the tests: `unit`, `browser`, or both. Reports are made by the program first; what is TypeScript is bundled.
import { build } from "esbuild";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const wanted = process.argv.slice(2);
const runs = (kind) => wanted.length === 0 || wanted.includes(kind);
const scratch = mkdtempSync(join(tmpdir(), "cg-report-test-"));
const root = resolve(import.meta.dirname, "../../..");
const files = [];

/** Data objects whose names are no names. */
function hostileObjects() {
    const evil = "<img src=x onerror=window.PWN=3>\u202egnp.\u0007</script><script>window.PWN=4</script>";
    const place = { file: `/a/${evil}`, line: 3, function: evil };
    const members = { type: evil, bytes: 16, missed: [{ name: evil, bytes: 8, counts: [4] }, { name: "__proto__", offset: 8, bytes: 8, counts: [1] }] };
    const stream = { stream: "read", object: 0, instruction: 0, ...place, size: 8, executions: 5, misses: 5, last_level: 0, phase: 0, irregular: 5, distances: [5],
        prefetch: { delta: -9007199254740991, keep: true } };
    return `${[
        { version: 1, command: evil, pid: 1, desc: [`Included: ${evil}`], events: ["D1mr"], totals: [6], objects: 2, streams: { count: 1, line: 64, others: 1 },
            reuse: { count: 1, line: 64, sample: 1, accesses: 5, hits: 7 }, missed_by: 2 },
        { kind: "variable", name: evil, file: `/b/${evil}`, bytes: 16, members, counts: [5] }, { kind: "unknown", name: "???", fields: [{ offset: 0, counts: [1] }], counts: [1] },
        stream, { reuse: evil, ...place, function: undefined, first: 2, bins: [0, 3], most: [0, 1, 2] },
        { object: 0, missed_by: evil, file: evil, module: evil, counts: [5] }, { object: 1, missed_by: "f", file: "???", module: "m", counts: [1] },
    ].map((line) => JSON.stringify(line)).join("\n")}\n`;
}
const only = process.env.ONLY ? [`--test-name-pattern=${process.env.ONLY}`] : [];
try {
    const env = { ...process.env };
    env.CG_REPORT ??= join(root, "target/debug/cg_report");
    env.CALLGRIND_ANNOTATE ??= join(root, "target/debug/callgrind_annotate");
    env.CG_EXPORT ??= join(root, "target/debug/cg_export");
    env.MEM_ANNOTATE ??= join(root, "target/debug/mem_annotate");
    for (const program of [env.CG_REPORT, env.CALLGRIND_ANNOTATE, env.CG_EXPORT, env.MEM_ANNOTATE]) {
        if (!existsSync(program)) { throw new Error(`${program} is not built: cargo build -p cg-report -p callgrind-annotate -p cg-export -p mem-annotate`); }
    }
    env.GRIND ??= join(root, "target/debug/grind");
    env.REPORTS = scratch;
    const data = join(root, "cg-report/tests/data");
    const make = (name, ...profiles) => execFileSync(env.CG_REPORT, ["-o", join(scratch, `${name}.html`), "-I", data,
        ...profiles.map((profile) => (profile.startsWith("-") ? profile : join(data, profile)))], { cwd: data });
    make("rust", "rust.cg.xz", "--mod-filename=s/.*home.user.demo.//");
    make("cpp", "cpp.cg.xz", "--mod-filename=s/.*home.user.demo.//");
    make("cc1", "cc1.cg.xz");
    make("cachegrind", "rust.cachegrind.xz");
    make("threads", "threads-01.cg.xz", "threads-02.cg.xz", "threads-03.cg.xz");
    make("thread-2", "threads-02.cg.xz");
    make("exact", "exact.cg");
    make("hostile", "hostile.cg");
    make("loop", "loop.cg");
    make("inline", "inline.cg");
    make("editor", "loop.cg", "--editor=vscode");
    make("diff", "new.cg.xz", "--base=base.cg.xz");
    make("exact-diff", "exact-new.cg", "--base=exact.cg");
    make("chains", "chains.cg.xz");
    make("chains-two", "chains-two.cg.xz");
    make("chains-diff", "chains-new.cg.xz", "--base=chains.cg.xz");
    make("sets", "exact.cg", "exact-new.cg", "--separate", "--label=before", "--label=after", "--event=Work=Ir + 3 Dr");
    for (const [name, cost] of [["r1", 70], ["r2", 80], ["r3", 100], ["b1", 60], ["b2", 75]]) {
        writeFileSync(join(scratch, `${name}.cg`), `events: Ir\nfl=a.c\nfn=steady\n1 ${cost}\nfn=grown\n2 ${name.startsWith("r") ? 50 : 20}\n`);
    }
    // grind --cache-sim=yes --objects=yes --streams=misses --sharing=counts --reuse-dist=exact --D1=32768,8,64 ./shared
    make("memory", "shared.cachegrind.xz", `--mem=${join(data, "shared.mem.xz")}`, "--mod-filename=s/.demo.//");
    // grind --cache-sim=yes --objects=yes --streams=misses --reuse-dist=bounds --inclusion=inclusive --prefetch-hints=hints --I1=32768,8,64
    // --D1=32768,8,64 --LL=131072,8,64 ./members (gcc -g -O1 -fno-inline); and the same of misses, with --tool=callgrind
    make("members", "members.cachegrind.xz", `--mem=${join(data, "members.mem.xz")}`, "--mod-filename=s/.demo.//");
    make("missed", "missed.cg.xz", `--mem=${join(data, "missed.mem.xz")}`, "--mod-filename=s/.demo.//");
    writeFileSync(join(scratch, "hostile.mem"), hostileObjects());
    make("hostile-memory", "exact.cg", `--mem=${join(scratch, "hostile.mem")}`);
    writeFileSync(join(scratch, "samples.folded"), "main 5\nmain;left;shared 30\nmain;right 5\nkernel<b>;evil<i>\u202e 10\n");
    make("samples", "exact.cg", `--samples=${join(scratch, "samples.folded")}`, "--event=Pace=Smp / Ir");
    writeFileSync(join(scratch, "places"), "inline.elf+0x1000 5\ninline.elf+0x1081 3\n");
    make("placed", "inline.cg", `--samples=${join(scratch, "places")}`);
    make("apart", "apart.cg");
    make("apart-diff", "apart-new.cg", "--base=apart.cg");
    make("contexts", "contexts.cg");
    make("contexts-twice", "contexts.cg", "contexts.cg");
    make("contexts-diff", "contexts.cg", "--base=contexts-plain.cg");
    make("rates", "exact.cg", "--event=Rate=1000 Dr / Ir");
    make("rates-diff", "exact-new.cg", "--base=exact.cg", "--event=Rate=1000 Dr / Ir");
    execFileSync(env.CG_REPORT, ["-o", "runs.html", "r1.cg", "r2.cg", "r3.cg", "--base=b1.cg", "--base=b2.cg"], { cwd: scratch });
    if (runs("unit")) {
        const tests = readdirSync("test/unit").filter((file) => file.endsWith(".test.ts"));
        await build({ entryPoints: tests.map((file) => join("test/unit", file)), outdir: scratch, bundle: true, format: "esm",
            platform: "node", packages: "bundle", jsx: "automatic", jsxImportSource: "preact", outExtension: { ".js": ".mjs" }, logLevel: "warning" });
        files.push(...tests.map((file) => join(scratch, file.replace(/\.ts$/, ".mjs"))));
    }
    if (runs("browser")) {
        const tests = readdirSync("test/browser").filter((file) => file.endsWith(".test.mjs"));
        files.push(...tests.map((file) => join("test/browser", file)));
    }
    const result = spawnSync(process.execPath, ["--test", "--test-concurrency=2", ...only, ...files], { stdio: "inherit", env });
    process.exitCode = result.status ?? 1;
} finally {
    rmSync(scratch, { recursive: true, force: true });
}
