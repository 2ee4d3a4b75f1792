import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../src/adapters/node.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { answeringVendor, json } from '../streams/answering-vendor.ts'

const MODEL = 'chat-relayed'
const PATH = '/v1/messages/batches'
const prices = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    { model: MODEL, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: MODEL, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
    { model: 'chat-qwen', meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } },
    { model: 'chat-qwen', meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } },
  ],
} as const

const open: StartedGateway[] = []
afterEach(async () => {
  for (const started of open.splice(0)) await started.close()
})

async function start(options: Partial<GatewayOptions> = {}): Promise<StartedGateway & { client: Anthropic }> {
  // At the vendor's batch API a request has no call of its own to count or to answer.
  const started = await startGateway({ prices, ...options, batches: { native: false, ...options.batches } })
  open.push(started)
  return { ...started, client: clientOf(started.url) }
}

const clientOf = (baseURL: string, apiKey = TEST_KEY): Anthropic => new Anthropic({ apiKey, baseURL, maxRetries: 0 })

type Request = Anthropic.Messages.BatchCreateParams.Request

const request = (number: number, params: object = {}): Request => ({
  custom_id: `request-${number}`,
  params: { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: `Say ${number}` }], ...params },
})

const requests = (count: number): Request[] => Array.from({ length: count }, (_, index) => request(index + 1))

async function resultsOf(client: Anthropic, id: string): Promise<Anthropic.Messages.MessageBatchIndividualResponse[]> {
  const results: Anthropic.Messages.MessageBatchIndividualResponse[] = []
  for await (const result of await client.messages.batches.results(id)) results.push(result)
  return results
}

const COUNTS = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 }

