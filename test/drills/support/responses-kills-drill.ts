import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect } from 'vitest'
import { formatDollars } from '../../../src/core/money.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../../src/stores/task-store.ts'
import { fakeClock, type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { checkGrammar, responseEvents } from '../../endpoints/responses/response-events.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import { testPrices } from '../../support/test-prices.ts'
import { type DrillProcess, drillPrograms } from './drill-process.ts'
import { type DrillStore, openDrillStore } from './open-drill-store.ts'

const isLong = process.env['DRILL'] === 'long'
const ANSWERS = isLong ? 400 : 40
const KILLS = isLong ? 8 : 3
const CALLERS = 10
const MODEL = 'cl-sonnet-4-6'
const VENDOR_KEY = 'vendor-key'
const CREDIT = 1_000_000_000_000n
const HOUR_MS = 3_600_000

/** How long a test may take. */
export const RESPONSES_KILLS_TIMEOUT = { timeout: isLong ? 600_000 : 120_000 }

/** Settings of a gateway for responses. */
export interface ResponsesServerSettings {
  readonly store: DrillStore
  readonly vendorOrigin: string
  readonly vendorKey: string
  readonly key: string
  readonly account: string
  /** Dollars, credited once. */
  readonly credit: string
}

type Server = DrillProcess<{ readonly url: string }, never>
type Json = Record<string, unknown>

let sandbox: Sandbox
let vendorOrigin: string
let start: ReturnType<typeof drillPrograms>

function settingsFor(store: DrillStore): ResponsesServerSettings {
  const key = `sk-${randomBytes(12).toString('hex')}`
  return { store, vendorOrigin, vendorKey: VENDOR_KEY, key, account: 'acct_drill', credit: formatDollars(CREDIT) }
}

function post(server: Server, { key }: ResponsesServerSettings, path: string, body: object, name?: string) {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(name === undefined ? {} : { 'idempotency-key': name }),
  }
  return fetch(`${server.ready.url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** The texts of the messages that the vendor got with its last call. */
function sentTexts(): string[] {
  const { messages } = sandbox.requests.at(-1)!.body as { messages: { content: { text: string }[] }[] }
  return messages.flatMap(({ content }) => content.map(({ text }) => text))
}

/** A gateway is killed as soon as the last byte of an answer has come; the next one on the store has everything. */
async function followUps(store: DrillStore): Promise<void> {
  const settings = settingsFor(store)
  const run = async <Value>(use: (server: Server) => Promise<Value>): Promise<Value> => {
    const server: Server = await start('responses-server', settings)
    const value = await use(server)
    await server.end('SIGKILL')
    return value
  }
  const ask = (body: object) => async (server: Server) => {
    const answer = await post(server, settings, 'responses', { model: MODEL, ...body })
    const text = await answer.text()
    expect([answer.status, text]).toEqual([200, text])
    return 'stream' in body ? checkGrammar(responseEvents(text)) : (JSON.parse(text) as Json)
  }
  const first = await run(ask({ input: 'first words', stream: true }))
  const second = await run(ask({ input: 'second words', previous_response_id: first['id'] }))
  await run(ask({ input: 'third words', previous_response_id: second['id'] }))
  expect(sentTexts().filter((text) => !text.startsWith('You said'))).toEqual([
    'first words',
    'second words',
    'third words',
  ])

  const conversation = await run(async (server) => {
    const made = await post(server, settings, 'conversations', { items: [{ role: 'user', content: 'before all' }] })
    return ((await made.json()) as { id: string }).id
  })
  await run(ask({ input: 'said then', conversation, stream: true }))
  await run(ask({ input: 'said now', conversation }))
  expect(sentTexts()).toEqual(['before all', 'said then', expect.stringContaining('You said'), 'said now'])

  const unkept = await run(ask({ input: 'forget this', store: false }))
  const opened = openDrillStore(store)
  await opened.store.start()
  const nowMs = Date.now()
  expect(await opened.store.responses.find(settings.account, String(unkept['id']), nowMs)).toBe(undefined)
  const kept = await opened.store.responses.find(settings.account, String(second['id']), nowMs)
  expect(kept?.response).toEqual(second)
  await expectBooksAgree(opened.store, settings.account)
  await opened.store.close()
  await opened.release()
}

/** Submits everything while the gateway is killed repeatedly, and returns the ids that callers got. */
async function submitUnderFire(settings: ResponsesServerSettings): Promise<readonly string[]> {
  const ids: string[] = []
  let server: Promise<Server> = start('responses-server', settings)
  let ended = 0
  let kills = 0
  const kill = async (old: Promise<Server>): Promise<Server> => {
    await (await old).end('SIGKILL')
    return await start('responses-server', settings)
  }
  const wanted = Array.from({ length: ANSWERS }, (_, index) => `[[fault:delay=250]] answer ${100_000 + index}`)
  const caller = async (): Promise<void> => {
    for (let input = wanted.shift(); input !== undefined; input = wanted.shift()) {
      for (let tries = 0; tries < 20; tries++) {
        const answer = await attempt(await server, settings, input)
        if (answer.status === 200) ids.push(answer.id)
        if (answer.status !== 0) break
      }
      // Requests with an answer do not count: if its gateway was killed, a request may find its key taken, and on a slow machine this
      // happens more often.
      ended += 1
      if (kills < KILLS && ended >= ((kills + 1) * ANSWERS) / (KILLS + 1)) {
        kills += 1
        server = kill(server)
      }
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  await (await server).end('SIGKILL')
  expect(kills).toBe(KILLS)
  return ids
}

/** Status 0: no answer came, and the same is asked again. */
async function attempt(
  server: Server,
  settings: ResponsesServerSettings,
  input: string,
): Promise<{ readonly status: number; readonly id: string }> {
  try {
    const answer = await post(server, settings, 'responses', { model: MODEL, input, background: true }, input)
    return { status: answer.status, id: String(((await answer.json()) as Json)['id']) }
  } catch {
    return { status: 0, id: '' }
  }
}

async function background(store: DrillStore): Promise<void> {
  const settings = settingsFor(store)
  const ids = await submitUnderFire(settings)
  const opened = openDrillStore(store)
  // An hour on, every lease of a process that was killed is over.
  const clock = fakeClock({ startMs: Date.now() + HOUR_MS })
  const gateway = createGateway({
    vendors: [anthropic({ apiKey: VENDOR_KEY, baseURL: vendorOrigin })],
    prices: testPrices,
    store: opened.store,
    keys: [{ key: settings.key, account: settings.account }],
    clock,
  })
  await gateway.start()
  const tasks = async (): Promise<readonly TaskRecord[]> =>
    (await opened.store.tasks.list(settings.account, { limit: 10 * ANSWERS })).tasks
  await expect
    .poll(
      async () => {
        clock.advance(1_000)
        return (await tasks()).filter(({ state }) => OPEN_TASK_STATES.includes(state)).length
      },
      { timeout: RESPONSES_KILLS_TIMEOUT.timeout / 2, interval: 100 },
    )
    .toBe(0)
  const ended = await tasks()
  const entries = await opened.store.ledger.entries(settings.account, 10 * ANSWERS)
  const account = await opened.store.ledger.account(settings.account)
  const responses = await Promise.all(ids.map((id) => readResponse(gateway, settings, id)))
  await expectBooksAgree(opened.store, settings.account)
  const closed = gateway.close({ drainMs: 1_000 })
  clock.advance(60_000)
  await closed
  await opened.release()

  // Nothing is lost or made twice: a request repeated with its key gets the same answer.
  expect(new Set(ids).size).toBe(ids.length)
  expect(ended).toHaveLength(ANSWERS)
  expect(ended.filter(({ state }) => state !== 'completed')).toEqual([])
  // Work in flight at a kill was run again.
  expect(ended.some(({ details }) => details.polls > 1)).toBe(true)
  expect(responses.map(({ status }) => status)).toEqual(ids.map(() => 'completed'))
  // Every answer was charged once, whatever was run again, and nothing is held.
  const charges = entries.filter(({ kind }) => kind === 'charge')
  expect(charges.map(({ holdId }) => holdId).sort()).toEqual(ended.map(({ holdId }) => holdId).sort())
  expect(new Set(charges.map(({ amount }) => amount)).size).toBe(1)
  expect(account?.held).toBe(0n)
  expect(account?.balance).toBe(CREDIT + charges.reduce((sum, { amount }) => sum + amount, 0n))
}

async function readResponse(gateway: Gateway, { key }: ResponsesServerSettings, id: string): Promise<Json> {
  const headers = { authorization: `Bearer ${key}` }
  const answer = await gateway.fetch(new Request(`http://gateway.invalid/v1/responses/${id}`, { headers }))
  return (await answer.json()) as Json
}

/** Titles of the drills. */
export const FOLLOW_UPS_AFTER_KILLS = 'a gateway that is killed after the last byte of each answer: the next one has it'
export const BACKGROUND_UNDER_KILLS = `${ANSWERS} responses in the background and a gateway that is killed ${KILLS + 1} times: none lost or charged twice`

/** A vendor for each test of the file that calls this. */
export function responsesKills(): Record<'followUps' | 'background', (store: DrillStore) => Promise<void>> {
  start = drillPrograms(['responses-server'])
  beforeEach(async () => {
    sandbox = sandboxVendors({ maxRequests: 100_000 })
    vendorOrigin = (await sandbox.listen()).origin
  })
  afterEach(() => sandbox.close())
  return { followUps, background }
}
