import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import type { KeyScopes } from '../../../src/stores/principal.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { BATCH_MODEL, batchLine, batchPrices } from '../batches/batch-gateway.ts'
import { benches, MODEL, settledTurns, unbilled, whole } from '../responses/background-gateway.ts'
import { type AnswerCall, eventStream } from '../streams/answering-vendor.ts'

const { start } = benches()

/** A store of which a test can narrow the scopes of keys, as an operator can in the database. */
function narrowingStore() {
  const store = memoryStore()
  let scopes: KeyScopes | undefined
  const { findByHash, find } = store.keys
  const narrowed = <Record extends object>(record: Record | undefined) =>
    record && { ...record, ...(scopes && { scopes }) }
  store.keys.findByHash = async (hash) => narrowed(await findByHash.call(store.keys, hash))
  store.keys.find = async (id) => narrowed(await find!.call(store.keys, id))
  return {
    store,
    narrow(to: KeyScopes) {
      scopes = to
    },
  }
}

async function startWithKey(answer: AnswerCall, options: { readonly native?: boolean } = {}) {
  const clock = fakeClock()
  const { store, narrow } = narrowingStore()
  const started = await start(answer, {
    clock,
    store,
    prices: batchPrices,
    batches: { native: options.native ?? false, requestsAtOnce: 2 },
  })
  const expiresAtMs = clock.now() + 60_000
  const { key, record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, expiresAtMs })
  const other = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
  const headers = { authorization: `Bearer ${key}` }
  const ask = async (method: string, path: string, body?: object, using = key) => {
    const response = await fetch(`${started.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${using}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return {
    ...started,
    started,
    clock,
    store,
    headers,
    ask,
    /** Asks with a key of the account that stays valid. */
    read: async (path: string) => (await ask('GET', path, undefined, other.key)).body,
    losses: {
      'is revoked': () => started.gateway.keys.revoke(record.id),
      expires: () => clock.advance(60_000),
      'loses the endpoint': () => narrow({ endpoints: ['embeddings'] }),
      'loses the model': () => narrow({ models: ['embedding-relayed'] }),
      'belongs to an account that is frozen': () => started.gateway.accounts.freeze(TEST_ACCOUNT, { reason: 'abuse' }),
    },
    /** Passes less than 5 seconds. */
    async pass(ms = 4_900) {
      for (let passedMs = 0; passedMs < ms; passedMs += 100) {
        clock.advance(100)
        await settledTurns()
      }
    },
  }
}

type Loss = keyof Awaited<ReturnType<typeof startWithKey>>['losses']

const LOSSES: readonly (readonly [Loss, number, string])[] = [
  ['is revoked', 401, 'invalid_api_key'],
  ['expires', 401, 'invalid_api_key'],
  ['loses the endpoint', 403, 'permission_denied'],
  ['loses the model', 403, 'permission_denied'],
  ['belongs to an account that is frozen', 403, 'account_frozen'],
]

const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 500 }

const chunkOf = (content: string) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`

/** Begins a stream and never ends it. */
const endless: AnswerCall = (response) => {
  eventStream(response)
  response.write(chunkOf('one two three'))
}

describe('a stream', () => {
  test.each(LOSSES)('ends within 5 seconds when its key %s', async (loss, _status, code) => {
    const { started, headers, losses, pass, vendor, account } = await startWithKey(endless)
    const response = await started.post('/v1/chat/completions', { ...CHAT, stream: true }, headers)
    const reader = response.body!.getReader()
    await reader.read()
    const ending = started.ended(response)
    await losses[loss]()
    await pass()
    let rest = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest += Buffer.from(part.value)

    expect(rest).toContain(`"code":"${code}"`)
    expect(rest).not.toContain('[DONE]')
    const { costNanoDollars, usage, ending: kind } = await ending
    expect(kind).toBe('abandoned')
    expect(usage?.outputTokens).toBeGreaterThan(0)
    expect(costNanoDollars).toBeGreaterThan(0n)
    expect((await account()).held).toBe(0n)
    await expect.poll(() => vendor.aborted).toBe(1)
  })

  test('ends a stream of Messages with an error event of Messages when its key is revoked', async () => {
    const { started, headers, losses, pass } = await startWithKey(endless)
    const response = await started.post('/v1/messages', { ...CHAT, stream: true }, headers)
    const reader = response.body!.getReader()
    await reader.read()
    await losses['is revoked']()
    await pass()
    let rest = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest += Buffer.from(part.value)

    expect(rest).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"authentication_error"/)
    expect(rest).not.toContain('message_stop')
  })

  test('continues a stream whose key stays valid', async () => {
    const { started, headers, pass, vendor } = await startWithKey(endless)
    const response = await started.post('/v1/chat/completions', { ...CHAT, stream: true }, headers)
    const reader = response.body!.getReader()
    await reader.read()
    await pass(20_000)

    expect(vendor.aborted).toBe(0)
    await reader.cancel()
  })
})

describe('a whole answer in progress', () => {
  test('is refused and charged like that of a caller who disconnects when its key is revoked', async () => {
    const { started, headers, losses, pass, vendor, account } = await startWithKey(() => undefined)
    const answering = started.post('/v1/chat/completions', CHAT, headers)
    await expect.poll(() => vendor.calls).toBe(1)
    await losses['is revoked']()
    await pass()
    const response = await answering
    const { costNanoDollars, ending } = await started.ended(response)

    expect([response.status, response.headers.get('x-signalbox-error-code')]).toEqual([401, 'invalid_api_key'])
    expect([ending, costNanoDollars > 0n]).toEqual(['abandoned', true])
    expect((await account()).held).toBe(0n)
    expect(vendor.calls).toBe(1)
  })
})

describe('a background answer', () => {
  const body = { model: MODEL, input: 'hello', max_output_tokens: 500, background: true }

  test.each(LOSSES)('fails within 5 seconds when its key %s, and what it used is charged', async (loss, _, code) => {
    const { started, ask, read, losses, pass, vendor, account } = await startWithKey(() => undefined)
    const id = String((await ask('POST', '/v1/responses', body)).body['id'])
    await expect.poll(() => vendor.calls).toBe(1)
    const ending = started.taskEnded(id)
    await losses[loss]()
    await pass()
    const { state, costNanoDollars } = await ending

    expect([state, costNanoDollars > 0n]).toEqual(['failed', true])
    // The scopes of all keys are narrowed in the test of scopes.
    if (code !== 'permission_denied')
      expect(await read(`/v1/responses/${id}`)).toMatchObject({ status: 'failed', error: { code } })
    await expect.poll(() => vendor.aborted).toBe(1)
    expect([(await account()).held, unbilled(started)]).toEqual([0n, []])
  })

  test('never sends a waiting answer after its key is revoked', async () => {
    const held: ServerResponse[] = []
    const { started, ask, losses, pass, vendor, account } = await startWithKey((response) => held.push(response))
    const ids: string[] = []
    for (let number = 0; number < 33; number++) ids.push(String((await ask('POST', '/v1/responses', body)).body['id']))
    await expect.poll(() => vendor.calls).toBe(32)
    const ending = started.taskEnded(ids.at(-1)!)
    await losses['is revoked']()
    await pass()
    const { state, costNanoDollars } = await ending

    expect([state, costNanoDollars, vendor.calls]).toEqual(['failed', 0n, 32])
    expect((await account()).held).toBe(0n)
  })

  test('ends the stream that follows it for another key that is revoked', async () => {
    const { started, gateway, ask, losses, pass, vendor } = await startWithKey(() => undefined)
    const id = String((await ask('POST', '/v1/responses', body)).body['id'])
    await expect.poll(() => vendor.calls).toBe(1)
    const { key, record } = await gateway.keys.create({ accountId: TEST_ACCOUNT })
    const headers = { authorization: `Bearer ${key}` }
    const following = await fetch(`${started.url}/v1/responses/${id}?stream=true`, { headers })
    await gateway.keys.revoke(record.id)
    const text = following.text()
    await pass()

    expect(await text).toContain('invalid_api_key')
    expect(vendor.aborted).toBe(0)
    // The run would keep the gateway open.
    await losses['is revoked']()
    await pass()
  })
})

const LINES = Array.from({ length: 60 }, (_, index) => batchLine(index))

async function submitWith({ started, headers, ask }: Awaited<ReturnType<typeof startWithKey>>): Promise<string> {
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([LINES.map((line) => JSON.stringify(line)).join('\n')]), 'requests.jsonl')
  const uploaded = await fetch(`${started.url}/v1/files`, { method: 'POST', headers, body: form })
  const { id: input } = (await uploaded.json()) as { id: string }
  const request = { input_file_id: input, endpoint: '/v1/chat/completions', completion_window: '24h' }
  return String((await ask('POST', '/v1/batches', request)).body['id'])
}

