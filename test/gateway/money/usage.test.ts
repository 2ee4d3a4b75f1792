import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { exampleDraft } from '../../../src/testing/contracts/contract-runner.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import type { UsageQuery, UsageRecordsRequest } from '../../../src/usage/usage-query.ts'
import { type UsageRecord, usageRecord } from '../../../src/usage/usage-record.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { videoBody } from '../../drills/support/video-bodies.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { completion, spoken } from '../hooks/hooked-gateway.ts'
import { answeringVendor } from '../streams/answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const NOON_MS = Date.UTC(2026, 10, 20, 12)

let started: StartedGateway

afterEach(() => started.close())

/** Starts a gateway whose clock is set to noon. */
async function begin(options: Partial<GatewayOptions> = {}) {
  const clock = fakeClock({ startMs: NOON_MS })
  started = await startGateway({ clock, ...options })
  return clock
}

async function chat(text: string, rest: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  const response = await started.post(CHAT, chatBody('chat-relayed', text, rest), headers)
  await response.text()
  return response
}

/** Every record, newest first; those that wait to be written included. */
async function records(clock: ReturnType<typeof fakeClock>): Promise<readonly UsageRecord[]> {
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  return (await started.gateway.usage.records()).records
}

describe('the attempts in the record of a call', () => {
  const outcomesOf = (record: UsageRecord | undefined) =>
    record?.attempts?.map(({ vendor, model, outcome, reason, status }) => [vendor, model, outcome, reason, status])

  test('are left out where there was one that did not fail, of a whole answer as of a stream', async () => {
    const clock = await begin()
    for (const stream of [false, true]) await started.ended(await chat('hello', { stream }))

    expect((await records(clock)).map(({ ending, attempts }) => [ending, attempts])).toEqual([
      ['completed', undefined],
      ['completed', undefined],
    ])
  })

  test.each([false, true])('name those that failed before the one that was answered, streamed: %s', async (stream) => {
    const clock = await begin()
    started.sandbox.fault({ kind: 'status', status: 503, times: 1 })
    await started.ended(await chat('hello', { stream }))
    const [record] = await records(clock)

    expect(outcomesOf(record)).toEqual([
      ['openai', 'chat-relayed', 'failed', 'unavailable', 503],
      ['openai', 'chat-relayed', 'answered', undefined, undefined],
    ])
    expect(record?.attempts?.map(({ credentialId }) => credentialId)).toEqual([
      record?.credentialId,
      record?.credentialId,
    ])
    expect(JSON.stringify(record?.attempts)).not.toContain('vendor-key-canary')
  })

  test('name the only one where it failed, and one that broke off in the middle of a stream', async () => {
    const clock = await begin()
    await started.ended(await chat('[[fault:status=400]] hello'))
    await started.ended(await chat('[[fault:reset-mid-stream=3]] one two three four', { stream: true }))
    const found = (await records(clock)).map(outcomesOf)

    expect(found).toContainEqual([['openai', 'chat-relayed', 'failed', expect.any(String), 400]])
    expect(found).toContainEqual([['openai', 'chat-relayed', 'failed', expect.any(String), undefined]])
  })
})