describe('a batch of messages', () => {
  test('is created, followed and read by the official client, at the price of batches and charged once', async () => {
    const { client, account, taskEnded, sandbox, url, gateway } = await start()

    const created = await client.messages.batches.create({ requests: requests(5) })

    expect(created).toMatchObject({
      type: 'message_batch',
      processing_status: 'in_progress',
      request_counts: { ...COUNTS, processing: 5 },
      ended_at: null,
      cancel_initiated_at: null,
      archived_at: null,
      results_url: null,
    })
    expect(created.id).toMatch(/^msgbatch_[0-9a-f]{32}$/)
    expect(Date.parse(created.expires_at) - Date.parse(created.created_at)).toBe(24 * 60 * 60_000)
    const end = await taskEnded(created.id)
    const batch = await client.messages.batches.retrieve(created.id)

    expect(batch).toMatchObject({
      processing_status: 'ended',
      request_counts: { ...COUNTS, succeeded: 5 },
      results_url: `${url}${PATH}/${created.id}/results`,
    })
    const results = await resultsOf(client, created.id)
    expect(results.map(({ custom_id }) => custom_id)).toEqual(requests(5).map(({ custom_id }) => custom_id))
    let due = 0n
    for (const { result } of results) {
      if (result.type !== 'succeeded') throw new Error(result.type)
      expect(result.message).toMatchObject({ type: 'message', role: 'assistant' })
      const { input_tokens: fresh, cache_read_input_tokens: cached, output_tokens: output } = result.message.usage
      due += BigInt(fresh + (cached ?? 0)) * 500n + BigInt(output) * 2_000n
    }
    expect(end.costNanoDollars).toBe(due)
    expect(await account()).toEqual({ balance: 100_000_000_000n - due, held: 0n })
    expect(sandbox.requests.length).toBe(5)
    const [entry] = await gateway.accounts.ledger('acct_test', { limit: 1 })
    expect(entry).toMatchObject({ kind: 'charge', description: `batches ${MODEL}` })
  })

  test('goes to the batch API of its vendor, and reads the same', async () => {
    const { client, taskEnded, sandbox } = await start({ batches: { native: true } })
    const created = await client.messages.batches.create({ requests: requests(3) })
    const end = await taskEnded(created.id)

    expect((await client.messages.batches.retrieve(created.id)).request_counts).toEqual({ ...COUNTS, succeeded: 3 })
    const results = await resultsOf(client, created.id)
    expect(results.map(({ result }) => result.type)).toEqual(['succeeded', 'succeeded', 'succeeded'])
    expect(end.costNanoDollars).toBeGreaterThan(0n)
    expect(sandbox.requests.filter(({ batchId }) => batchId !== undefined).length).toBe(3)
  })

  test('returns a failed request with an error in the shape of the API, and does not charge it', async () => {
    const { client, taskEnded } = await start({
      hooks: [
        {
          name: 'no-threes',
          request: ({ body }) =>
            JSON.stringify(body).includes('Say 3') ? { deny: { message: 'No threes.' } } : undefined,
        },
      ],
    })
    const created = await client.messages.batches.create({ requests: [request(2), request(3)] })

    await taskEnded(created.id)

    const batch = await client.messages.batches.retrieve(created.id)
    expect(batch.request_counts).toEqual({ ...COUNTS, succeeded: 1, errored: 1 })
    const [, failed] = await resultsOf(client, created.id)
    expect(failed).toMatchObject({
      custom_id: 'request-3',
      result: {
        type: 'errored',
        error: { type: 'error', error: { type: 'invalid_request_error', message: 'No threes.' } },
      },
    })
  })

  test('ends with the answer if a hook replies to a request', async () => {
    const { client, taskEnded, sandbox } = await start({
      hooks: [{ name: 'canned', request: () => ({ answer: { text: 'Nine.' } }) }],
    })
    const created = await client.messages.batches.create({ requests: requests(1) })
    await taskEnded(created.id)
    const [result] = await resultsOf(client, created.id)

    expect(result?.result).toMatchObject({ type: 'succeeded', message: { content: [{ type: 'text', text: 'Nine.' }] } })
    expect(sandbox.requests).toEqual([])
  })

  test('is cancelled before its requests are sent, and then they cost nothing', async () => {
    const { client, account, taskEnded } = await start({ limits: { requestsPerMinute: 1 } })
    const created = await client.messages.batches.create({ requests: requests(3) })

    const cancelled = await client.messages.batches.cancel(created.id)
    const end = await taskEnded(created.id)
    const batch = await client.messages.batches.retrieve(created.id)

    expect(cancelled.processing_status).toBe('canceling')
    expect(cancelled.cancel_initiated_at).not.toBeNull()
    expect(batch.processing_status).toBe('ended')
    const { succeeded, canceled } = batch.request_counts
    expect([succeeded + canceled, canceled > 0]).toEqual([3, true])
    expect((await resultsOf(client, created.id)).at(-1)).toEqual({
      custom_id: 'request-3',
      result: { type: 'canceled' },
    })
    expect(await account()).toEqual({ balance: 100_000_000_000n - end.costNanoDollars, held: 0n })
    await expect(client.messages.batches.cancel(created.id)).rejects.toMatchObject({ status: 409 })
  })

  test('lists expired requests, and charges the others', async () => {
    const vendor = await answeringVendor((response, { messages }) => {
      const number = Number(JSON.stringify(messages).replaceAll(/\D/g, ''))
      if (number > 1) return json(response, { error: { message: 'busy' } }, 503)
      const message = { role: 'assistant', content: 'one' }
      const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      return json(response, { id: 'c', object: 'chat.completion', model: 'm', choices, usage })
    })
    const clock = fakeClock()
    const store = memoryStore()
    const { client, account, taskEnded } = await start({
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      clock,
      store,
    })
    const created = await client.messages.batches.create({ requests: requests(3) })
    await expect.poll(async () => (await store.batches!.tally(created.id)).answered).toBe(1)

    clock.advance(24 * 60 * 60_000)
    const end = await taskEnded(created.id)

    const batch = await client.messages.batches.retrieve(created.id)
    expect(batch.request_counts).toEqual({ ...COUNTS, succeeded: 1, expired: 2 })
    expect((await resultsOf(client, created.id)).at(-1)).toEqual({
      custom_id: 'request-3',
      result: { type: 'expired' },
    })
    expect(end.costNanoDollars).toBe(10n * 500n + 2_000n)
    expect(await account()).toEqual({ balance: 100_000_000_000n - end.costNanoDollars, held: 0n })
    await vendor.close()
  })

  test('is submitted once under one Idempotency-Key, and another body under it is refused', async () => {
    const { client, sandbox, taskEnded } = await start()
    const headers = { 'idempotency-key': 'one' }

    const first = await client.messages.batches.create({ requests: requests(2) }, { headers })
    const second = await client.messages.batches.create({ requests: requests(2) }, { headers })
    const other = client.messages.batches.create({ requests: requests(1) }, { headers })

    await expect(other).rejects.toMatchObject({ status: 422 })
    await taskEnded(first.id)
    expect(second.id).toBe(first.id)
    expect(sandbox.requests.length).toBe(2)
    expect((await client.messages.batches.list()).data.map(({ id }) => id)).toEqual([first.id])
  })

  test('tells its end by a webhook', async () => {
    const { post } = await start()
    const receiver = sandboxVendors()
    const { origin } = await receiver.listen()

    const answer = await post(PATH, { requests: requests(1), webhook_url: `${origin}/webhooks` })
    const { id } = (await answer.json()) as { id: string }

    await expect.poll(() => receiver.webhooks.length).toBe(1)
    expect(receiver.webhooks[0]?.body).toMatchObject({ type: 'batch.completed', data: { id } })
    await receiver.close()
  })

  test('has results only when it has ended, and none any more when it was deleted', async () => {
    const { client, taskEnded, gateway } = await start({ limits: { requestsPerMinute: 1 } })
    const created = await client.messages.batches.create({ requests: requests(2) })

    await expect(client.messages.batches.delete(created.id)).rejects.toMatchObject({ status: 409 })
    await expect(client.get(`${PATH}/${created.id}/results`)).rejects.toMatchObject({ status: 409 })
    await client.messages.batches.cancel(created.id)
    await taskEnded(created.id)
    const deleted = await client.messages.batches.delete(created.id)

    expect(deleted).toEqual({ id: created.id, type: 'message_batch_deleted' })
    await expect(client.messages.batches.retrieve(created.id)).rejects.toMatchObject({ status: 404 })
    await expect(client.get(`${PATH}/${created.id}/results`)).rejects.toMatchObject({ status: 404 })
    expect((await client.messages.batches.list()).data).toEqual([])
    const own = gateway.client({ accountId: 'acct_test', keyId: 'key_test', tier: 'paid' })
    expect((await own.files.list()).data).toEqual([])
  })

  test('is archived when its results have been kept for their time', async () => {
    const clock = fakeClock()
    const { client, taskEnded } = await start({ clock, batches: { retentionDays: 1 }, taskRetentionDays: 30 })
    const created = await client.messages.batches.create({ requests: requests(1) })
    await taskEnded(created.id)
    const ended = await client.messages.batches.retrieve(created.id)

    clock.advance(25 * 60 * 60_000)

    const archived = await client.messages.batches.retrieve(created.id)
    expect(archived).toMatchObject({ processing_status: 'ended', results_url: null })
    expect(Date.parse(archived.archived_at!) - Date.parse(ended.ended_at!)).toBe(24 * 60 * 60_000)
    await expect(client.get(`${PATH}/${created.id}/results`)).rejects.toMatchObject({ status: 404 })
  })

  test('is listed in pages, apart from batches of files', async () => {
    const { client, gateway } = await start()
    const own = gateway.client({ accountId: 'acct_test', keyId: 'key_test', tier: 'paid' })
    const ids: string[] = []
    for (let count = 0; count < 3; count++)
      ids.unshift((await client.messages.batches.create({ requests: requests(1) })).id)
    const body = { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }
    const text = JSON.stringify({ custom_id: 'one', method: 'POST', url: '/v1/messages', body })
    const file = await own.files.create({ file: new Blob([text]), purpose: 'batch' })
    const batch = await own.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/messages',
      completion_window: '24h',
    })

    const page = await client.messages.batches.list({ limit: 2 })
    const next = await page.getNextPage()
    const before = await client.messages.batches.list({ limit: 2, before_id: ids[2]! })

    expect(page.data.map(({ id }) => id)).toEqual(ids.slice(0, 2))
    expect([page.first_id, page.last_id, page.has_more]).toEqual([ids[0], ids[1], true])
    expect(next.data.map(({ id }) => id)).toEqual(ids.slice(2))
    expect(before.data.map(({ id }) => id)).toEqual(ids.slice(0, 2))
    expect((await own.batches.list()).data.map(({ id }) => id)).toEqual([batch.id])
    await expect(client.messages.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 })
    await expect(own.batches.retrieve(ids[0]!)).rejects.toMatchObject({ code: 'batch_not_found' })
    await expect(client.messages.batches.list({ limit: 1_001 })).rejects.toMatchObject({ status: 400 })
  })

  test('needs a price of its own, the money for all of its requests, and the rights of its key', async () => {
    const unpriced = await start({ prices: testPrices })
    await expect(unpriced.client.messages.batches.create({ requests: requests(1) })).rejects.toMatchObject({
      status: 400,
    })

    const { client, gateway, account, url } = await start()
    for (const endpoints of [['messages'], ['batches']]) {
      const { key } = await gateway.keys.create({ accountId: 'acct_test', scopes: { endpoints } })
      await expect(clientOf(url, key).messages.batches.list()).rejects.toMatchObject({ status: 403 })
    }
    await expect(clientOf(url, 'sk-nobody').messages.batches.list()).rejects.toMatchObject({ status: 401 })
    await gateway.accounts.adjust('acct_test', { adjustmentId: 'less', amount: '-99.9999', reason: 'test' })
    const many = Array.from({ length: 20 }, (_, index) => request(index, { max_tokens: 1_000 }))
    await expect(client.messages.batches.create({ requests: many })).rejects.toMatchObject({
      status: 402,
      error: { type: 'error', error: { type: 'billing_error' } },
    })
    expect((await account()).held).toBe(0n)
  })
})