describe('a batch of 60 requests', () => {
  const held: ServerResponse[] = []
  const holding: AnswerCall = (response) => void held.push(response)

  test.each(LOSSES.slice(0, 4))('begins no further request when its key %s', async (loss, _status, code) => {
    const bench = await startWithKey(holding)
    const { started, vendor, losses, pass, read, account } = bench
    const id = await submitWith(bench)
    await expect.poll(() => vendor.calls).toBe(2)
    await losses[loss]()
    await pass()
    const ending = started.taskEnded(id)
    for (const response of held.splice(0)) whole(response)
    await ending

    expect(vendor.calls).toBe(2)
    expect((await account()).held).toBe(0n)
    if (code !== 'permission_denied')
      expect(await read(`/v1/batches/${id}`)).toMatchObject({
        status: 'cancelled',
        request_counts: { total: 60, completed: 2 },
      })
  })

  test('is cancelled before its first request when its key is revoked while another batch runs', async () => {
    const bench = await startWithKey(holding)
    const { started, vendor, losses, pass } = bench
    for (let number = 0; number < 4; number++) await submitWith(bench)
    await expect.poll(() => vendor.calls).toBe(8)
    const waiting = await submitWith(bench)
    const ending = started.taskEnded(waiting)
    await losses['is revoked']()
    await pass()
    for (const response of held.splice(0)) whole(response)
    await pass()

    expect(await ending).toMatchObject({ state: 'cancelled', costNanoDollars: 0n })
    expect(vendor.calls).toBe(8)
  })

  test('cancels a batch of Messages when its key is revoked', async () => {
    const bench = await startWithKey(holding)
    const { started, ask, vendor, losses, pass, read } = bench
    const params = { model: BATCH_MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }
    const requests = Array.from({ length: 60 }, (_, index) => ({ custom_id: `r${index}`, params }))
    const created = await ask('POST', '/v1/messages/batches', { requests })
    await expect.poll(() => vendor.calls).toBe(2)
    await losses['is revoked']()
    await pass()
    const ending = started.taskEnded(String(created.body['id']))
    for (const response of held.splice(0)) whole(response)
    await ending

    expect(vendor.calls).toBe(2)
    expect(await read(`/v1/messages/batches/${created.body['id']}`)).toMatchObject({
      processing_status: 'ended',
      request_counts: { succeeded: 2, canceled: 58 },
    })
  })
})

test('a store that cannot be read ends no work', async () => {
  const { started, headers, pass, vendor, events, store } = await startWithKey(endless)
  const response = await started.post('/v1/chat/completions', { ...CHAT, stream: true }, headers)
  const reader = response.body!.getReader()
  await reader.read()
  store.keys.find = () => Promise.reject(new Error('the database is away'))
  await pass()

  expect(vendor.aborted).toBe(0)
  expect(events).toContainEqual(expect.objectContaining({ type: 'internal-error', where: 'callers' }))
  await reader.cancel()
})