describe('the record of a call', () => {
  test('says what a whole answer used and cost, and who asked for it', async () => {
    const clock = await begin()
    const headers = { 'x-signalbox-user': 'user_7', 'x-signalbox-tags': 'team:a, beta,no tag,beta' }
    const response = await chat('hello', {}, headers)
    const ended = await started.ended(response)
    const [record, ...others] = await records(clock)

    expect(others).toEqual([])
    expect(ended.tags).toEqual(['team:a', 'beta'])
    expect(record).toMatchObject({
      id: ended.requestId,
      endedAtMs: NOON_MS,
      accountId: TEST_ACCOUNT,
      keyId: ended.keyId,
      endUser: 'user_7',
      tags: ['team:a', 'beta'],
      endpoint: 'chat',
      model: 'chat-relayed',
      requestedModel: 'chat-relayed',
      vendor: 'openai',
      ending: 'completed',
      status: 200,
      code: undefined,
      isStream: false,
      usage: ended.usage,
      isEstimated: false,
      dueNanoDollars: ended.costNanoDollars,
      chargedNanoDollars: ended.costNanoDollars,
    })
    expect(record?.credentialId).toMatch(/^openai:/)
    expect(record?.credentialId).not.toContain('vendor-key-canary')
    expect(record?.chargedNanoDollars).toBeGreaterThan(0n)
  })

  test("has the vendor's id of the answer, of a whole answer as of a stream", async () => {
    const vendor = await answeringVendor((response, { stream }) => {
      response.setHeader('x-request-id', stream === true ? 'req_stream' : 'req_whole')
      const answer = stream === true ? spoken(['Hello.']) : completion('Hello.')
      answer(response, {})
    })
    onTestFinished(() => vendor.close())
    const clock = await begin({ vendors: [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })] })
    for (const stream of [false, true]) await started.ended(await chat('hello', { stream }))

    expect((await records(clock)).map(({ isStream, vendorRequestId }) => [isStream, vendorRequestId])).toEqual([
      [true, 'req_stream'],
      [false, 'req_whole'],
    ])
  })

  test('is one for each of a stream, a cut stream, a refusal of the vendor, and a caller who was refused before has none', async () => {
    const clock = await begin()
    await chat('hello', { stream: true })
    await chat('[[fault:reset-mid-stream=3]] one two three four', { stream: true })
    await chat('[[fault:status=400]] hello')
    await chat('hello', { temperature: 'hot' })
    const found = await records(clock)
    const entries = await started.gateway.accounts.ledger(TEST_ACCOUNT)
    const charges = entries.filter(({ kind }) => kind === 'charge').reduce((sum, { amount }) => sum - amount, 0n)

    expect(found.map(({ ending, status, isStream }) => [ending, status, isStream]).sort()).toEqual([
      ['completed', 200, true],
      ['failed', 200, true],
      ['failed', 400, false],
    ])
    expect(found.reduce((sum, { chargedNanoDollars }) => sum + chargedNanoDollars, 0n)).toBe(charges)
    expect(found.filter(({ isStream }) => isStream).every(({ firstByteMs }) => firstByteMs !== undefined)).toBe(true)
    expect(found.find(({ status }) => status === 400)).toMatchObject({ chargedNanoDollars: 0n, dueNanoDollars: 0n })
  })

  test('takes end user and tags of the host before those of the caller', async () => {
    const principal = { accountId: 'acct_1', keyId: 'key_1', tier: 'paid', endUser: 'host', tags: ['fixed'] } as const
    const clock = await begin({ billing: 'off', authenticate: () => principal })
    await chat('hello', {}, { 'x-signalbox-user': 'other', 'x-signalbox-tags': 'a,b,c,d,e,f,g,h,i' })
    const [record] = await records(clock)

    expect(record).toMatchObject({
      endUser: 'host',
      chargedNanoDollars: 0n,
      usage: { inputTokens: expect.any(Number) },
    })
    expect(record?.tags).toEqual(['fixed', 'a', 'b', 'c', 'd', 'e', 'f', 'g'])
  })

  test('has the tags of the key before those of the caller, and a key that replaces it keeps them', async () => {
    const clock = await begin()
    const { keys } = started.gateway
    const { record } = await keys.create({ accountId: TEST_ACCOUNT, tags: ['team:a', 'beta'] })
    const { key } = await keys.rotate(record.id)
    await chat('hello', {}, { authorization: `Bearer ${key}`, 'x-signalbox-tags': 'mine,beta' })

    expect((await records(clock))[0]?.tags).toEqual(['team:a', 'beta', 'mine'])
    await expect(keys.create({ accountId: TEST_ACCOUNT, tags: ['no tag'] })).rejects.toMatchObject({ param: 'tags' })
  })

  test('is written for a video with its charge when it ends', async () => {
    started = await startGateway({ taskPollIntervalMs: 20 }, { videoPendingMs: 20, videoRunningMs: 20 })
    const tagged = { 'x-signalbox-tags': 'film' }
    const answer = await started.post('/v1/videos/generations', videoBody('wv2.7-t2v'), tagged)
    const { id } = (await answer.json()) as { readonly id: string }
    const ended = await started.taskEnded(id)
    const { records: found } = await started.gateway.usage.records()

    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({
      id: ended.requestId,
      endpoint: 'videos',
      model: ended.model,
      tags: ['film'],
      usage: ended.usage,
      chargedNanoDollars: ended.costNanoDollars,
    })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
  })

  test('is not kept where the host does not want it', async () => {
    await begin({ usage: 'off' })
    await chat('hello')

    await expect(started.gateway.usage.records()).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('a call whose record the database refuses', () => {
  test('is still charged, and reported', async () => {
    const store = memoryStore()
    const ledger = {
      ...store.ledger,
      settle: async (...[settlement, nowMs]: Parameters<typeof store.ledger.settle>) => ({
        ...(await store.ledger.settle({ ...settlement, record: undefined }, nowMs)),
        recordFault: new Error('value out of range'),
      }),
    }
    await begin({ store: { ...store, ledger } })
    const response = await chat('hello')
    const { costNanoDollars } = await started.ended(response)

    expect(costNanoDollars).toBeGreaterThan(0n)
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'internal-error', where: 'usage' }))
  })
})

