import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { compileProgram, type Program } from '../../support/program.ts'
import { realServer } from '../../support/real-servers.ts'
import type { LimitsJob, LimitsReport } from './support/limits-process.ts'

const server = await realServer('redis')
const DURATION_MS = process.env['DRILL'] === 'long' ? 20_000 : 3_000
const PER_SECOND = 1_000
// More than flows back while a busy machine lets none of the processes run.
const BURST = 500

describe.skipIf(server.missing !== undefined)('several processes on one Redis', () => {
  let startProgram: (job: LimitsJob) => Program

  beforeAll(async () => {
    startProgram = await compileProgram(join(import.meta.dirname, 'support/limits-process.ts'))
  })

  test('4 processes together get one limit, within 1 %', async () => {
    const job = {
      url: server.url,
      prefix: `test:${randomUUID()}:`,
      take: { bucket: 'requests:key_1', amount: 1, perMinute: PER_SECOND * 60, burst: BURST },
    }
    const programs = Array.from({ length: 4 }, () => startProgram(job))
    for (const program of programs) expect(await program.message()).toBe('ready')

    const endMs = Date.now() + DURATION_MS
    for (const program of programs) program.send(`${endMs}`)
    const reports = await Promise.all(programs.map((program) => program.message<LimitsReport>()))
    await Promise.all(programs.map((program) => program.ended))

    const granted = reports.reduce((sum, report) => sum + report.granted, 0)
    const firstMs = Math.min(...reports.map((report) => report.firstAskedAtMs))
    const lastMs = Math.max(...reports.map((report) => report.lastAnsweredAtMs))
    const limitUntil = (untilMs: number): number => BURST + ((untilMs - firstMs) / 1_000) * PER_SECOND
    // All ask until the end, and the last answers come a little later.
    expect(granted).toBeGreaterThanOrEqual(0.99 * limitUntil(endMs))
    expect(granted).toBeLessThanOrEqual(1.01 * limitUntil(lastMs))
    for (const report of reports) expect(report.refused).toBeGreaterThan(0)
  }, 60_000)
})
