import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { formatDollars } from '../../../src/core/money.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../../src/stores/task-store.ts'
import { fakeClock, type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import { testPrices } from '../../support/test-prices.ts'
import { startReceiver, type WebhookReceiver } from '../../tasks/support/webhook-receiver.ts'
import { type DrillStore, openDrillStore } from './open-drill-store.ts'
import { VideoCallers } from './video-callers.ts'
import { type VideoProcess, type VideoServerSettings, videoProcesses } from './video-processes.ts'

const isLong = process.env['DRILL'] === 'long'
const TASKS = isLong ? 1_000 : 60
/** While videos are submitted, and while they end. */
const KILLS = isLong ? 8 : 2
const LATE_KILLS = isLong ? 4 : 1
const CALLERS = isLong ? 40 : 12
const REFUSE_EVERY = 7
/** How long a test may take. */
export const VIDEO_KILLS_TIMEOUT = { timeout: isLong ? 900_000 : 120_000 }

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const VENDOR_KEY = 'vendor-key'
const CREDIT_DOLLARS = BigInt(TASKS)
const CREDIT = CREDIT_DOLLARS * 1_000_000_000n
const HOUR_MS = 3_600_000

let sandbox: Sandbox
let receiver: WebhookReceiver
let vendorOrigin: string
let start: ReturnType<typeof videoProcesses>

/** Returns how often the vendor accepted each prompt. */
function submissionsByPrompt(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { method, body } of sandbox.requests) {
    if (method !== 'POST') continue
    const { prompt } = (body as { input: { prompt: string } }).input
    counts.set(prompt, (counts.get(prompt) ?? 0) + 1)
  }
  return counts
}

/** Submits everything while the gateway is killed again and again, then kills it while the videos end. */
async function submitUnderFire(settings: VideoServerSettings): Promise<VideoCallers> {
  let server: Promise<VideoProcess> = start(settings)
  const killed = async (old: Promise<VideoProcess>): Promise<VideoProcess> => {
    await (await old).end('SIGKILL')
    return await start(settings)
  }
  const callers = new VideoCallers({ key: settings.key, webhookUrl: `${receiver.origin}/hook`, server: () => server })
  let kills = 0
  callers.onAnswer = () => {
    if (kills === KILLS || callers.wanted.length < ((kills + 1) * TASKS) / (KILLS + 1)) return
    kills++
    server = killed(server)
  }
  await callers.submitAll(
    Array.from({ length: TASKS }, (_, index) => `a boat, number ${index}`),
    CALLERS,
  )
  for (let late = 1; late <= LATE_KILLS; late++) {
    await receiver.received(Math.floor((late * TASKS) / (3 * LATE_KILLS)))
    server = killed(server)
  }
  await (await server).end('SIGTERM')
  expect(kills).toBe(KILLS)
  return callers
}

/** Ends everything with a last gateway whose clock is ahead, and returns the final state. */
async function endEverything(settings: VideoServerSettings) {
  const { store, release } = openDrillStore(settings.store)
  // Two hours on, every lease of a process that was killed is over; a day on, nobody waits for anything.
  const clock = fakeClock({ startMs: Date.now() + 2 * HOUR_MS })
  const gateway = createGateway({
    vendors: [dashscope({ apiKey: VENDOR_KEY, baseURL: vendorOrigin })],
    prices: testPrices,
    store,
    webhookSecret: SECRET,
    allowPrivateUrls: true,
    clock,
  })
  await gateway.start()
  const tasks = async (): Promise<readonly TaskRecord[]> => {
    const all: TaskRecord[] = []
    for (;;) {
      const page = await store.tasks.list(settings.account, { limit: 1_000, after: all.at(-1)?.id })
      all.push(...page.tasks)
      if (!page.hasMore) return all
    }
  }
  const untilNoneIs = (states: readonly string[]): Promise<void> =>
    expect
      .poll(
        async () => {
          clock.advance(1_000)
          return (await tasks()).filter(({ state }) => states.includes(state)).length
        },
        { timeout: VIDEO_KILLS_TIMEOUT.timeout / 2, interval: 250 },
      )
      .toBe(0)
  await untilNoneIs(OPEN_TASK_STATES.filter((state) => state !== 'unknown'))
  const made = await tasks()
  clock.advance(26 * HOUR_MS)
  await untilNoneIs(OPEN_TASK_STATES)
  const ended = await tasks()
  await expect
    .poll(
      () => {
        clock.advance(1_000)
        return new Set(receiver.messages.map(({ id }) => id)).size
      },
      { timeout: VIDEO_KILLS_TIMEOUT.timeout / 2, interval: 100 },
    )
    .toBeGreaterThanOrEqual(ended.length)
  const account = await store.ledger.account(settings.account)
  const entries = await store.ledger.entries(settings.account, 10 * TASKS)
  // Records of tasks that cost nothing are written a little later.
  await vi.waitFor(() => expectBooksAgree(store, settings.account), { timeout: 20_000, interval: 200 })
  const closed = gateway.close({ drainMs: 1_000 })
  clock.advance(60_000)
  await closed
  await release()
  return { made, ended, account, entries }
}

