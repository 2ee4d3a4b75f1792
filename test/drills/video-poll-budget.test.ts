import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { VideoCallers } from './support/video-callers.ts'
import { type VideoServerSettings, videoProcesses } from './support/video-processes.ts'

const isLong = process.env['DRILL'] === 'long'
const TASKS = isLong ? 10_000 : 500
const WATCHED_MS = isLong ? 60_000 : 6_000
const TIMEOUT = { timeout: isLong ? 900_000 : 120_000 }

/** Vendor's rate limit for one account (DashScope, "Manage asynchronous tasks"). */
const QUESTIONS_PER_SECOND = 20
const MAX_RESIDENT_BYTES = 100 * 1024 * 1024

/**
 * A small heap, in MiB: what is measured is what following needs. With room, a process that starts on a busy machine takes 25 MB more before
 * V8 collects for the first time.
 */
const start = videoProcesses('--max-semi-space-size=2 --max-old-space-size=48')
const newPath = temporaryPaths()

let sandbox: Sandbox

beforeEach(() => {
  sandbox = sandboxVendors({ videoPendingMs: 0, maxRequests: 10 })
})
afterEach(() => sandbox.close())

/** The most moments within any second. */
function mostWithinOneSecond(moments: readonly number[]): number {
  const sorted = moments.toSorted((one, other) => one - other)
  let most = 0
  let first = 0
  sorted.forEach((atMs, index) => {
    while (sorted[first]! <= atMs - 1_000) first++
    most = Math.max(most, index - first + 1)
  })
  return most
}

async function submitAll(settings: VideoServerSettings): Promise<void> {
  const server = await start(settings)
  const callers = new VideoCallers({ key: settings.key, webhookUrl: 'http://127.0.0.1:9/', server: async () => server })
  const prompts = Array.from({ length: TASKS }, (_, index) => `[[video:stuck]] a boat, number ${index}`)
  await callers.submitAll(prompts, 16)
  await server.end('SIGTERM')
  expect(callers.wanted.filter(({ taskId }) => taskId === undefined)).toEqual([])
}

describe('two processes that follow the tasks of one vendor account', () => {
  test(
    `ask about ${TASKS} open tasks at most ${QUESTIONS_PER_SECOND} times a second, together, in 100 MB each`,
    TIMEOUT,
    async () => {
      const { origin } = await sandbox.listen()
      const settings: VideoServerSettings = {
        store: { kind: 'sqlite', path: newPath() },
        vendorOrigin: origin,
        vendorKey: 'vendor-key',
        key: 'sk-drill-0123456789',
        account: 'acct_drill',
        credit: String(TASKS),
        webhookSecret: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
        // More tasks fall due than may be asked about.
        pollIntervalMs: 1_000,
      }
      await submitAll(settings)
      // Measures only the polling of tasks, by processes that find them in the store.
      const servers = [await start(settings), await start(settings)]

      const askedAtMs: number[] = []
      const residentBytes: number[] = []
      const untilMs = Date.now() + WATCHED_MS
      await expect
        .poll(
          async () => {
            for (const measured of await Promise.all(servers.map((process) => process.measure()))) {
              askedAtMs.push(...measured.askedAtMs)
              residentBytes.push(measured.residentBytes)
            }
            return Date.now()
          },
          { timeout: TIMEOUT.timeout, interval: 500 },
        )
        .toBeGreaterThan(untilMs)
      await Promise.all(servers.map((process) => process.end('SIGTERM')))

      expect(mostWithinOneSecond(askedAtMs)).toBeLessThanOrEqual(QUESTIONS_PER_SECOND)
      // They do not merely stand still.
      expect(askedAtMs.length).toBeGreaterThan((WATCHED_MS / 1_000) * (QUESTIONS_PER_SECOND / 4))
      expect(Math.max(...residentBytes)).toBeLessThanOrEqual(MAX_RESIDENT_BYTES)
    },
  )
})
