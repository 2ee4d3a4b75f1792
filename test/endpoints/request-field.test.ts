import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { GatewayError } from '../../src/core/errors.ts'
import { checkRequest, fieldPath } from '../../src/endpoints/schema.ts'

test.each([
  [[], ''],
  [['model'], 'model'],
  [['messages', 0, 'content', 1, 'image_url', 'url'], 'messages[0].content[1].image_url.url'],
  [[0, 1], '[0][1]'],
])('the path %j is written as %s', (path, text) => {
  expect(fieldPath(path)).toBe(text)
})

describe('a request that does not fit its schema', () => {
  const schema = z.looseObject({
    count: z.int().max(4).optional(),
    stop: z.union([z.string(), z.array(z.string()).max(2)]).optional(),
    parts: z.union([z.string(), z.array(z.looseObject({ url: z.string() }))]).optional(),
    input: z.union([z.string().min(1), z.array(z.string()), z.array(z.int())]).optional(),
  })

  function refusal(body: unknown): GatewayError {
    try {
      checkRequest(schema, body)
    } catch (error) {
      if (GatewayError.isInstance(error)) return error
      throw error
    }
    throw new Error('it was accepted')
  }

  test.each([
    ['the field', { count: 5 }, 'count', /4/],
    ['the bound of the branch whose type was right', { stop: ['a', 'b', 'c'] }, 'stop', /2/],
    ['the member of the deepest branch', { parts: [{ url: 'a' }, {}] }, 'parts[1].url', /string/],
    ['the item at which the best branch stopped', { input: [1, 2, 'x'] }, 'input[2]', /number/],
    ['the field when no branch fits at all', { input: {} }, 'input', /./],
  ])('gets an error about %s', (_name, body, param, message) => {
    const error = refusal(body)

    expect(error).toMatchObject({ code: 'invalid_request', status: 400, param })
    expect(error.message.startsWith(`${param}: `)).toBe(true)
    expect(error.message).toMatch(message)
  })

  test('gets an error about the member of the object with its type', () => {
    const text = z.looseObject({ type: z.literal('text'), text: z.string() })
    const image = z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: z.string() }) })
    const parts = z.looseObject({ input: z.union([z.string(), z.array(z.union([text, image]))]) })
    const check = (part: object) => checkRequest(parts, { input: [part] })

    expect(() => check({ type: 'image_url', image_url: 'https://example.com/a.png' })).toThrow(
      'input[0].image_url: Invalid input: expected object, received string',
    )
    expect(() => check({ type: 'sound' })).toThrow(/^input\[0\]\.type: /)
  })

  test('gets an error about a missing field that may have several types', () => {
    const texts = z.looseObject({ input: z.union([z.string(), z.array(z.string())]) })

    expect(() => checkRequest(texts, {})).toThrow('input: is required')
  })

  test('says of a member that is absent that it is required, and of another type what it expected', () => {
    const list = z.looseObject({ messages: z.array(z.looseObject({ role: z.string() })) })

    expect(() => checkRequest(list, {})).toThrow(/^messages: is required: expected array$/)
    expect(() => checkRequest(list, { messages: [{}] })).toThrow(/^messages\[0\]\.role: is required: expected string$/)
    expect(() => checkRequest(list, { messages: 'hi' })).toThrow(/^messages: .*expected array/)
  })

  test('gets an error about the body itself if it is not an object', () => {
    const error = refusal([])

    expect(error.param).toBeUndefined()
    expect(error.message).toMatch(/^The request body: /)
  })

  test('does not read its own value back in the message', () => {
    expect(refusal({ count: 'secret-canary' }).message).not.toContain('secret-canary')
  })
})

test('a request that fits comes back as the same object, unknown fields included', () => {
  const body = { model: 'x', unknown: { deep: true } }

  expect(checkRequest(z.looseObject({ model: z.string() }), body)).toBe(body)
})