describe('a submission at fault', () => {
  test('is rejected immediately, with each fault by its place, and none of it is stored, sent or held', async () => {
    const { client, post, account, sandbox } = await start()

    const answer = await post(PATH, {
      requests: [
        request(1),
        { custom_id: 'two' },
        request(3, { model: 'nobody-knows' }),
        request(4, { messages: 'none' }),
        request(1),
        request(6, { stream: true }),
        { custom_id: 'has space', params: {} },
        { ...request(8), method: 'POST' },
        request(9, { model: 'chat-qwen' }),
        'text',
      ],
    })

    expect([answer.status, answer.headers.get('request-id')]).toEqual([400, answer.headers.get('x-request-id')])
    const { type, error } = (await answer.json()) as {
      type: string
      error: { type: string; message: string; details: { errors: { index: number; param: string; code: string }[] } }
    }
    expect([type, error.type]).toEqual(['error', 'invalid_request_error'])
    expect(error.details.errors.map(({ index, param, code }) => [index, param, code])).toEqual([
      [1, 'requests.1.params', 'invalid_batch_request'],
      [2, 'requests.2.params.model', 'model_not_found'],
      [3, 'requests.3.params.messages', 'invalid_request'],
      [4, 'requests.4.custom_id', 'duplicate_custom_id'],
      [5, 'requests.5.params.stream', 'unsupported_parameter'],
      [6, 'requests.6.custom_id', 'invalid_batch_request'],
      [7, 'requests.7.method', 'invalid_batch_request'],
      [8, 'requests.8.params.model', 'mismatched_model'],
      [9, 'requests.9', 'invalid_batch_request'],
    ])
    expect(error.message).toContain('requests.1.params: expected an object; requests.2.params.model: There is no model')
    expect((await client.messages.batches.list()).data).toEqual([])
    expect(await account()).toEqual({ balance: 100_000_000_000n, held: 0n })
    expect(sandbox.requests.length).toBe(0)
  })

  test.each([
    ['no JSON', '{"requests": [', 400, 'not valid JSON'],
    ['one request that is no JSON', '{"requests": [{"custom_id": 1,,}]}', 400, 'not valid JSON'],
    ['a comma too many', `{"requests": [${JSON.stringify(request(1))},]}`, 400, 'not valid JSON'],
    ['brackets that do not match', `{"requests": [${JSON.stringify(request(1))}}`, 400, 'not valid JSON'],
    ['something behind it', `{"requests": [${JSON.stringify(request(1))}]} 1`, 400, 'not valid JSON'],
    ['a list', '[]', 400, 'expected object'],
    ['no requests', '{}', 400, 'requests: expected a list'],
    ['requests that are no list', '{"requests": {"0": 1}}', 400, 'requests: expected a list'],
    ['two lists', '{"requests": [], "requests": []}', 400, 'requests: is given twice'],
    ['an empty list', '{"requests": [ ]}', 400, 'requests: There are no requests'],
    ['another member', `{"requests": [${JSON.stringify(request(1))}], "model": 1}`, 400, 'model: is not known'],
    [
      'much beside the list',
      JSON.stringify({ webhook_url: 'x'.repeat(70_000), requests: [] }),
      400,
      'bytes outside of requests',
    ],
    [
      'a webhook that is no URL',
      JSON.stringify({ requests: [request(1)], webhook_url: 'nowhere' }),
      400,
      'webhook_url:',
    ],
    ['a list that is nested too deep', `{"a": ${'['.repeat(70)}${']'.repeat(70)}}`, 400, 'deeper than 64'],
    ['a member that reaches prototypes', '{"requests": [{"__proto__": 1}]}', 400, '__proto__'],
    ['more bytes than a file may have', JSON.stringify({ requests: requests(2_000) }), 413, 'larger than'],
    ['more requests than a batch may have', JSON.stringify({ requests: requests(12) }), 400, 'can have 10 requests'],
  ])('rejects a submission that is %s with the reason', async (_title, body, status, text) => {
    const { url, account, gateway } = await start({ batches: { maxFileBytes: 200_000, maxRequests: 10 } })
    const headers = { 'x-api-key': TEST_KEY, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }

    const answer = await fetch(`${url}${PATH}`, { method: 'POST', headers, body })

    const told = (await answer.json()) as { type: string; error: { message: string } }
    expect([answer.status, told.type]).toEqual([status, 'error'])
    expect(told.error.message).toContain(text)
    expect(await account()).toEqual({ balance: 100_000_000_000n, held: 0n })
    const own = gateway.client({ accountId: 'acct_test', keyId: 'key_test', tier: 'paid' })
    expect((await own.files.list()).data).toEqual([])
  })

  test('is rejected by its path or type in the dialect of messages, also without batches', async () => {
    const { url } = await start()
    const without = await startGateway()
    open.push(without)
    const ask = async (method: string, path: string, type = 'application/json') => {
      const headers = { 'x-api-key': TEST_KEY, 'content-type': type }
      const answer = await fetch(path, { method, headers })
      return [answer.status, ((await answer.json()) as { type: string }).type]
    }

    expect(await ask('PUT', `${url}${PATH}`)).toEqual([405, 'error'])
    expect(await ask('POST', `${url}${PATH}/msgbatch_1/results`)).toEqual([405, 'error'])
    expect(await ask('GET', `${url}${PATH}/msgbatch_1/other`)).toEqual([404, 'error'])
    expect(await ask('GET', `${url}${PATH}/`)).toEqual([404, 'error'])
    expect(await ask('POST', `${url}${PATH}`, 'text/plain')).toEqual([415, 'error'])
    expect(await ask('GET', `${without.url}${PATH}`)).toEqual([404, 'error'])
  })
})

