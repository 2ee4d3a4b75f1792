import { afterAll, describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { withTypedBranches } from '../../../src/vendors/openai-compatible/preset-fields.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { bodyOf, callFromText } from '../shared/vendor-call.ts'

const VARIANTS = [{ required: ['path'] }, { type: 'object', required: ['url'] }, { $ref: '#/$defs/blob' }]
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    path: { type: ['string', 'null'], anyOf: [{ minLength: 1 }, { type: 'null' }] },
    url: { type: 'string' },
  },
  anyOf: VARIANTS,
}
const SENT = {
  properties: {
    path: { anyOf: [{ type: ['string', 'null'], minLength: 1 }, { type: 'null' }] },
    url: { type: 'string' },
  },
  anyOf: [{ type: 'object', required: ['path'] }, VARIANTS[1], VARIANTS[2]],
}
const toolOf = (parameters: object) => ({ type: 'function', function: { name: 'attach', parameters } })

const sandbox = sandboxVendors()
afterAll(() => sandbox.close())

describe('schemas for a server that rejects a type next to branches', () => {
  const sent = (fields: object) => {
    const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields })
    const call = callFromText<ChatRequest>(text, { upstream: 'm' })
    const wire = openaiCompatible(presets.moonshot, { apiKey: 'k' }).chat!.toWire(call)
    return { call, wire, body: bodyOf(wire.body) }
  }

  test('have it in the branches, in tools and in the format of the answer', () => {
    const format = { type: 'json_schema', json_schema: { name: 'a', schema: SCHEMA } }
    const { body, wire } = sent({ tools: [toolOf(SCHEMA)], response_format: format })

    expect(body['tools']).toEqual([toolOf(SENT)])
    expect(body['response_format']).toEqual({ type: 'json_schema', json_schema: { name: 'a', schema: SENT } })
    expect(wire.dropped).toEqual([])
  })

  test('have it in branches of branches, and in properties that are called as keywords are', () => {
    const inner = { type: 'string', anyOf: [{ anyOf: [{ minLength: 1 }] }, { type: 'number' }] }
    const { body } = sent({ tools: [toolOf({ type: 'object', properties: { default: inner } })] })

    const written = { anyOf: [{ anyOf: [{ type: 'string', minLength: 1 }] }, { type: 'number' }] }
    expect(body['tools']).toEqual([toolOf({ type: 'object', properties: { default: written } })])
  })

  test('pass with the bytes of the request where there is nothing to move', () => {
    const { call, wire } = sent({
      tools: [toolOf({ type: 'object', properties: { a: { anyOf: [{ type: 'string' }] } } })],
    })

    expect(wire.body).toBe(call.bytes)
  })

  test.each([
    { properties: { type: { type: 'string' }, anyOf: { type: 'array' }, $schema: { type: 'string' } } },
    { enum: [{ type: 'a', anyOf: [{}] }], default: { type: 'b', anyOf: [{}], $schema: 'x' } },
    { type: 'object', anyOf: 'nonsense' },
    [null, true, 1, 'text'],
  ])('stay the very same where the words are names or data: %j', (schema) => {
    expect(withTypedBranches(schema)).toBe(schema)
  })

  test('keep a branch that any value meets', () => {
    expect(withTypedBranches({ type: 'string', anyOf: [true, {}] })).toEqual({ anyOf: [true, { type: 'string' }] })
  })

  test('are taken by the stand-in of Moonshot, which refuses them as they were', async () => {
    const { origin } = await sandbox.listen()
    const baseURL = `${origin}/presets/moonshot/v1`
    const body = { ...chatBody('kimi-k2.6', 'call attach'), tools: [toolOf(SCHEMA)] }
    const direct = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const wire = openaiCompatible(presets.moonshot, { apiKey: 'k', baseURL }).chat!.toWire(
      callFromText<ChatRequest>(JSON.stringify(body)),
    )
    const mended = await fetch(`${origin}${wire.path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
      body: JSON.stringify(bodyOf(wire.body)),
    })

    expect(direct.status).toBe(400)
    expect(await direct.text()).toContain('moonshot flavored json schema')
    expect(mended.status).toBe(200)
  })
})