async function drill(store: DrillStore): Promise<void> {
  const settings: VideoServerSettings = {
    store,
    vendorOrigin,
    vendorKey: VENDOR_KEY,
    key: `sk-${randomBytes(12).toString('hex')}`,
    account: 'acct_drill',
    credit: formatDollars(CREDIT),
    webhookSecret: SECRET,
    pollIntervalMs: 1_000,
    refuseEvery: REFUSE_EVERY,
  }

  const { wanted } = await submitUnderFire(settings)
  const { made, ended, account, entries } = await endEverything(settings)
  const submissions = submissionsByPrompt()
  const completed = ended.filter(({ state }) => state === 'completed')
  const lost = ended.filter(({ state }) => state !== 'completed')
  const charges = entries.filter(({ kind }) => kind === 'charge')
  const known = new Set(ended.map(({ id }) => id))

  // Nothing is lost: every id that a caller has exists, and every video that the vendor made under an id of ours is charged.
  expect(wanted).toHaveLength(TASKS)
  expect(wanted.filter(({ taskId }) => taskId !== undefined && !known.has(taskId))).toEqual([])
  expect(ended.length).toBe(TASKS)
  expect(made.filter(({ upstreamId, state }) => upstreamId !== undefined && state !== 'completed')).toEqual([])
  expect(lost.map(({ details }) => details.error?.code)).toEqual(lost.map(() => 'submission_unknown'))
  // Only tasks that were cut off between sending and noting are unknown: at most those in flight at the kills.
  expect(lost.length).toBeLessThanOrEqual(KILLS * CALLERS)
  // Nothing was submitted twice, whatever the callers repeated and however many connections did not come about.
  expect([...submissions].filter(([, count]) => count > 1)).toEqual([])
  expect(submissions.size).toBeGreaterThanOrEqual(completed.length)
  // Nothing was settled twice, and the journal says what the balance says.
  expect(charges.map(({ holdId }) => holdId).sort()).toEqual(completed.map(({ holdId }) => holdId).sort())
  expect(charges.every(({ amount }) => amount === -400_000_000n)).toBe(true)
  expect(account).toMatchObject({ balance: CREDIT - BigInt(completed.length) * 400_000_000n, held: 0n })
  expect(entries.reduce((sum, { amount }) => sum + amount, 0n)).toBe(account?.balance)
  // Every end was reported at least once, under one id.
  const idsByTask = new Map<string, Set<string>>()
  for (const { id, body } of receiver.messages) {
    const { data } = JSON.parse(body) as { data: { id: string } }
    idsByTask.set(data.id, (idsByTask.get(data.id) ?? new Set()).add(id))
  }
  expect([...idsByTask.keys()].sort()).toEqual([...known].sort())
  expect([...idsByTask.values()].every((ids) => ids.size === 1)).toBe(true)
}

/** The title of the drill. */
export const VIDEO_KILLS = `${TASKS} videos and a gateway that is killed ${KILLS + LATE_KILLS} times: none lost, submitted or charged twice`

/** A vendor and a receiver for each test of the file that calls this; the result submits videos through gateways that are killed. */
export function videoKills(): (store: DrillStore) => Promise<void> {
  start = videoProcesses()
  beforeEach(async () => {
    sandbox = sandboxVendors({ videoPendingMs: 0, videoRunningMs: 1_500, maxRequests: 1_000_000 })
    vendorOrigin = (await sandbox.listen()).origin
    receiver = await startReceiver()
  })
  afterEach(async () => {
    await receiver.close()
    await sandbox.close()
  })
  return drill
}