describe('gateway.usage.query', () => {
  test('adds up by day and model what the journal says', async () => {
    const clock = await begin()
    await chat('hello')
    clock.advance(24 * 3_600_000)
    await chat('hello')
    await (await started.post('/v1/embeddings', { model: 'embedding-relayed', input: 'hello' })).text()
    const report = await started.gateway.usage.query({ from: '2026-11-01', groupBy: ['day', 'model'] })
    const account = await started.account()

    expect(report.asOfMs).toBe(clock.now())
    expect(report.rows.map(({ atMs, model, requests }) => [atMs, model, requests])).toEqual([
      [Date.UTC(2026, 10, 20), 'chat-relayed', 1],
      [Date.UTC(2026, 10, 21), 'chat-relayed', 1],
      [Date.UTC(2026, 10, 21), 'embedding-relayed', 1],
    ])
    const charged = report.rows.reduce((sum, { chargedNanoDollars }) => sum + chargedNanoDollars, 0n)
    expect(charged).toBe(100_000_000_000n - account.balance)
    const [month] = (
      await started.gateway.usage.query({ from: '2026-11-01', groupBy: ['month'], account: TEST_ACCOUNT })
    ).rows
    expect(month).toMatchObject({ atMs: Date.UTC(2026, 10), requests: 3, chargedNanoDollars: charged })
    const hours = await started.gateway.usage.query({
      from: '2026-11-20T11:30',
      to: '2026-11-20T13:00Z',
      groupBy: ['hour'],
    })
    expect(hours.rows.map(({ atMs }) => atMs)).toEqual([NOON_MS])
    expect(await started.gateway.usage.verify({ from: '2026-11-01' })).toEqual([])
  })

  test('adds up by end user and by tag, of an account and by the hour too', async () => {
    await begin()
    await chat('hello', {}, { 'x-signalbox-user': 'user_7', 'x-signalbox-tags': 'team:a,beta' })
    await chat('hello', { user: 'user_7' }, { 'x-signalbox-user': 'user_8', 'x-signalbox-tags': 'beta' })
    await chat('hello')
    const ask = async (query: Partial<UsageQuery>) =>
      (await started.gateway.usage.query({ from: '2026-11-19', ...query })).rows
    const account = await started.account()
    const users = await ask({ groupBy: ['endUser'] })
    const tags = await ask({ groupBy: ['hour', 'account', 'tag'], account: TEST_ACCOUNT })
    const months = await ask({ groupBy: ['month', 'endUser'], tag: 'beta' })

    expect(users.map(({ endUser, requests }) => [endUser, requests])).toEqual([
      ['', 1],
      ['user_7', 1],
      ['user_8', 1],
    ])
    const charged = users.reduce((sum, { chargedNanoDollars }) => sum + chargedNanoDollars, 0n)
    expect(charged).toBe(100_000_000_000n - account.balance)
    expect(tags.map(({ atMs, tag, requests }) => [atMs, tag, requests])).toEqual([
      [NOON_MS, '', 1],
      [NOON_MS, 'beta', 2],
      [NOON_MS, 'team:a', 1],
    ])
    expect(months.map(({ atMs, endUser, requests }) => [atMs, endUser, requests])).toEqual([
      [Date.UTC(2026, 10), 'user_7', 1],
      [Date.UTC(2026, 10), 'user_8', 1],
    ])
  })

  test('asks for no end users of days whose records are not kept', async () => {
    await begin({ usage: { retention: { recordDays: 3 } } })
    const early = started.gateway.usage.query({ from: '2026-11-16', endUser: 'user_7' })

    await expect(early).rejects.toMatchObject({ code: 'invalid_request', param: 'from' })
    expect((await started.gateway.usage.query({ from: '2026-11-18', endUser: 'user_7' })).rows).toEqual([])
  })

  test('keeps the sums of days whose records are deleted: they are neither made again nor compared', async () => {
    const clock = await begin({ usage: { retention: { recordDays: 3 } } })
    await chat('hello')
    clock.advance(4 * 24 * 3_600_000)
    await chat('hello')
    clock.advance(10_000)
    await vi.waitFor(async () => expect((await started.gateway.usage.records()).records).toHaveLength(1))
    const days = async () =>
      (await started.gateway.usage.query({ from: '2026-11-20', groupBy: ['day', 'account'] })).rows
    const refused = { code: 'invalid_request', param: 'from', message: expect.stringContaining('2026-11-22') }

    await expect(started.gateway.usage.rebuild({ from: '2026-11-20' })).rejects.toMatchObject(refused)
    await expect(started.gateway.usage.verify({ from: '2026-11-21' })).rejects.toMatchObject(refused)
    await started.gateway.usage.rebuild({ from: '2026-11-22' })

    expect((await days()).map(({ requests }) => requests)).toEqual([1, 1])
    expect(await started.gateway.usage.verify({ from: '2026-11-22' })).toEqual([])
  })

  test('answers by month as many rows as asked for, however many their days have', async () => {
    const store = memoryStore()
    const draft = exampleDraft({ accountId: 'a' })
    const nothing = { dueNanoDollars: 0n, chargedNanoDollars: 0n }
    const records = ['2026-10-30', '2026-10-31', '2026-11-01', '2026-11-02'].flatMap((day) =>
      Array.from({ length: 30 }, (_, index) =>
        usageRecord({ ...draft, keyId: `key_${index}` }, { ...nothing, endedAtMs: Date.parse(day) }),
      ),
    )
    await store.usage?.write(records)
    const series = vi.spyOn(store.usage!, 'series')
    await begin({ store })
    const ask = (limit: number) =>
      started.gateway.usage.query({ from: '2026-10-30', groupBy: ['month', 'key'], account: 'a', limit })

    const { rows } = await ask(60)

    expect(rows.map(({ atMs, requests }) => [atMs, requests])).toEqual([
      ...Array.from({ length: 30 }, () => [Date.UTC(2026, 9), 2]),
      ...Array.from({ length: 30 }, () => [Date.UTC(2026, 10), 2]),
    ])
    expect(rows.map(({ key }) => key).slice(0, 30)).toEqual(rows.map(({ key }) => key).slice(30))
    expect(series.mock.results.map(({ value }) => value.length)).toEqual([30, 30])
    await expect(ask(59)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('makes sums again day by day, so that calls wait for one day at most', async () => {
    const store = memoryStore()
    const rebuild = vi.spyOn(store.usage!, 'rebuild')
    await begin({ store })

    await started.gateway.usage.rebuild({ from: '2026-11-19' })

    const [first, second, end] = [19, 20, 21].map((day) => Date.UTC(2026, 10, day))
    expect(rebuild.mock.calls).toEqual([[{ fromMs: first, untilMs: second }], [{ fromMs: second, untilMs: end }]])
  })

  test('asks for no hours whose sums are not kept', async () => {
    await begin({ usage: { retention: { hourDays: 3 } } })
    const ask = (from: string) => started.gateway.usage.query({ from, groupBy: ['hour'] })

    await expect(ask('2026-11-16')).rejects.toMatchObject({ code: 'invalid_request', param: 'from' })
    expect((await ask('2026-11-17T12:30')).rows).toEqual([])
  })

  test('asks for no days of an account whose sums are not kept, whatever step it takes', async () => {
    await begin({ usage: { retention: { dayDays: 7 } } })
    const { usage } = started.gateway
    const account = TEST_ACCOUNT
    const early: readonly UsageQuery[] = [
      { from: '2026-11-12', account, groupBy: ['day'] },
      { from: '2026-11-12', groupBy: ['month', 'key'] },
      { from: '2026-11-12T23:00Z', groupBy: ['account'] },
    ]

    for (const query of early)
      await expect(usage.query(query)).rejects.toMatchObject({ code: 'invalid_request', param: 'from' })
    expect((await usage.query({ from: '2026-11-13', account, groupBy: ['day'] })).rows).toEqual([])
    // Sums by hour exist only for all accounts together, and are kept longer.
    expect((await usage.query({ from: '2026-11-12', groupBy: ['day', 'model'] })).rows).toEqual([])
  })

  const refused: readonly (readonly [name: string, query: unknown, param: string])[] = [
    ['a range of ten years', { from: '2016-11-20' }, 'from'],
    ['a moment that is none', { from: 'yesterday' }, 'from'],
    ['a day that its month does not have', { from: '2026-02-30' }, 'from'],
    ['a time of a day that there is not', { from: '2026-06-31T08:00+02:00' }, 'from'],
    ['not a number', { from: Number.NaN }, 'from'],
    ['no moment', {}, 'from'],
    ['an invalid date', { from: new Date('garbage') }, 'from'],
    ['a range that ends before it begins', { from: '2026-11-02', to: '2026-11-01' }, 'to'],
    ['a group that is none', { from: '2026-11-01', groupBy: ['user'] }, 'groupBy'],
    ['a group twice', { from: '2026-11-01', groupBy: ['model', 'model'] }, 'groupBy'],
    ['two steps in time', { from: '2026-11-01', groupBy: ['day', 'hour'] }, 'groupBy'],
    ['groups that are no list', { from: '2026-11-01', groupBy: 'day' }, 'groupBy'],
    ['hours of one account', { from: '2026-11-01', groupBy: ['hour'], account: 'a' }, 'groupBy'],
    ['top rows by day', { from: '2026-11-19', groupBy: ['day'], top: 3 }, 'top'],
    ['no top rows', { from: '2026-11-19', top: 0 }, 'top'],
    ['percentiles of end users', { from: '2026-11-19', groupBy: ['endUser'], percentiles: true }, 'percentiles'],
    ['a filter that is no text', { from: '2026-11-01', model: 7 }, 'model'],
    ['a limit of none', { from: '2026-11-01', limit: 0 }, 'limit'],
    ['a member that does not exist', { from: '2026-11-01', acount: 'a' }, 'acount'],
  ]
  test.each(refused)('refuses %s, naming the argument', async (_name, query, param) => {
    await begin()
    const error = await started.gateway.usage.query(query as UsageQuery).catch((cause: unknown) => cause)

    expect(error).toBeInstanceOf(GatewayError)
    expect(error).toMatchObject({ code: 'invalid_request', param })
  })

  test('names the argument that was probably meant', async () => {
    await begin()

    await expect(started.gateway.usage.records({ account: 'a' } as UsageRecordsRequest)).rejects.toThrow(
      'account: is unknown; did you mean accountId?',
    )
  })

  test('says how long calls took, of all accounts together', async () => {
    const clock = await begin()
    for (let count = 0; count < 3; count++) await chat('hello')
    await records(clock)

    const { rows } = await started.gateway.usage.query({ from: '2026-11-01', groupBy: ['month'], percentiles: true })
    const refused = started.gateway.usage.query({ from: '2026-11-01', account: TEST_ACCOUNT, percentiles: true })

    expect(rows).toMatchObject([{ requests: 3, percentiles: { duration: { p50Ms: 5 }, firstByte: { p99Ms: 10 } } }])
    expect(rows[0]).not.toHaveProperty('latency')
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request', param: 'percentiles' })
  })

  test('answers texts that could be SQL with nothing', async () => {
    await begin()
    await chat('hello')
    const { rows } = await started.gateway.usage.query({ from: '2026-11-01', model: "x' OR '1'='1" })

    expect(rows).toEqual([])
  })
})

describe('gateway.usage.records', () => {
  test('gives every record once, page by page', async () => {
    const clock = await begin()
    for (let call = 0; call < 5; call++) await chat(`hello ${call}`)
    await records(clock)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await started.gateway.usage.records({
        accountId: TEST_ACCOUNT,
        from: '2026-11-20',
        limit: 2,
        cursor,
      })
      seen.push(...page.records.map(({ id }) => id))
      cursor = page.next
    } while (cursor !== undefined)

    expect(new Set(seen).size).toBe(5)
    expect(seen).toHaveLength(5)
  })

  test.each(['garbage', '1_', '-1_2', '1_2_3', `1_${'9'.repeat(30)}`])('refuses the cursor %s', async (cursor) => {
    await begin()

    await expect(started.gateway.usage.records({ cursor })).rejects.toMatchObject({
      code: 'invalid_request',
      param: 'cursor',
    })
  })
})
