import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseDollars } from '../../src/core/money.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { type BuiltCommand, builtCommand, type ServerProcess } from '../cli/support/built-command.ts'
import { expectBooksAgree } from '../support/books-agree.ts'
import { type RawCaller, rawPost } from '../support/raw-caller.ts'
import { chatBody, TEST_KEY, TEST_MODELS } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'

const isLong = process.env['DRILL'] === 'long'
const STREAMS = isLong ? 500 : 100
const HOLD_TTL_MS = isLong ? 20_000 : 6_000
/** How long after its deadline a hold may still be there. */
const GRACE_MS = isLong ? 60_000 : 15_000
const FINISHED = 20
/** Callers whose requests begin, end and are settled all the time, so that the signal meets those steps too. */
const BUSY_CALLERS = 4

const CHAT = '/v1/chat/completions'
const HEADERS = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }

let command: BuiltCommand
let sandbox: Sandbox
let environment: Record<string, string>

beforeEach(async () => {
  command = await builtCommand()
  sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  await writeFile(join(command.folder, 'prices.json'), JSON.stringify(testPrices))
  await writeFile(join(command.folder, 'models.json'), JSON.stringify(TEST_MODELS))
  environment = {
    SIGNALBOX_STORE: `sqlite:${join(command.folder, 'drill.db')}`,
    SIGNALBOX_PRICES: 'prices.json',
    SIGNALBOX_MODELS: 'models.json',
    SIGNALBOX_API_KEYS: TEST_KEY,
    SIGNALBOX_CREDIT: '1000',
    SIGNALBOX_HOLD_TTL: `${HOLD_TTL_MS / 1000}s`,
    SIGNALBOX_TIMEOUTS: `total=${HOLD_TTL_MS / 1000 - 1}s`,
    OPENAI_API_KEY: 'vendor-key',
    OPENAI_BASE_URL: origin,
  }
})
afterEach(async () => {
  await command.remove()
  await sandbox.close()
})

async function accountAt(server: ServerProcess): Promise<{ id: string; balance: bigint; held: bigint }> {
  const response = await fetch(`${server.url}/v1/account`, { headers: HEADERS })
  const { id, balance, held } = (await response.json()) as { id: string; balance: string; held: string }
  return { id, balance: parseDollars(balance), held: parseDollars(held) }
}

async function chat(server: ServerProcess, text: string, stream: boolean): Promise<number> {
  const body = JSON.stringify(chatBody('chat-relayed', text, { stream, max_tokens: 50 }))
  const response = await fetch(`${server.url}${CHAT}`, { method: 'POST', headers: HEADERS, body })
  await response.text()
  return response.status
}

/** Streams that have begun, and of which the rest never comes. */
async function openStreams(server: ServerProcess): Promise<RawCaller[]> {
  const body = chatBody('chat-relayed', '[[fault:hang-body=3]] one two three', { stream: true, max_tokens: 50 })
  const callers = Array.from({ length: STREAMS }, () => rawPost(server.url, CHAT, body))
  await Promise.all(callers.map((caller) => caller.received('You')))
  return callers
}

/** Keeps callers busy. The returned function resolves once all of them have noticed the end of the server. */
function keepBusy(server: ServerProcess): () => Promise<void> {
  const callers = Array.from({ length: BUSY_CALLERS }, async () => {
    while ((await chat(server, 'hello', true)) === 200);
  })
  const over = Promise.allSettled(callers)
  return async () => {
    const ends = await over
    expect(ends.map(({ status }) => status)).toEqual(new Array(BUSY_CALLERS).fill('rejected'))
  }
}

/** All records, what they say was charged, and where they differ from sums and journal. */
async function usageOf({ usage }: GatewayStore) {
  if (usage === undefined) throw new TypeError('the store keeps no usage')
  const nowMs = Date.now()
  while ((await usage.rollUp(500, nowMs)).added > 0);
  const range = { fromMs: 0, untilMs: nowMs + 86_400_000 }
  const page = { ...range, accountId: undefined, after: undefined, limit: 100_000 }
  const { records } = await usage.records(page)
  const charged = records.reduce((sum, { chargedNanoDollars }) => sum + chargedNanoDollars, 0n)
  return { records, charged, mismatches: await usage.verify(range) }
}

describe('a server that is killed while streams are under way', () => {
  test('leaves holds that the next one ends by their deadline, and no charge above a hold', {
    timeout: isLong ? 300_000 : 60_000,
  }, async () => {
    const first = await command.serve([], environment)
    for (let count = 0; count < FINISHED; count++) expect(await chat(first, 'hello', count % 2 === 0)).toBe(200)
    const before = await accountAt(first)
    const callers = await openStreams(first)
    const latestDeadlineMs = Date.now() + HOLD_TTL_MS
    const during = await accountAt(first)
    const busy = keepBusy(first)
    for (let count = 0; count < FINISHED + STREAMS + 5 * BUSY_CALLERS; count++) await sandbox.nextRequest()
    await first.end('SIGKILL')
    await Promise.all(callers.map((caller) => caller.closed))
    await busy()

    const second = await command.serve([], environment)
    const found = await accountAt(second)
    await expect
      .poll(async () => (await accountAt(second)).held, { timeout: HOLD_TTL_MS + GRACE_MS, interval: 200 })
      .toBe(0n)
    const resolvedAtMs = Date.now()
    const servesAgain = await chat(second, 'hello', false)
    await second.end('SIGTERM')
    const store = sqliteStore({ path: join(command.folder, 'drill.db') })
    await store.start()
    const account = await store.ledger.account(before.id)
    const entries = await store.ledger.entries(before.id, 100_000)
    const usage = await usageOf(store)
    await expectBooksAgree(store, before.id)
    await store.close()

    const hold = (during.held - before.held) / BigInt(STREAMS)
    expect(before.held).toBe(0n)
    expect(during).toEqual({ ...before, balance: before.balance - during.held, held: hold * BigInt(STREAMS) })
    expect(found.held).toBeGreaterThanOrEqual(during.held)
    expect(resolvedAtMs).toBeLessThanOrEqual(latestDeadlineMs + GRACE_MS)
    expect(servesAgain).toBe(200)
    const charges = entries.filter(({ kind }) => kind === 'charge')
    expect(charges.length).toBeGreaterThanOrEqual(FINISHED + 1)
    expect(charges.filter(({ amount }) => -amount > hold || amount >= 0n)).toEqual([])
    expect(new Set(charges.map(({ holdId }) => holdId)).size).toBe(charges.length)
    // The record of each charge is there, and nothing else: a kill comes before both of them or after both.
    expect(
      usage.records
        .filter(({ ending }) => ending === 'completed')
        .map(({ id }) => id)
        .sort(),
    ).toEqual(charges.map(({ holdId }) => holdId).sort())
    expect(usage.charged).toBe(charges.reduce((sum, { amount }) => sum - amount, 0n))
    expect(usage.mismatches).toEqual([])
    expect(account?.held).toBe(0n)
    expect(account?.balance).toBe(entries.reduce((sum, { amount }) => sum + amount, 0n))
  })
})