test('batches of messages of another account read as unknown ones, byte for byte', async () => {
  const { client, url, gateway, taskEnded } = await start()
  const { id } = await client.messages.batches.create({ requests: requests(1) })
  await taskEnded(id)
  await gateway.accounts.create({ id: 'acct_other' })
  const { key } = await gateway.keys.create({ accountId: 'acct_other' })
  const ask = async (method: string, path: string): Promise<readonly [number, string]> => {
    const response = await fetch(`${url}${PATH}/${path}`, { method, headers: { 'x-api-key': key } })
    return [response.status, (await response.text()).replace(/req_\w+/, 'req')]
  }
  for (const [method, path] of [
    ['GET', '{}'],
    ['GET', '{}/results'],
    ['DELETE', '{}'],
    ['POST', '{}/cancel'],
  ] as const) {
    const [status, body] = await ask(method, path.replace('{}', id))
    expect([method, path, status]).toEqual([method, path, 404])
    expect(body).toBe((await ask(method, path.replace('{}', `${id.slice(0, -4)}0000`)))[1])
    expect(body).toBe((await ask(method, path.replace('{}', '%00')))[1])
  }
  expect((await clientOf(url, key).messages.batches.list()).data).toEqual([])
  expect((await client.messages.batches.retrieve(id)).request_counts.succeeded).toBe(1)
})

