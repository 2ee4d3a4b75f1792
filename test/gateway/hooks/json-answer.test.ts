import { afterEach, describe, expect, test } from 'vitest'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { jsonAnswer } from '../../../src/hooks/json-answer.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { completion, type HookedGateway, hookedGateway, type Script, spoken } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, people: { type: 'integer', minimum: 0 } },
  required: ['city', 'people'],
  additionalProperties: false,
}
const wanting = (schema: unknown): Record<string, unknown> => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
})
const GOOD = '{"city":"Ulm","people":128928}'

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

async function ask(
  hooks: readonly AnyHook[],
  said: string | Script,
  rest: Record<string, unknown> = wanting(SCHEMA),
): Promise<{ response: Response; text: string; content: string; schema: string | null; repaired: string | null }> {
  const script: Script = typeof said === 'string' ? (rest['stream'] === true ? spoken([said]) : completion(said)) : said
  gateway = await hookedGateway(hooks, script)
  const response = await gateway.post(CHAT, chatBody('chat-relayed', 'hi', rest))
  const text = await response.text()
  const { headers } = response
  return {
    response,
    text,
    content: contentOf(text),
    schema: headers.get('x-signalbox-schema'),
    repaired: headers.get('x-signalbox-repaired'),
  }
}

function contentOf(text: string): string {
  if (!text.startsWith('data:')) return JSON.parse(text).choices?.[0]?.message?.content ?? ''
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json))
  return events.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')
}

describe.each([false, true])('an answer that should match a schema (streamed: %s)', (stream) => {
  const rest = { ...wanting(SCHEMA), stream }

  test('passes as it is where it does', async () => {
    const { content, schema, repaired } = await ask([jsonAnswer()], GOOD, rest)

    expect([content, schema, repaired]).toEqual([GOOD, null, null])
  })

  test.each([
    ['in a fence', `\`\`\`json\n${GOOD}\n\`\`\``, { city: 'Ulm', people: 128928 }],
    ['with a comma too many', '{"city":"Ulm","people":128928,}', { city: 'Ulm', people: 128928 }],
    ['in single quotes', "{'city':'Ulm','people':128928}", { city: 'Ulm', people: 128928 }],
    ['that was cut', '{"people":128928,"city":"Ul', { city: 'Ul', people: 128928 }],
  ])('is repaired %s', async (_name, said, value) => {
    const { content, schema, repaired } = await ask([jsonAnswer()], said, rest)

    expect(JSON.parse(content)).toEqual(value)
    expect([schema, repaired]).toEqual([null, 'syntax'])
  })

  test.each([
    ['of another type', '{"city":"Ulm","people":"many"}'],
    ['that lacks a member', '{"city":"Ulm"}'],
    ['with one too many', '{"city":"Ulm","people":1,"mayor":"?"}'],
    ['that is prose', 'Ulm has 128,928 inhabitants.'],
  ])('is marked and left as it is, %s', async (_name, said) => {
    const { content, schema, repaired, response } = await ask([jsonAnswer()], said, rest)

    expect([response.status, content, schema, repaired]).toEqual([200, said, 'invalid', null])
  })

  test('gets 502 if the host enables that, and is charged, because the vendor charges', async () => {
    const { response, text } = await ask([jsonAnswer({ invalid: 'error' })], '{"city":"Ulm"}', rest)
    const event = await gateway!.ended(response)

    expect(response.status).toBe(502)
    expect(text).toContain('answer_invalid')
    expect(event.costNanoDollars).toBeGreaterThan(0n)
  })

  test('is checked but not repaired with repair none', async () => {
    const said = `\`\`\`json\n${GOOD}\n\`\`\``
    const { content, schema, repaired } = await ask([jsonAnswer({ repair: 'none' })], said, rest)

    expect([content, schema, repaired]).toEqual([said, 'invalid', null])
  })
})

describe('an answer without a schema', () => {
  test('is not changed', async () => {
    const { content, schema } = await ask([jsonAnswer()], 'Hello,', {})

    expect([content, schema]).toEqual(['Hello,', null])
  })

  test('is not held back where it is streamed', async () => {
    let asked = 0
    const hook = jsonAnswer() as AnyHook
    const counted: AnyHook = {
      ...hook,
      answer(answer) {
        asked += 1
        return hook.answer?.(answer)
      },
    }
    const { content } = await ask([counted], 'Hello.', { stream: true })

    expect([content, asked]).toEqual(['Hello.', 0])
  })
})

test('does not check the titles of sources next to an answer', async () => {
  const annotations = [{ type: 'url_citation', url_citation: { title: 'About Ulm', url: 'https://ulm.example' } }]
  const { content, schema } = await ask([jsonAnswer()], completion(GOOD, { annotations }))

  expect([content, schema]).toEqual([GOOD, null])
})

