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
const only = process.env.ONLY ? [`--test-name-pattern=${process.env.ONLY}`] : [];
try {
    const env = { ...process.env };
    env.CG_REPORT ??= join(root, "target/debug/cg_report");
    env.CALLGRIND_ANNOTATE ??= join(root, "target/debug/callgrind_annotate");
    env.CG_EXPORT ??= join(root, "target/debug/cg_export");
    for (const program of [env.CG_REPORT, env.CALLGRIND_ANNOTATE, env.CG_EXPORT]) {
        if (!existsSync(program)) { throw new Error(`${program} is not built: cargo build -p cg-report -p callgrind-annotate -p cg-export`); }
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
