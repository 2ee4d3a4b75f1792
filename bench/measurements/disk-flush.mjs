import { closeSync, fdatasyncSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { quantile } from '../statistics.mjs'

/** Size of a page of PostgreSQL's log, and of its files, which it overwrites. */
const PAGE_BYTES = 8_192
const FILE_PAGES = 2_048

/** Measures the time of a durable write on the disk of the databases: one page of an existing file, then `fdatasync`. */
export const diskFlush = {
  async prepare() {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
    const file = openSync(join(folder, 'log'), 'w')
    writeSync(file, Buffer.alloc(PAGE_BYTES * FILE_PAGES))
    fsyncSync(file)
    return { folder, file }
  },

  async measure({ prepared: { file }, options }) {
    const page = Buffer.alloc(PAGE_BYTES, 1)
    const durations = []
    const beganAt = performance.now()
    const deadline = beganAt + options.seconds * 1_000
    while (performance.now() < deadline) {
      const startedAt = performance.now()
      writeSync(file, page, 0, PAGE_BYTES, (durations.length % FILE_PAGES) * PAGE_BYTES)
      fdatasyncSync(file)
      durations.push(performance.now() - startedAt)
    }
    const elapsedMs = performance.now() - beganAt
    return {
      answersPerSecond: (durations.length * 1_000) / elapsedMs,
      p50Ms: quantile(durations, 0.5),
      p99Ms: quantile(durations, 0.99),
    }
  },

  async finish({ prepared: { folder, file } }) {
    closeSync(file)
    rmSync(folder, { recursive: true })
  },
}
