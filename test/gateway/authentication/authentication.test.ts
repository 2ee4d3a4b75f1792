import { afterEach, describe, expect, test } from 'vitest'
import { ENDPOINTS } from '../../../src/endpoints/registry.ts'
import { hashApiKey } from '../../../src/stores/api-keys.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { RawClient } from '../../adapters/support/raw-client.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'

let started: StartedGateway

afterEach(() => started.close())

describe('keys are looked up by their SHA-256', () => {
  test('the store sees digests only, and unknown keys are asked for again', async () => {
    const store = memoryStore()
    const asked: string[] = []
    started = await startGateway({
      store: {
        ...store,
        keys: {
          ...store.keys,
          findByHash: (hash) => {
            asked.push(hash)
            return store.keys.findByHash(hash)
          },
        },
      },
    })
    const guess = { authorization: 'Bearer sk-guess' }
    for (const headers of [guess, guess, {}, {}]) {
      await started.post(CHAT, chatBody('chat-relayed', 'hello'), headers).then((response) => response.text())
    }

    // A known key is remembered for some seconds; a guess is not, so that guesses fill no memory.
    expect(asked).toEqual([hashApiKey('sk-guess'), hashApiKey('sk-guess'), hashApiKey(TEST_KEY)])
    expect(asked.every((hash) => /^[0-9a-f]{64}$/.test(hash))).toBe(true)
  })

  test('answers with 503 if the store cannot be read, without a verdict on the key', async () => {
    const store = memoryStore()
    started = await startGateway({
      store: { ...store, keys: { ...store.keys, findByHash: () => Promise.reject(new Error('store down')) } },
    })
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('5')
    expect(await response.json()).toMatchObject({ error: { code: 'store_unavailable' } })
    expect(started.sandbox.requests).toHaveLength(0)
  })
})

describe('nobody unknown gets a body read', () => {
  test.each(ENDPOINTS.map(({ path }) => path))('401 comes before the body on %s', async (path) => {
    started = await startGateway()
    const client = await RawClient.open(Number(new URL(started.url).port))
    client.send('POST', path, [
      'authorization: Bearer sk-unknown',
      'content-type: application/json',
      'content-length: 30000000',
    ])
    const answer = await client.until('authentication_error')
    client.leave()

    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    expect(answer.toLowerCase()).toContain('www-authenticate: bearer')
  })
})

