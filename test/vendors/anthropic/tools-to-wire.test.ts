import { describe, expect, it } from 'vitest'
import { translated } from './chat-call.ts'

const tool = (name: string, more: Record<string, unknown> = {}) => ({ type: 'function', function: { name, ...more } })
const TOOLS = [tool('find_tag'), tool('read_tag')]
const NEWEST = { upstream: 'claude-opus-5-5' }

describe('tool_choice', () => {
  it.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [
      { type: 'function', function: { name: 'read_tag' } },
      { type: 'tool', name: 'read_tag' },
    ],
  ])('%j becomes %j', (choice, expected) => {
    expect(translated({ tools: TOOLS, tool_choice: choice }).body.tool_choice).toEqual(expected)
  })

  it.each([
    ['auto', { type: 'auto' }],
    ['required', { type: 'any' }],
  ])('shows the model only the allowed tools with mode %s', (mode, expected) => {
    const choice = { type: 'allowed_tools', allowed_tools: { mode, tools: [tool('read_tag')] } }

    const { body } = translated({ tools: TOOLS, tool_choice: choice })

    expect(body.tools?.map((entry) => entry.name)).toEqual(['read_tag'])
    expect(body.tool_choice).toEqual(expected)
  })

  it('is rejected if the allowed tools name no tool', () => {
    const choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [tool('other')] } }

    expect(() => translated({ tools: TOOLS, tool_choice: choice })).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'tool_choice.allowed_tools.tools' }),
    )
  })

  it.each([
    ['on models that refuse a forced call', { tool_choice: 'required' }, NEWEST],
    ['on Sonnet 4.6 while it thinks', { tool_choice: 'required', reasoning_effort: 'low' }, {}],
  ])('falls back to auto %s and reports it', (_where, request, options) => {
    const { body, dropped } = translated({ tools: TOOLS, ...request }, options)

    expect(body.tool_choice).toEqual({ type: 'auto' })
    expect(dropped).toEqual(['tool_choice'])
  })

  it('is left out and reported when it forces a call without tools', () => {
    const { body, dropped } = translated({ tool_choice: 'required' })

    expect(body).not.toHaveProperty('tool_choice')
    expect(dropped).toEqual(['tool_choice'])
  })

  it.each([
    [{ type: 'custom', custom: { name: 'x' } }, 'unsupported_parameter'],
    ['sometimes', 'invalid_request'],
  ])('%j is refused', (choice, code) => {
    expect(() => translated({ tools: TOOLS, tool_choice: choice })).toThrow(
      expect.objectContaining({ code, param: 'tool_choice' }),
    )
  })
})

describe('parallel_tool_calls', () => {
  it.each([
    [undefined, { type: 'auto', disable_parallel_tool_use: true }],
    ['required', { type: 'any', disable_parallel_tool_use: true }],
    ['none', { type: 'none' }],
  ])('false with tool_choice %s becomes %j', (choice, expected) => {
    const { body } = translated({ tools: TOOLS, tool_choice: choice, parallel_tool_calls: false })

    expect(body.tool_choice).toEqual(expected)
  })

  it.each([
    ['true', { tools: TOOLS, parallel_tool_calls: true }],
    ['false without tools', { parallel_tool_calls: false }],
  ])('%s changes nothing', (_what, request) => {
    expect(translated(request).body).not.toHaveProperty('tool_choice')
  })
})

describe('tools', () => {
  it('reports strict on models without structured output', () => {
    const { body, dropped } = translated(
      { tools: [tool('f', { strict: true })] },
      { upstream: 'claude-sonnet-4-20250514' },
    )

    expect(body.tools).toEqual([{ name: 'f', input_schema: { type: 'object', properties: {} } }])
    expect(dropped).toEqual(['tools.function.strict'])
  })

  it('sends none as strict when there are more strict tools than the API takes', () => {
    const tools = Array.from({ length: 21 }, (_, index) => tool(`f${index}`, { strict: true }))

    const { body, dropped } = translated({ tools })

    expect(body.tools?.some((entry) => entry.strict)).toBe(false)
    expect(dropped).toEqual(['tools.function.strict'])
  })

  it('keeps the schema of a tool that is not strict as it is', () => {
    const parameters = {
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1 } },
      additionalProperties: true,
    }

    const { body } = translated({ tools: [tool('f', { parameters, strict: false })] })

    expect(body.tools).toEqual([{ name: 'f', input_schema: parameters }])
  })

  it('make one object of alternatives at the top, which the API refuses', () => {
    const text = { type: 'string' }
    const parameters = {
      type: 'object',
      description: 'Where to look.',
      properties: { limit: { type: 'integer' } },
      required: ['limit'],
      oneOf: [
        { properties: { kind: { const: 'tag' }, tag: text }, required: ['kind', 'tag'] },
        { $ref: '#/$defs/path' },
      ],
      $defs: { path: { properties: { kind: { const: 'path' }, path: text }, required: ['kind', 'path'] } },
    }

    expect(translated({ tools: [tool('f', { parameters })] }).body.tools?.[0]?.input_schema).toEqual({
      type: 'object',
      description: 'Where to look. (give the members of one of these lists: ["kind","tag"] or ["kind","path"])',
      properties: {
        limit: { type: 'integer' },
        kind: { anyOf: [{ const: 'tag' }, { const: 'path' }] },
        ...{ tag: text, path: text },
      },
      required: ['limit', 'kind'],
      $defs: parameters.$defs,
    })
  })

  it.each([
    [
      'parts that hold at once',
      { allOf: [{ properties: { a: {} }, required: ['a'] }] },
      { properties: { a: {} }, required: ['a'] },
    ],
    ['alternatives that require nothing', { anyOf: [{ properties: { a: {} } }, {}] }, { properties: { a: {} } }],
    ['alternatives of alternatives', { anyOf: [{ oneOf: [{ properties: { a: {} } }] }] }, { properties: { a: {} } }],
  ])('are one object of %s', (_what, parameters, expected) => {
    const { body } = translated({ tools: [tool('f', { parameters })] })

    expect(body.tools?.[0]?.input_schema).toEqual({ type: 'object', ...expected })
  })

  it('end, or are refused by name, where an alternative is the schema itself', () => {
    const { body } = translated({
      tools: [tool('f', { parameters: { anyOf: [{ $ref: '#' }, { properties: { a: {} } }] } })],
    })

    expect(body.tools?.[0]?.input_schema).toMatchObject({ properties: { a: {} } })
  })

  it.each([
    [{ type: 'custom', custom: { name: 'x' } }, 'unsupported_parameter', 'tools[1].type'],
    [{ type: 'function' }, 'invalid_request', 'tools[1].function.name'],
    [tool('g', { parameters: 'text' }), 'invalid_request', 'tools[1].function.parameters'],
  ])('refuses %j, naming it', (bad, code, param) => {
    expect(() => translated({ tools: [tool('f'), bad] })).toThrow(expect.objectContaining({ code, param }))
  })
})

