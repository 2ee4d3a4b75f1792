import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashApiKey } from '../../../src/stores/api-keys.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { type BuiltCommand, builtCommand, type ServerProcess } from '../../cli/support/built-command.ts'
import { expectBooksAgree } from '../../support/books-agree.ts'
import { missingProgram, realServer } from '../../support/real-servers.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { startNginx } from '../../support/start-nginx.ts'
import { freePort } from '../../support/started-process.ts'

const postgres = await realServer('postgres')
const redis = await realServer('redis')
const missing = postgres.missing ?? redis.missing ?? missingProgram('nginx')

const CONFIGURATION = readFileSync(join(import.meta.dirname, '../../../examples/deploy/nginx.conf'), 'utf8')
const GATEWAYS = 4
/** As the kubelet does, in place of seconds. */
const PROBE_INTERVAL_MS = 100
const SHUTDOWN_DELAY_MS = 1_000
/** Rounds of restarts. */
const ROUNDS = process.env['DRILL'] === 'long' ? 5 : 1

/**
 * Requests of the callers: whole answers, streams, and streams that take over a second, so that each restart meets some. They wait
 * for the vendor, so that the processes are not busy until the next one starts.
 */
const KINDS = [
  { stream: false, text: 'Say hello [[fault:delay=40]]' },
  { stream: true, text: 'Say hello [[fault:pace=10]]' },
  { stream: true, text: 'Tell a long tale of rain over the sea and of what became of it. [[fault:pace=60]]' },
] as const
const CALLERS = 6

/** The published configuration with our ports, and an idle time that is below our shorter delay too. */
function configurationFor(port: number, gatewayPorts: readonly number[]): string {
  let next = 0
  return CONFIGURATION.replace('listen 80;', `listen 127.0.0.1:${port};`)
    .replaceAll(/server 10\.0\.0\.\d+:8787/g, () => `server 127.0.0.1:${gatewayPorts[next++]}`)
    .replace('keepalive_timeout 4s;', 'keepalive_timeout 500ms;')
}

/** Status of one probe; undefined where nothing listens. */
async function probe(url: string): Promise<number | undefined> {
  const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } }).catch(() => undefined)
  await answer?.text().catch(() => undefined)
  return answer?.status
}

/** Probes until the gateway answers so, and gives all that was seen. */
async function probedUntil(url: string, wanted: number | undefined): Promise<(number | undefined)[]> {
  const seen: (number | undefined)[] = []
  await expect
    .poll(
      async () => {
        const status = await probe(url)
        if (seen.at(-1) !== status || seen.length === 0) seen.push(status)
        return status
      },
      { interval: PROBE_INTERVAL_MS, timeout: 30_000 },
    )
    .toBe(wanted)
  return seen
}

let command: BuiltCommand
beforeAll(async () => {
  if (missing === undefined) command = await builtCommand()
}, 60_000)
afterAll(() => command?.remove())

describe.skipIf(missing !== undefined)('four gateways behind nginx, restarted one after another under load', () => {
  test('fail no request, whole or streamed, and charge each answer once', { timeout: 120_000 * ROUNDS }, async () => {
    const key = `sk-nginx-${randomBytes(6).toString('hex')}`
    const accountId = `acct_${hashApiKey(key).slice(0, 16)}`
    const environment = {
      SIGNALBOX_STORE: postgres.url,
      REDIS_URL: redis.url,
      SIGNALBOX_EXPECTED_INSTANCES: `${GATEWAYS}`,
      SIGNALBOX_LIMITS: 'rpm=1000000,concurrency=1000',
      SIGNALBOX_API_KEYS: key,
      SIGNALBOX_LIST_PRICES: '1',
      SIGNALBOX_CREDIT: '100',
      SIGNALBOX_SHUTDOWN_DELAY: `${SHUTDOWN_DELAY_MS}ms`,
    }
    const ports: number[] = []
    for (let index = 0; index < GATEWAYS; index++) ports.push(await freePort())
    const start = (port: number): Promise<ServerProcess> =>
      command.serve(['--sandbox'], { ...environment, PORT: `${port}` })
    const gateways = await Promise.all(ports.map(start))
    const nginx = await startNginx((port) => configurationFor(port, ports))

    const failures: string[] = []
    const answered = new Set<string>()
    let isOver = false
    const call = async ({ stream, text: prompt }: (typeof KINDS)[number]): Promise<void> => {
      const answer = await fetch(`${nginx.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...chatBody('cl-sonnet-4-6', prompt), stream }),
      })
      const text = await answer.text()
      const isWhole = stream ? text.trimEnd().endsWith('data: [DONE]') : text.includes('"finish_reason":"stop"')
      if (answer.status === 200 && isWhole) answered.add(answer.headers.get('x-request-id') ?? '')
      else failures.push(`${answer.status} ${text.slice(-300)}`)
    }
    const callers = Array.from({ length: CALLERS }, async (_, index) => {
      while (!isOver) {
        await call(KINDS[index % KINDS.length]!).catch((error: Error) => failures.push(String(error.cause ?? error)))
      }
    })

    const seen: (number | undefined)[][] = []
    const exits: (number | null)[] = []
    for (let turn = 0; turn < GATEWAYS * ROUNDS; turn++) {
      const index = turn % GATEWAYS
      const { url } = gateways[index]!
      const before = answered.size
      const exit = gateways[index]!.end('SIGTERM')
      // Not ready at once, gone later.
      seen.push([...(await probedUntil(url, 503)), ...(await probedUntil(url, undefined))])
      exits.push(await exit)
      // The next one is not restarted before this one is ready again and the callers have got on.
      gateways[index] = await start(ports[index]!)
      await probedUntil(url, 200)
      await expect.poll(() => answered.size, { timeout: 30_000 }).toBeGreaterThan(before + CALLERS)
    }
    isOver = true
    await Promise.all(callers)
    await nginx.stop()
    // Ended in order, they have settled everything.
    exits.push(...(await Promise.all(gateways.map((gateway) => gateway.end('SIGTERM')))))

    expect(failures).toEqual([])
    expect(answered.size).toBeGreaterThan(100)
    expect(exits).toEqual(exits.map(() => 0))
    for (const states of seen) expect(states.filter((status) => status !== 200)).toEqual([503, 503, undefined])

    const pool = new pg.Pool({ connectionString: postgres.url, max: 2 })
    const store = postgresStore({ pool })
    await store.start?.()
    const page = { accountId, fromMs: 0, untilMs: 9e12, order: 'oldest', after: undefined, limit: 100_000 } as const
    const charges = (await store.ledger.lines(page)).filter(({ kind }) => kind === 'charge')
    const charged = charges.map(({ holdId }) => holdId)
    expect(charged.sort()).toEqual([...answered].sort())
    expect(await store.ledger.account(accountId)).toMatchObject({ held: 0n, owed: 0n })
    await expectBooksAgree(store, accountId)
    await store.close?.()
    await pool.end()
  })
})