test('the address of results has the host and mount of the request, and the scheme that a proxy names', async () => {
  const { gateway } = await start()
  const server = createServer(nodeHandler(gateway, { basePath: '/ai' }))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = clientOf(`http://${origin}/ai`)
  const { id } = await client.messages.batches.create({ requests: requests(1) })
  await expect.poll(async () => (await client.messages.batches.retrieve(id)).processing_status).toBe('ended')
  const urlWith = async (headers: Record<string, string>): Promise<string | null> =>
    (await client.messages.batches.retrieve(id, {}, { headers })).results_url

  expect(await urlWith({})).toBe(`http://${origin}/ai${PATH}/${id}/results`)
  expect(await urlWith({ 'x-forwarded-proto': 'https, http' })).toBe(`https://${origin}/ai${PATH}/${id}/results`)
  expect(await urlWith({ 'x-forwarded-proto': 'javascript' })).toBe(`http://${origin}/ai${PATH}/${id}/results`)
  expect((await resultsOf(client, id)).length).toBe(1)
  const inProcess = await gateway.fetch(
    new Request(`https://ai.example.com${PATH}/${id}`, { headers: { 'x-api-key': TEST_KEY } }),
  )
  expect(await inProcess.json()).toMatchObject({ results_url: `https://ai.example.com${PATH}/${id}/results` })
  await new Promise<void>((resolve) => server.close(() => resolve()))
})
