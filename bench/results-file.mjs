import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { canPin } from './child-process.mjs'
import { markdownTable } from './report.mjs'

/** The machine in words. */
export function machine() {
  const memory = Math.round(totalmem() / 1_024 ** 3)
  const pinning = canPin ? 'proxy alone on core 0, vendor and driver on core 1' : 'processes not pinned'
  const { version: undici } = createRequire(import.meta.url)('undici/package.json')
  const system = `${type()} ${release()}, Node ${process.versions.node}, undici ${undici}`
  return `${availableParallelism()} × ${cpus()[0].model}, ${memory} GB, ${system}; ${pinning}`
}

/** Writes `bench/RESULTS.md`. */
export async function writeResults({ rows, command }) {
  const text = `# Benchmark results

\`${command}\` · ${new Date().toISOString().slice(0, 10)} · ${machine()}

A mock vendor answers at once; each proxy runs in a process of its own, and they take turns within every round, in random order.
The floor is Node's HTTP server with undici's \`dispatch\`, bytes through. signalbox has everything on: keys, validation, limits,
in-memory billing, usage read from every answer. CPU is user and system time of the proxy's process. Columns are medians of the
rounds; "against the floor" is the median of the comparisons within each round, with the least and the greatest in parentheses.
Every answer is checked for status and size, one of each kind for its content, and the account must have been charged for exactly
the answers given. On a shared or virtual machine trust the ratios of CPU time; requests per second and p99 are mostly the machine's.

${markdownTable(rows)}
`
  await writeFile(new URL('./RESULTS.md', import.meta.url), text)
}
