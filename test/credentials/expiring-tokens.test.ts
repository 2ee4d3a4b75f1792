import { createServer } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { CredentialProvider } from '../../src/core/credential.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import type { ApiKeys } from '../../src/vendors/vendor.ts'
import { listen } from '../support/listen.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { CLOUD_KEYS, CLOUD_MODEL, CLOUD_PRICES, cloudRequest, type TokenRule, tokenVendor } from './token-vendor.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Gives tokens of 60 seconds over HTTP; the token says when it ends. */
async function tokenServer(now: () => number) {
  let underWay = 0
  let most = 0
  let given = 0
  const server = createServer((_request, response) => {
    underWay += 1
    most = Math.max(most, underWay)
    setImmediate(() => {
      underWay -= 1
      given += 1
      response.end(JSON.stringify({ token: `token-until-${now() + 60_000}-canary`, expiresAtMs: now() + 60_000 }))
    })
  })
  const { origin, close } = await listen(server)
  closers.push(close)
  const url = `${origin}/`
  const provider: CredentialProvider = async ({ signal }) =>
    (await (await fetch(url, { signal })).json()) as { token: string; expiresAtMs: number }
  return {
    provider,
    get given() {
      return given
    },
    get most() {
      return most
    },
  }
}

async function started(apiKey: ApiKeys, rule: TokenRule, clock = fakeClock()) {
  const vendor = await tokenVendor(rule)
  closers.push(() => vendor.close())
  const events: GatewayEvent[] = []
  const logged: string[] = []
  const log = (message: string, details?: unknown): void => void logged.push(`${message} ${JSON.stringify(details)}`)
  const gateway: Gateway = createGateway({
    vendors: [openaiCompatible({ id: 'cloud', baseURL: vendor.baseURL, apiKey, models: [] })],
    models: [CLOUD_MODEL],
    prices: CLOUD_PRICES,
    keys: CLOUD_KEYS,
    limits: { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 },
    clock,
    logger: { debug: log, info: log, warn: log, error: log },
    onEvent: (event) => void events.push(event),
  })
  await gateway.start()
  await gateway.accounts.credit(TEST_ACCOUNT, '100')
  closers.push(() => gateway.close({ drainMs: 1 }))
  const money = async () => {
    const account = await gateway.accounts.get(TEST_ACCOUNT)
    return { balance: account?.balance, held: account?.held }
  }
  return { vendor, gateway, clock, events, logged, money }
}

const endOf = (token: string): number => Number(/until-(\d+)-/.exec(token)?.[1])