test('an answer that calls a tool is not checked', async () => {
  const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }]
  const { schema } = await ask([jsonAnswer()], completion('Let me look.', { tool_calls }))

  expect(schema).toBeNull()
})

/** A whole answer of a Responses vendor. */
const responded: (said: string) => Script = (text) => (response) => {
  const content = [{ type: 'output_text', text, annotations: [] }]
  const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }]
  const usage = { input_tokens: 7, output_tokens: 5, total_tokens: 12 }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', output, usage }))
}

test.each<[string, string, Record<string, unknown>, (said: string) => Script]>([
  [
    'Messages',
    '/v1/messages',
    {
      max_tokens: 99,
      messages: [{ role: 'user', content: 'hi' }],
      output_config: { format: { type: 'json_schema', schema: SCHEMA } },
    },
    completion,
  ],
  [
    'Responses',
    '/v1/responses',
    { input: 'hi', text: { format: { type: 'json_schema', name: 'a', schema: SCHEMA } } },
    responded,
  ],
])('repairs answers in the dialect of %s, too', async (_name, path, rest, script) => {
  gateway = await hookedGateway([jsonAnswer()], script("{'city':'Ulm','people':1}"))
  const response = await gateway.post(path, { model: 'chat-relayed', ...rest })
  const text = await response.text()

  expect(response.headers.get('x-signalbox-repaired'), text).toBe('syntax')
})

describe('a schema that a caller wrote', () => {
  const exponential = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [
      `d${index}`,
      index === 59
        ? { type: 'object' }
        : { allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  )

  test.each<[string, unknown, string, string | null]>([
    [
      'with an expression without end',
      { type: 'string', pattern: '^(a+)+$' },
      JSON.stringify(`${'a'.repeat(40)}!`),
      null,
    ],
    [
      'with expressions for names',
      { type: 'object', patternProperties: { '^(a+)+$': { type: 'string' } }, additionalProperties: false },
      JSON.stringify({ [`${'a'.repeat(40)}!`]: 1 }),
      null,
    ],
    ['that doubles its work at each step', { $defs: exponential, $ref: '#/$defs/d0' }, '{}', 'unchecked'],
    ['that refers to itself', { $ref: '#' }, '{}', 'unchecked'],
    ['that refers to nothing', { $ref: '#/$defs/none' }, '{}', 'unchecked'],
    ['that refers elsewhere', { $ref: 'https://example.com/schema.json' }, '{}', 'unchecked'],
    ['that is none', 'object', '{}', 'unchecked'],
    [
      'with a member that is called pattern',
      { type: 'object', properties: { pattern: { type: 'string' } } },
      '{"pattern":1}',
      'invalid',
    ],
    ['with a list of types', { type: ['object', 'null'] }, 'null', null],
    [
      'with a recursion that ends',
      { $defs: { n: { type: 'object', properties: { next: { $ref: '#/$defs/n' } } } }, $ref: '#/$defs/n' },
      '{"next":{"next":3}}',
      'invalid',
    ],
    [
      'whose items must be unique, in a long text',
      { type: 'array', uniqueItems: true },
      JSON.stringify(Array.from({ length: 50_000 }, () => 1)),
      null,
    ],
  ])('%s does not stop the process', async (_name, schema, said, state) => {
    const startedAt = performance.now()
    const answer = await ask([jsonAnswer()], said, wanting(schema))

    expect([answer.response.status, answer.schema]).toEqual([200, state])
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })
})

describe('headers of an answer hook', () => {
  test.each([
    [{ 'x-signalbox-cost': '0' }],
    [{ 'x-request-id': 'mine' }],
    [{ 'set-cookie': 'a=b' }],
    [{ 'x-a': 'a\r\nb: c' }],
    [{ 'x-a': 1 }],
    ['x-a'],
  ])('cannot be %j', async (headers) => {
    const { response } = await ask([{ name: 'bad', answer: () => ({ headers }) as never }], 'Hello.', {})

    expect(response.headers.get('x-signalbox-error-code')).toBe('hook_failed')
  })

  test('reach the caller, whole and streamed', async () => {
    for (const stream of [false, true]) {
      const { response } = await ask([{ name: 'good', answer: () => ({ headers: { 'X-Seen': 'yes' } }) }], 'Hello.', {
        stream,
      })
      expect(response.headers.get('x-seen')).toBe('yes')
      await gateway?.close()
      gateway = undefined
    }
  })
})

test.each<[object, RegExp]>([
  [{ repair: 'retry' }, /repair must be none or syntax/],
  [{ invalid: 'drop' }, /invalid must be mark or error/],
  [{ repairs: 'none' }, /repairs is unknown; did you mean repair/],
])('refuses %j', (options, message) => {
  expect(() => jsonAnswer(options as never)).toThrow(message)
})
