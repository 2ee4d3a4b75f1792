import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { formatDollars, parseDollars } from '../../../src/core/money.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type BuiltCommand, builtCommand } from '../../cli/support/built-command.ts'
import { chatBody, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { sendCrowd } from './crowd.ts'
import { GATED_ANSWER_COST, type GatedVendor, gatedVendor } from './gated-vendor.ts'

const REQUESTS = 2_000
const PAID_FOR = 137
const PROCESSES = 4

const BODY = chatBody('chat-relayed', 'count to three', { max_tokens: 50 })
// One token for every three bytes at 1,000 nano-dollars, and 50 tokens at 4,000.
const HOLD = BigInt(Math.ceil(Buffer.byteLength(JSON.stringify(BODY)) / 3)) * 1000n + 50n * 4000n
// Nearly enough for one more.
const CREDIT = BigInt(PAID_FOR) * HOLD + HOLD - 1n
const BALANCE_AFTER = CREDIT - BigInt(PAID_FOR) * GATED_ANSWER_COST

let vendor: GatedVendor

/** A vendor of its own for each test of the file that calls this. */
function useVendor(): void {
  beforeEach(async () => {
    vendor = await gatedVendor()
  })
  afterEach(() => vendor.close())
}

/**
 * Sends all requests at the same time. The vendor answers only when each request is answered or waits at the vendor: otherwise money
 * released by an answer would pay for another request, and 137 would not be the right number.
 */
async function sendAll(
  urls: readonly string[],
  key: string,
): Promise<{ dispatched: number; statuses: Map<number, number> }> {
  const crowd = sendCrowd(
    urls.map((url) => `${url}/v1/chat/completions`),
    { count: REQUESTS, headers: { authorization: `Bearer ${key}` }, body: BODY },
  )
  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (vendor.received + crowd.statuses.length >= REQUESTS) resolve()
    }
    vendor.onArrival = look
    crowd.onAnswer = look
  })
  const dispatched = vendor.received
  vendor.release()
  const statuses = new Map<number, number>()
  for (const status of await crowd.all) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  return { dispatched, statuses }
}

function signedDollars(text: string): bigint {
  return text.startsWith('-') ? -parseDollars(text.slice(1)) : parseDollars(text)
}

const EXPECTED_STATUSES = new Map([
  [402, REQUESTS - PAID_FOR],
  [200, PAID_FOR],
])

/** Sends many parallel requests with money for 137 to one gateway in this process. */
export function sendToOneProcess(): (store: GatewayStore) => Promise<void> {
  useVendor()
  return async (store) => {
    const started = await startGateway({ store, vendors: [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })] })
    await started.gateway.accounts.create({ id: 'acct_137' })
    await started.gateway.accounts.credit('acct_137', formatDollars(CREDIT))
    const { key } = await started.gateway.keys.create({ accountId: 'acct_137' })

    const { dispatched, statuses } = await sendAll([started.url], key)
    const account = await started.gateway.accounts.get('acct_137')
    const entries = await started.gateway.accounts.ledger('acct_137', { limit: REQUESTS })
    await started.close()

    expect(dispatched).toBe(PAID_FOR)
    expect(vendor.received).toBe(PAID_FOR)
    expect(statuses).toEqual(EXPECTED_STATUSES)
    expect(account).toMatchObject({ balance: BALANCE_AFTER, held: 0n })
    expect(entries.reduce((sum, { amount }) => sum + amount, 0n)).toBe(BALANCE_AFTER)
  }
}

/** Sends them to 4 processes on one store, named as `SIGNALBOX_STORE` names it. */
export function sendToFourProcesses(): (store: string) => Promise<void> {
  useVendor()
  let command: BuiltCommand

  beforeAll(async () => {
    command = await builtCommand()
    await writeFile(join(command.folder, 'prices.json'), JSON.stringify(testPrices))
    await writeFile(join(command.folder, 'models.json'), JSON.stringify(TEST_MODELS))
  })
  afterAll(() => command.remove())

  async function serveAndSend(store: string): Promise<void> {
    // The server may be shared with others, so every run has an account of its own.
    const key = `sk-${randomBytes(12).toString('hex')}`
    const environment = {
      SIGNALBOX_STORE: store,
      SIGNALBOX_PRICES: 'prices.json',
      SIGNALBOX_MODELS: 'models.json',
      SIGNALBOX_API_KEYS: key,
      SIGNALBOX_CREDIT: formatDollars(CREDIT),
      OPENAI_API_KEY: 'vendor-key',
      OPENAI_BASE_URL: vendor.origin,
    }
    const servers = await Promise.all(Array.from({ length: PROCESSES }, () => command.serve([], environment)))

    const { dispatched, statuses } = await sendAll(
      servers.map(({ url }) => url),
      key,
    )
    const shown = await fetch(`${servers[0]!.url}/v1/account`, { headers: { authorization: `Bearer ${key}` } })
    const account = (await shown.json()) as { id: string; balance: string; held: string }
    const exitCodes = await Promise.all(servers.map((server) => server.end('SIGTERM')))
    const words = ['accounts', 'ledger', account.id, '--limit', '1000', '--json']
    const { data } = JSON.parse((await command.run(words, environment)).stdout) as { data: { amount: string }[] }

    expect(dispatched).toBe(PAID_FOR)
    expect(vendor.received).toBe(PAID_FOR)
    expect(statuses).toEqual(EXPECTED_STATUSES)
    expect(exitCodes).toEqual([0, 0, 0, 0])
    expect(account).toMatchObject({ balance: formatDollars(BALANCE_AFTER), held: '0' })
    expect(data).toHaveLength(PAID_FOR + 1)
    expect(data.reduce((sum, { amount }) => sum + signedDollars(amount), 0n)).toBe(BALANCE_AFTER)
  }

  return serveAndSend
}