describe('a vendor with tokens of 60 seconds', () => {
  test('has no failed call in 10,000, and one refresh at a time', async () => {
    const clock = fakeClock()
    const tokens = await tokenServer(() => clock.now())
    const rule: TokenRule = (token) =>
      endOf(token) > clock.now() ? undefined : { status: 401, message: 'The token is expired' }
    const { gateway, vendor } = await started(tokens.provider, rule, clock)

    const statuses = new Map<number, number>()
    for (let batch = 0; batch < 1000; batch++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) => gateway.fetch(cloudRequest(index % 2 === 0 ? {} : { stream: true }))),
      )
      for (const answer of answers) {
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        expect(await answer.text()).toContain('yes')
      }
      clock.advance(600)
    }

    expect([...statuses]).toEqual([[200, 10_000]])
    expect(tokens.most).toBe(1)
    // Ten lifetimes, each renewed a fifth ahead of its end.
    expect(tokens.given).toBeGreaterThanOrEqual(10)
    expect(tokens.given).toBeLessThanOrEqual(14)
    expect(vendor.calls).toHaveLength(10_000)
  }, 120_000)

  test.each([
    [401, 'Unauthorized'],
    [403, 'ExpiredTokenException: The security token included in the request is expired'],
  ])('asks once more with a new token when the vendor answers %i', async (status, message) => {
    const refused = new Set<string>()
    let made = 0
    const provider: CredentialProvider = () => ({ token: `token-canary-${++made}` })
    const rule: TokenRule = (token) => (refused.has(token) ? { status, message: `${message} ${token}` } : undefined)
    const { gateway, vendor, clock, events } = await started(provider, rule)
    expect((await gateway.fetch(cloudRequest())).status).toBe(200)
    refused.add('token-canary-1')
    clock.advance(10_000)
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => gateway.fetch(cloudRequest(index % 2 === 0 ? {} : { stream: true }))),
    )
    for (const answer of answers) {
      expect(answer.status).toBe(200)
      await answer.text()
    }
    expect(made).toBe(2)
    expect(vendor.calls).toHaveLength(201)
    expect(events.filter(({ type }) => type === 'attempt-failed' || type === 'circuit-opened')).toEqual([])
  })

  test('does not repeat a call that lacks a permission', async () => {
    let made = 0
    const { gateway, vendor, clock, money } = await started(
      () => ({ token: `token-canary-${++made}` }),
      () => ({ status: 403, message: 'Caller does not have permission aiplatform.endpoints.predict' }),
    )
    clock.advance(10_000)
    expect((await gateway.fetch(cloudRequest())).status).toBe(503)
    expect(vendor.calls).toHaveLength(1)
    expect(made).toBe(1)
    expect(await money()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('answers 503 and charges nothing when the provider fails, and says what to set', async () => {
    const provider: CredentialProvider = async () => {
      throw new Error('AADSTS7000222: the client secret has expired: set AZURE_CLIENT_SECRET')
    }
    const { gateway, vendor, events, logged, money } = await started(provider, () => undefined)
    for (const body of [{}, { stream: true }]) {
      const answer = await gateway.fetch(cloudRequest(body))
      expect(answer.status).toBe(503)
      expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
      expect(await answer.text()).not.toContain('AZURE')
    }
    expect(vendor.calls).toHaveLength(0)
    expect(await money()).toEqual({ balance: 100_000_000_000n, held: 0n })
    const told = events.filter((event) => event.type === 'credential-refresh-failed')
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ vendor: 'cloud', message: expect.stringContaining('set AZURE_CLIENT_SECRET') })
    expect(logged.join()).toContain('set AZURE_CLIENT_SECRET')
  })

  test('has its token in no answer, event or log line, whatever the vendor says', async () => {
    const token = 'opaque-token-canary-7c41'
    const { gateway, events, logged, clock } = await started(
      () => ({ token }),
      (sent) => ({ status: 400, message: `bad request with ${sent}` }),
    )
    clock.advance(10_000)
    for (const body of [{}, { stream: true }]) {
      const answer = await gateway.fetch(cloudRequest(body))
      expect(answer.status).toBe(400)
      const text = await answer.text()
      expect(text).toContain('[redacted]')
      expect(text).not.toContain('canary')
    }
    const seen = JSON.stringify([events, logged, gateway.routes()], (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    expect(seen).not.toContain('canary')
  })

  test('ends a call that waits for a token with the request itself', async () => {
    const clock = fakeClock()
    let asked: () => void = () => undefined
    const isAsked = new Promise<void>((resolve) => (asked = resolve))
    const { gateway, vendor, money } = await started(
      () => {
        asked()
        return new Promise(() => undefined)
      },
      () => undefined,
      clock,
    )
    const answer = gateway.fetch(cloudRequest())
    await isAsked
    clock.advance(10_000)
    expect((await answer).status).toBe(503)
    expect(vendor.calls).toHaveLength(0)
    expect(await money()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('accepts static keys in addition, and may use a separate header', async () => {
    const provider: CredentialProvider = () => ({ token: 'from-the-provider', header: 'api-key' })
    const { gateway, vendor } = await started(['text-key', provider], () => undefined)
    for (let call = 0; call < 4; call++) expect((await gateway.fetch(cloudRequest())).status).toBe(200)
    const sent = vendor.calls.map(({ headers }) => headers['api-key'] ?? headers.authorization)
    expect(sent.toSorted()).toEqual(['Bearer text-key', 'Bearer text-key', 'from-the-provider', 'from-the-provider'])
    expect(gateway.routes().vendors[0]?.keys).toHaveLength(2)
  })
})
