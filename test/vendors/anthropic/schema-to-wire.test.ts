import { describe, expect, it } from 'vitest'
import { WorkBudget } from '../../../src/core/calls-in-flight.ts'
import { hasOpenObjects, schemaToWire, withMergedParts } from '../../../src/vendors/shared/messages-tools.ts'

const CLOSED = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const OPEN = { type: 'object', properties: { scores: { type: 'object', additionalProperties: { type: 'number' } } } }

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

describe('withMergedParts', () => {
  const merged = (schema: Record<string, unknown>) => withMergedParts(schema, 'schema', new WorkBudget())
  const text = { type: 'string' }
  const part = (name: string) => ({ type: 'object', properties: { [name]: text }, required: [name] })

  it('makes one object of the parts, which is closed once', () => {
    const schema = { description: 'A person', allOf: [part('name'), part('city')] }

    expect(schemaToWire(merged(schema))).toEqual({
      type: 'object',
      description: 'A person',
      properties: { name: text, city: text },
      required: ['name', 'city'],
      additionalProperties: false,
    })
    expect(hasOpenObjects(merged({ type: 'object', allOf: [part('name')] }))).toBe(false)
  })

  it('puts references among the parts in place, and merges inside of everything that holds schemas', () => {
    const whole = { allOf: [{ $ref: '#/$defs/base' }, part('city')] }
    const schema = {
      type: 'object',
      properties: { list: { type: 'array', items: whole } },
      $defs: { base: part('name') },
    }

    expect(merged(schema)).toMatchObject({
      properties: { list: { items: { properties: { name: text, city: text }, required: ['name', 'city'] } } },
    })
  })

  it('keeps a lone reference, such as that of a class with a description, even to itself', () => {
    const node = {
      type: 'object',
      properties: { next: { description: 'The next', allOf: [{ $ref: '#/$defs/node' }] } },
    }
    const schema = { $ref: '#/$defs/node', $defs: { node } }

    expect(merged(schema)).toEqual({
      ...schema,
      $defs: { node: { ...node, properties: { next: { description: 'The next', $ref: '#/$defs/node' } } } },
    })
  })

  it('cuts parts that hold themselves', () => {
    const node = { type: 'object', properties: { next: { allOf: [{ $ref: '#/$defs/node' }, part('name')] } } }

    expect(JSON.stringify(merged({ $ref: '#/$defs/node', $defs: { node } })).length).toBeLessThan(2_000)
  })

  it('leaves a schema without parts as it is', () => {
    expect(merged({ ...CLOSED, anyOf: [OPEN] })).toEqual({ ...CLOSED, anyOf: [OPEN] })
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
  ])('returns for %j the result %s', (schema, expected) => {
    expect(hasOpenObjects(schema)).toBe(expected)
  })
})