describe('a key', () => {
  const modelsWith = (headers: Record<string, string>): Promise<Response> =>
    fetch(`${started.url}/v1/models`, { headers })
  const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })
  const chat = (key: string, model = 'chat-relayed'): Promise<Response> =>
    started.post(CHAT, chatBody(model, 'hello'), bearer(key))

  test.each([
    ['no header', {}],
    ['an empty header', { authorization: '' }],
    ['the scheme alone', { authorization: 'Bearer' }],
    ['the key alone', { authorization: TEST_KEY }],
    ['another scheme', { authorization: `Basic ${TEST_KEY}` }],
    ['two keys', { authorization: `Bearer ${TEST_KEY} ${TEST_KEY}` }],
    ['a key of another case', { authorization: `Bearer ${TEST_KEY.toUpperCase()}` }],
    ['a part of a key', { authorization: `Bearer ${TEST_KEY.slice(0, -1)}` }],
  ])('is refused as %s', async (_name, headers) => {
    started = await startGateway()
    const response = await modelsWith(headers as Record<string, string>)

    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    expect(await response.json()).toEqual({
      error: { message: expect.any(String), type: 'authentication_error', param: null, code: 'invalid_api_key' },
    })
  })

  test('is taken whatever the case of the scheme', async () => {
    started = await startGateway()

    expect((await modelsWith({ authorization: `bearer ${TEST_KEY}` })).status).toBe(200)
  })

  test('is taken in x-api-key where models are listed, but not on a chat', async () => {
    started = await startGateway()
    const listed = await modelsWith({ 'x-api-key': TEST_KEY })
    const account = await fetch(`${started.url}/v1/account`, { headers: { 'x-api-key': TEST_KEY } })
    const chatted = await started.post(CHAT, chatBody('chat-relayed', 'hello'), {
      authorization: '',
      'x-api-key': TEST_KEY,
    })

    expect([listed.status, account.status, chatted.status]).toEqual([200, 401, 401])
  })

  test.each<[string, string[], number]>([
    ['with another key', [`Bearer ${TEST_KEY}`, 'Bearer sk-other'], 400],
    ['behind another key', ['Bearer sk-other', `Bearer ${TEST_KEY}`], 400],
    ['with another scheme', [`Bearer ${TEST_KEY}`, 'Basic dXNlcjpwYXNz'], 400],
    ['with itself', [`Bearer ${TEST_KEY}`, `Bearer ${TEST_KEY}`], 200],
  ])('in two authorization headers, %s', async (_name, values, status) => {
    started = await startGateway()
    const client = await RawClient.open(Number(new URL(started.url).port))
    client.send(
      'GET',
      '/v1/models',
      values.map((value) => `Authorization: ${value}`),
    )
    const overNode = await client.until('\r\n\r\n')
    client.leave()
    const headers = new Headers()
    for (const value of values) headers.append('authorization', value)
    const overFetch = await started.gateway.fetch(new Request('http://gateway.example/v1/models', { headers }))

    expect(overNode).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(overFetch.status).toBe(status)
    if (status === 400)
      expect(await overFetch.json()).toMatchObject({
        error: { code: 'invalid_request', param: 'Authorization', message: expect.stringContaining('two different') },
      })
  })

  test('is refused at once among any number of blanks', async () => {
    started = await startGateway()
    const headers = { authorization: `Bearer sk-one,Bearer${' '.repeat(200_000)}sk-two` }
    const response = await started.gateway.fetch(new Request('http://gateway.example/v1/models', { headers }))

    expect(response.status).toBe(400)
  })

  test('in authorization is the one that counts, whatever x-api-key holds', async () => {
    started = await startGateway()

    const known = await modelsWith({ ...bearer(TEST_KEY), 'x-api-key': 'sk-ant-of-the-vendor' })
    const unknown = await modelsWith({ ...bearer('sk-unknown'), 'x-api-key': TEST_KEY })

    expect([known.status, unknown.status]).toEqual([200, 401])
  })

  test("accepts parameters with commas from the host's own key header", async () => {
    const seen: (string | undefined)[] = []
    const signature = 'AWS4-HMAC-SHA256 Credential=AKID/20261123/a/s3/aws4_request, SignedHeaders=host, Signature=fe5f'
    started = await startGateway({
      authenticate: ({ header }) => {
        seen.push(header('authorization'))
        return { accountId: TEST_ACCOUNT, keyId: 'signed', tier: 'paid' }
      },
    })

    const listed = await modelsWith({ authorization: signature })

    expect([listed.status, seen]).toEqual([200, [signature]])
  })

  test('rejects a revoked key within five seconds', async () => {
    const clock = fakeClock()
    started = await startGateway({ clock })
    const { key, record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
    const before = await chat(key)
    await started.gateway.keys.revoke(record.id)
    clock.advance(5_000)
    const after = await chat(key)

    expect([before.status, after.status]).toEqual([200, 401])
  })

  test('rejects a revoked key even after the clock was set back by an hour', async () => {
    const fake = fakeClock()
    let setBackMs = 0
    started = await startGateway({ clock: { ...fake, now: () => fake.now() - setBackMs } })
    const { key, record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
    const before = await chat(key)
    await started.gateway.keys.revoke(record.id)
    setBackMs = 3_600_000
    fake.advance(5_000)

    expect([before.status, (await chat(key)).status]).toEqual([200, 401])
  })

  test('rejects an expired key from the exact millisecond on', async () => {
    const clock = fakeClock()
    started = await startGateway({ clock })
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, expiresAtMs: clock.now() + 1_000 })
    clock.advance(999)
    const before = await chat(key)
    clock.advance(1)
    const after = await chat(key)

    expect([before.status, after.status]).toEqual([200, 401])
  })

  test('limits a key with scopes to those endpoints and models', async () => {
    started = await startGateway()
    const create = async (scopes: { endpoints?: string[]; models?: string[] }): Promise<string> =>
      (await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes })).key
    const forEmbeddings = await create({ endpoints: ['embeddings'] })
    const forOneModel = await create({ models: ['chat-relayed'] })
    const wrongEndpoint = await chat(forEmbeddings)
    const wrongModel = await chat(forOneModel, 'gmn-2.5-flash')
    const byAlias = await chat(forOneModel, 'gemini-2.5-flash')
    const right = await chat(forOneModel)

    expect([wrongEndpoint.status, wrongModel.status, byAlias.status, right.status]).toEqual([403, 403, 403, 200])
    expect(await wrongEndpoint.json()).toMatchObject({
      error: {
        type: 'permission_error',
        code: 'permission_denied',
        message: 'This API key may not use the endpoint "chat".',
      },
    })
    expect(await wrongModel.json()).toMatchObject({
      error: { param: 'model', message: 'This API key may not use the model "gmn-2.5-flash".' },
    })
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test('has scopes of known endpoints, of batches, and of the models behind aliases', async () => {
    started = await startGateway()
    const scopes = {
      endpoints: ['batches', 'chat', 'chat'],
      models: ['claude-sonnet-4-6', 'cl-sonnet-4-6', 'our-*', 'to-come'],
    }

    const { record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes })

    expect(record.scopes).toEqual({ endpoints: ['batches', 'chat'], models: ['cl-sonnet-4-6', 'our-*', 'to-come'] })
  })

  test('is no matter of the gateway when the host authenticates itself', async () => {
    const seen: (string | undefined)[] = []
    started = await startGateway({
      billing: 'off',
      authenticate: ({ apiKey, header }) => {
        seen.push(apiKey)
        return header('x-session') === 'good' ? { accountId: 'acct_host', keyId: 'session', tier: 'paid' } : undefined
      },
    })
    const refused = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    const taken = await started.post(CHAT, chatBody('chat-relayed', 'hello'), { 'x-session': 'good' })

    expect([refused.status, taken.status]).toEqual([401, 200])
    expect(seen).toEqual([TEST_KEY, TEST_KEY])
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'request-ended', accountId: 'acct_host' }))
  })

  test('answers a key that a faulty host cannot check with 500 and no call', async () => {
    started = await startGateway({ billing: 'off', authenticate: () => Promise.reject(new Error('host fault')) })
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))

    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('host fault')
    expect(started.sandbox.requests).toHaveLength(0)
  })
})