const CLOSED = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const OPEN = { type: 'object', properties: { scores: { type: 'object', additionalProperties: { type: 'number' } } } }
const jsonSchema = (schema: unknown) => ({ type: 'json_schema', json_schema: { name: 'answer', schema } })
const findTag = { type: 'function', function: { name: 'find_tag' } }

describe('response_format', () => {
  it('has no effect if it is text', () => {
    expect(translated({ response_format: { type: 'text' } }).body).toStrictEqual(translated({}).body)
  })

  it('merges joined schemas into one object, like a strict tool, because closed parts would allow nothing', () => {
    const part = (name: string) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })
    const schema = { type: 'object', allOf: [part('name'), part('city')] }
    const one = {
      ...{ type: 'object', properties: { name: { type: 'string' }, city: { type: 'string' } } },
      ...{ required: ['name', 'city'], additionalProperties: false },
    }

    const { body } = translated({
      ...{ response_format: jsonSchema(schema), tools: [tool('f', { parameters: schema, strict: true })] },
    })

    expect(body.output_config?.format).toEqual({ type: 'json_schema', schema: one })
    expect(body.tools).toEqual([{ name: 'f', input_schema: one, strict: true }])
  })

  it('goes to a forced tool on models without structured output, with the schema as it is', () => {
    const { body } = translated({ response_format: jsonSchema(CLOSED) }, { upstream: 'claude-opus-4-1-20250805' })

    expect(body.tools).toMatchObject([{ name: 'json', input_schema: CLOSED }])
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'json', disable_parallel_tool_use: true })
  })

  it('goes to a forced tool when the schema has objects that take any member', () => {
    const { body } = translated({ response_format: jsonSchema(OPEN) })

    expect(body).not.toHaveProperty('output_config')
    expect(body.tools).toMatchObject([{ name: 'json', input_schema: OPEN }])
  })

  it('becomes an instruction with the schema where a call cannot be forced', () => {
    const { body } = translated({ response_format: jsonSchema(OPEN) }, { upstream: 'claude-opus-5-5' })

    expect(body).not.toHaveProperty('tools')
    expect(body.system).toContain(JSON.stringify(OPEN))
  })

  it('requests any object for json_schema without a schema', () => {
    const { body } = translated({ response_format: { type: 'json_schema', json_schema: { name: 'answer' } } })

    expect(body.tools).toMatchObject([{ name: 'json', input_schema: { type: 'object' } }])
  })

  it('becomes an instruction behind the system text of the caller when the model thinks', () => {
    const { body } = translated({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      reasoning_effort: 'high',
      response_format: { type: 'json_object' },
    })

    expect(body).not.toHaveProperty('tools')
    expect(body.system).toMatch(/^Be brief\.\nAnswer with one JSON object\. /)
  })

  it('leaves the model the choice between the tools of the caller and the answer', () => {
    const { body } = translated({ tools: [findTag], response_format: { type: 'json_object' } })

    expect(body.tools?.map((tool) => tool.name)).toEqual(['find_tag', 'json'])
    expect(body.tool_choice).toEqual({ type: 'any' })
  })

  it('keeps a call that the caller forces', () => {
    const { body } = translated({
      tools: [findTag],
      tool_choice: { type: 'function', function: { name: 'find_tag' } },
      response_format: { type: 'json_object' },
    })

    expect(body.tool_choice).toEqual({ type: 'tool', name: 'find_tag' })
  })

  it('names its tool otherwise when the caller has one of that name', () => {
    const json = { type: 'function', function: { name: 'json' } }

    const { body } = translated({ tools: [json], tool_choice: 'none', response_format: { type: 'json_object' } })

    expect(body.tool_choice).toMatchObject({ type: 'tool', name: 'json_2' })
  })

  it.each([
    [{ type: 'xml' }, 'response_format.type'],
    [{ type: 'json_schema' }, 'response_format.json_schema'],
    [jsonSchema('text'), 'response_format.json_schema.schema'],
  ])('%j is refused, naming the member', (format, param) => {
    expect(() => translated({ response_format: format })).toThrow(
      expect.objectContaining({ code: 'invalid_request', param }),
    )
  })
})
