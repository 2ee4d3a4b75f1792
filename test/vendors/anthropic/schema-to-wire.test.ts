import { describe, expect, it } from 'vitest'
import { hasOpenObjects, schemaToWire } from '../../../src/vendors/shared/messages-schema.ts'

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
