import { describe, expect, test } from 'vitest'
import { defineModel } from '../../src/catalog/model.ts'
import { readCallerJson } from '../../src/core/json.ts'
import { cachedChats } from '../../src/endpoints/chat/chat-endpoint.ts'
import { chatSchema } from '../../src/endpoints/chat/chat-schema.ts'
import { embeddingsSchema } from '../../src/endpoints/embeddings/embeddings-request.ts'
import type { Endpoint } from '../../src/endpoints/endpoint.ts'
import { messagesSchema } from '../../src/endpoints/messages/messages-request.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { responsesSchema } from '../../src/endpoints/responses/responses-schema.ts'
import { cacheKey, type KeyParts } from '../../src/pipeline/cache/answer-cache.ts'

const model = defineModel({ id: 'chat-1', kind: 'chat', vendor: 'one' })
const PARTS: KeyParts = {
  ...{ generations: [0, 0], partition: ['account', 'acct_1'], path: '/v1/chat/completions', model },
  ...{ form: '', headers: [], fingerprint: '' },
}
const BODY = '{"model":"chat-1","messages":[{"role":"user","content":"hi"}],"temperature":0}'

function keyOf(body: string, parts: Partial<KeyParts> = {}, leftOut = cachedChats.leftOut): string | undefined {
  return cacheKey({ ...PARTS, ...parts }, Buffer.from(body), leftOut)
}

const SCHEMAS = [
  ['/v1/chat/completions', chatSchema],
  ['/v1/messages', messagesSchema],
  ['/v1/responses', responsesSchema],
  ['/v1/embeddings', embeddingsSchema],
] as const

describe.each(SCHEMAS)('the key of a request to %s', (path, schema) => {
  const { cached } = ENDPOINTS.find((endpoint) => endpoint.path === path) as Endpoint
  const names = [...Object.keys(schema().shape), 'a_member_that_nobody_knows']

  test.each(names)('changes with %s, unless it decides nothing', (name) => {
    const without = '{"model":"m","input":"hi","messages":[7]}'
    const values = ['0', '1', '"1"', 'null', '[]', '{}', '""', 'false']
    const bodies = [
      without,
      ...values.map((value) => JSON.stringify({ ...JSON.parse(without), [name]: JSON.parse(value) })),
    ]
    const keys = new Set(bodies.map((body) => keyOf(body, { path }, cached!.leftOut)))
    const formMembers = ['stream', 'stream_options']
    const isLeftOut = ['user', 'metadata', 'safety_identifier', 'prompt_cache_key', ...formMembers].includes(name)

    if (cached!.leftOut.has(name)) {
      expect(isLeftOut).toBe(true)
      expect(keys.size).toBe(1)
    } else expect(keys.size).toBe(bodies.length)
  })

  test('changes with the form of the answer', () => {
    const forms = [{}, { stream: true }, { stream: true, stream_options: { include_usage: true } }].map((request) =>
      cached!.form?.({ model: 'm', ...request } as never),
    )

    if (names.includes('stream_options') && path.includes('chat')) expect(new Set(forms).size).toBe(3)
    else if (names.includes('stream')) expect(new Set(forms).size).toBe(2)
    else expect(cached!.form).toBeUndefined()
  })
})

test('the key changes with each part', () => {
  const other = defineModel({ id: 'chat-1', kind: 'chat', vendor: 'one', upstream: 'newer' })
  const changes: Partial<KeyParts>[] = [
    {},
    { generations: [1, 0] },
    { generations: [0, 1] },
    { partition: ['key', 'acct_1'] },
    { partition: ['account', 'acct_2'] },
    { partition: ['account', 'acct_1', ''] },
    { path: '/v1/messages' },
    { model: other },
    { form: 'stream' },
    { headers: ['x', undefined] },
    { headers: ['x', ''] },
    { fingerprint: 'rules' },
  ]

  expect(new Set(changes.map((change) => keyOf(BODY, change))).size).toBe(changes.length)
})

test('ignores the order of members, but not their content', () => {
  const reordered = '{"temperature":0, "messages":[{"role":"user","content":"hi"}],"model":"chat-1"}'
  const respaced = '{"model":"chat-1","messages":[{"role":"user", "content":"hi"}],"temperature":0}'

  expect(keyOf(reordered)).toBe(keyOf(BODY))
  expect(keyOf(respaced)).not.toBe(keyOf(BODY))
})

test('values that move from one member to its neighbour make another key', () => {
  expect(keyOf('{"model":"m","a":12,"b":3}')).not.toBe(keyOf('{"model":"m","a":1,"b":23}'))
  expect(keyOf('{"model":"m","ab":1}')).not.toBe(keyOf('{"model":"m","a":1}'))
})

test('has no key for a body that is not an object', () => {
  expect(keyOf('[1]')).toBeUndefined()
  expect(keyOf('{"model":"m"')).toBeUndefined()
})

test('no two of 20,000 mutated bodies that parse differently have one key', () => {
  let state = 7
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  const alphabet = Buffer.from('{}[]",:\\ abtrue01.-user\u0000\n')
  const seen = new Map<string, string>()
  let parsed = 0
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.from(BODY)
    for (let edit = random(3); edit >= 0; edit--) bytes[random(bytes.length)] = alphabet[random(alphabet.length)]!
    let value: Record<string, unknown>
    let json: Uint8Array
    try {
      const read = readCallerJson(bytes)
      if (typeof read.value !== 'object' || read.value === null || Array.isArray(read.value)) continue
      value = read.value as Record<string, unknown>
      json = read.bytes
    } catch {
      continue
    }
    parsed += 1
    const key = cacheKey(PARTS, json, cachedChats.leftOut)
    expect(key).toBeDefined()
    const deciding = Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => !cachedChats.leftOut.has(name))
        .sort(([left], [right]) => (left < right ? -1 : 1)),
    )
    const text = JSON.stringify(deciding)
    expect(seen.get(key!) ?? text).toBe(text)
    seen.set(key!, text)
  }

  expect(parsed).toBeGreaterThan(1_000)
})

test.each([10, 5_000, 16_000, 17_000, 100_000])(
  'a request of %i characters has a key by every byte of it',
  (length) => {
    const of = (text: string, rest = ''): string | undefined => keyOf(`{"model":"chat-1","messages":"${text}"${rest}}`)
    const long = 'é'.repeat(length)

    expect(of(long)).toBe(of(long))
    expect(of(`${long.slice(1)}e`)).not.toBe(of(long))
    expect(of(`e${long.slice(1)}`)).not.toBe(of(long))
    expect(of(long, ',"n":2')).not.toBe(of(long, ',"n":1'))
    expect(keyOf(`{"messages":"${long}","model":"chat-1"}`)).toBe(of(long))
  },
)
