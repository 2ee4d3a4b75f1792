import { describe, expect, it } from 'vitest'
import { hasOpenObjects, schemaToWire } from '../../../src/vendors/anthropic/schema-to-wire.ts'
import { translated } from './chat-call.ts'

const CLOSED = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const OPEN = { type: 'object', properties: { scores: { type: 'object', additionalProperties: { type: 'number' } } } }
const jsonSchema = (schema: unknown) => ({ type: 'json_schema', json_schema: { name: 'answer', schema } })
const findTag = { type: 'function', function: { name: 'find_tag' } }

describe('response_format', () => {
  it('of text changes nothing', () => {
    expect(translated({ response_format: { type: 'text' } }).body).toStrictEqual(translated({}).body)
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

  it('of json_schema without a schema asks for any object', () => {
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

describe('schemaToWire', () => {
  it.each([
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'maxItems',
    'uniqueItems',
    'minProperties',
    'maxProperties',
    'patternProperties',
    'propertyNames',
    'not',
  ])('moves %s into the description', (keyword) => {
    expect(schemaToWire({ type: 'string', [keyword]: 3 })).toEqual({
      type: 'string',
      description: `(${keyword}: 3)`,
    })
  })

  it('keeps members that are named like keywords, and values that look like schemas', () => {
    const schema = {
      type: 'object',
      properties: { maximum: { type: 'string' }, items: { enum: [{ minimum: 1 }] } },
      additionalProperties: false,
    }

    expect(schemaToWire(schema)).toEqual(schema)
  })

  it('joins oneOf and anyOf', () => {
    expect(schemaToWire({ oneOf: [{ type: 'null' }], anyOf: [{ type: 'string' }] })).toEqual({
      anyOf: [{ type: 'null' }, { type: 'string' }],
    })
  })

  it('closes objects in lists, alternatives and definitions', () => {
    const object = { type: 'object', properties: { a: { type: 'string' } } }
    const closed = { ...object, additionalProperties: false }

    expect(schemaToWire({ type: 'array', items: object, anyOf: [object], $defs: { object } })).toEqual({
      type: 'array',
      items: closed,
      anyOf: [closed],
      $defs: { object: closed },
    })
  })
})

describe('hasOpenObjects', () => {
  it.each([
    [{ type: 'object' }, true],
    [{ type: ['object', 'null'] }, true],
    [{ type: 'object', additionalProperties: false }, false],
    [CLOSED, false],
    [{ ...CLOSED, additionalProperties: true }, false],
    [OPEN, true],
    [{ type: 'array', items: { type: 'object' } }, true],
    [{ anyOf: [{ type: 'string' }, { type: 'object', additionalProperties: true }] }, true],
    [{ type: 'object', properties: { type: { const: 'object' } } }, false],
  ])('of %j is %s', (schema, expected) => {
    expect(hasOpenObjects(schema)).toBe(expected)
  })
})
