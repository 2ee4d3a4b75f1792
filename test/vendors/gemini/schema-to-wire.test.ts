import { describe, expect, test } from 'vitest'
import { WorkBudget } from '../../../src/core/calls-in-flight.ts'
import { parametersToWire, schemaToWire } from '../../../src/vendors/gemini/schema-to-wire.ts'

const convert = (schema: unknown) => schemaToWire(schema, 'tools[0].function.parameters', new WorkBudget())

describe('keywords that the vendor refuses', () => {
  test.each<[keyword: string, schema: unknown, expected: object]>([
    [
      '$schema and $id',
      { $schema: 'https://json-schema.org/draft/2020-12/schema', $id: 'x', type: 'string' },
      { type: 'STRING' },
    ],
    [
      '$comment, title and examples',
      { $comment: 'x', title: 'T', examples: ['a'], type: 'string' },
      { type: 'STRING' },
    ],
    [
      'additionalProperties',
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false },
      { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
    ],
    ['additionalProperties alone', { additionalProperties: { type: 'string' } }, { type: 'OBJECT' }],
    ['patternProperties', { type: 'object', patternProperties: { '^x': { type: 'string' } } }, { type: 'OBJECT' }],
    ['exclusiveMinimum of a whole number', { type: 'integer', exclusiveMinimum: 0 }, { type: 'INTEGER', minimum: 1 }],
    ['exclusiveMaximum of a whole number', { type: 'integer', exclusiveMaximum: 9.5 }, { type: 'INTEGER', maximum: 9 }],
    [
      'exclusiveMinimum of a fraction',
      { type: 'number', exclusiveMinimum: 0, description: 'Price.' },
      { type: 'NUMBER', minimum: 0, description: 'Price. Greater than 0.' },
    ],
    [
      'exclusiveMaximum beside a tighter maximum',
      { type: 'number', maximum: 5, exclusiveMaximum: 10 },
      { type: 'NUMBER', maximum: 5 },
    ],
    [
      'exclusiveMinimum as a boolean',
      { type: 'integer', minimum: 3, exclusiveMinimum: true },
      { type: 'INTEGER', minimum: 4 },
    ],
    ['multipleOf', { type: 'integer', multipleOf: 5 }, { type: 'INTEGER', description: 'Multiple of 5.' }],
    ['const', { const: 'red' }, { type: 'STRING', enum: ['red'] }],
    ['const of another type', { const: 3 }, { type: 'INTEGER', description: 'Allowed values: 3.' }],
    ['enum of numbers', { type: 'integer', enum: [1, 2] }, { type: 'INTEGER', description: 'Allowed values: 1, 2.' }],
    ['enum with null', { enum: ['a', null] }, { type: 'STRING', enum: ['a'], nullable: true }],
    [
      'enum with an empty text',
      { type: 'string', enum: ['', 'a'] },
      { type: 'STRING', description: 'Allowed values: "", "a".' },
    ],
    [
      'enum of several types',
      { enum: ['auto', 1] },
      {
        anyOf: [
          { type: 'STRING', enum: ['auto'] },
          { type: 'INTEGER', description: 'Allowed values: 1.' },
        ],
      },
    ],
    ['default', { type: 'integer', default: 10 }, { type: 'INTEGER', description: 'Default: 10.' }],
    ['type array with null', { type: ['string', 'null'] }, { type: 'STRING', nullable: true }],
    [
      'type array of two types',
      { type: ['string', 'number', 'null'], description: 'Id' },
      { anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }], description: 'Id', nullable: true },
    ],
    ['type null', { type: 'null' }, { type: 'STRING', nullable: true }],
    ['no type at all', { description: 'Anything' }, { type: 'STRING', description: 'Anything' }],
    ['true as a schema', true, { type: 'STRING' }],
    ['format date-time', { type: 'string', format: 'date-time' }, { type: 'STRING', format: 'date-time' }],
    ['format email', { type: 'string', format: 'email' }, { type: 'STRING', description: 'Format: email.' }],
    ['format of a number', { type: 'number', format: 'double' }, { type: 'NUMBER', format: 'double' }],
    ['format of a whole number', { type: 'integer', format: 'int32' }, { type: 'INTEGER', format: 'int32' }],
    [
      'oneOf',
      { oneOf: [{ type: 'string' }, { type: 'boolean' }] },
      { anyOf: [{ type: 'STRING' }, { type: 'BOOLEAN' }] },
    ],
    [
      'anyOf with null and a default',
      { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }], default: 5, description: 'Limit.' },
      { type: 'INTEGER', minimum: 1, nullable: true, description: 'Limit. Default: 5.' },
    ],
    [
      'rules beside anyOf',
      {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'string' } },
        anyOf: [{ required: ['a'] }, { required: ['b'] }],
      },
      {
        anyOf: [
          { type: 'OBJECT', properties: { a: { type: 'STRING' }, b: { type: 'STRING' } }, required: ['a'] },
          { type: 'OBJECT', properties: { a: { type: 'STRING' }, b: { type: 'STRING' } }, required: ['b'] },
        ],
      },
    ],
    [
      'allOf',
      {
        allOf: [
          { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
          { properties: { b: { type: 'integer' } }, required: ['b'] },
        ],
        description: 'Both',
      },
      {
        type: 'OBJECT',
        properties: { a: { type: 'STRING' }, b: { type: 'INTEGER' } },
        required: ['a', 'b'],
        description: 'Both',
      },
    ],
    ['not and if', { type: 'string', not: { const: 'x' }, if: { minLength: 1 }, else: {} }, { type: 'STRING' }],
    ['an array without items', { type: 'array' }, { type: 'ARRAY', items: { type: 'STRING' } }],
    [
      'prefixItems',
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], minItems: 2, uniqueItems: true },
      { type: 'ARRAY', items: { anyOf: [{ type: 'STRING' }, { type: 'INTEGER' }] }, minItems: 2 },
    ],
    ['items as a list', { type: 'array', items: [{ type: 'boolean' }] }, { type: 'ARRAY', items: { type: 'BOOLEAN' } }],
    [
      'required names that are no properties',
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'ghost'] },
      { type: 'OBJECT', properties: { a: { type: 'STRING' } }, required: ['a'] },
    ],
    [
      'a property that must not be there',
      { type: 'object', properties: { a: { type: 'string' }, b: false } },
      { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
    ],
    [
      'properties that are called like keywords',
      {
        type: 'object',
        properties: { $ref: { type: 'string' }, type: { type: 'integer' }, const: { type: 'boolean' } },
      },
      {
        type: 'OBJECT',
        properties: { $ref: { type: 'STRING' }, type: { type: 'INTEGER' }, const: { type: 'BOOLEAN' } },
      },
    ],
    [
      'bounds that the vendor has',
      { type: 'string', minLength: 1, maxLength: 9, pattern: '^a' },
      { type: 'STRING', minLength: 1, maxLength: 9, pattern: '^a' },
    ],
  ])('%s', (_keyword, schema, expected) => {
    expect(convert(schema)).toEqual(expected)
  })
})

describe('references', () => {
  test('replaces $ref by its target and keeps the members next to it', () => {
    const schema = {
      type: 'object',
      properties: {
        home: { $ref: '#/$defs/Address', description: 'Where they live' },
        work: { $ref: '#/definitions/a~1b%20c' },
      },
      $defs: { Address: { type: 'object', description: 'An address', properties: { city: { type: 'string' } } } },
      definitions: { 'a/b c': { type: 'string' } },
    }

    expect(convert(schema)).toEqual({
      type: 'OBJECT',
      properties: {
        home: { type: 'OBJECT', description: 'Where they live', properties: { city: { type: 'STRING' } } },
        work: { type: 'STRING' },
      },
    })
  })

  test('a cycle is cut where it returns to itself', () => {
    const schema = {
      $ref: '#/$defs/Node',
      $defs: {
        Node: {
          type: 'object',
          description: 'A node',
          properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/Node' } } },
          required: ['name'],
        },
      },
    }

    expect(convert(schema)).toEqual({
      type: 'OBJECT',
      description: 'A node',
      properties: {
        name: { type: 'STRING' },
        children: { type: 'ARRAY', items: { type: 'OBJECT', description: 'A node' } },
      },
      required: ['name'],
    })
  })

  test('a cycle through the root and through allOf is cut too', () => {
    const schema = {
      type: 'object',
      properties: { next: { allOf: [{ $ref: '#' }], description: 'The next one' } },
    }

    expect(convert(schema)).toEqual({
      type: 'OBJECT',
      properties: {
        next: {
          type: 'OBJECT',
          description: 'The next one',
          properties: { next: { type: 'OBJECT', description: 'The next one' } },
        },
      },
    })
  })

  test.each(['#/$defs/Missing', 'https://schemas.example/other.json', '#/constructor', '#named'])(
    'a reference that leads nowhere (%s) allows any object',
    (reference) => {
      expect(convert({ $ref: reference })).toEqual({ type: 'OBJECT' })
    },
  )

  test('references that multiply without end are refused by name', () => {
    const $defs: Record<string, unknown> = { d30: { type: 'string' } }
    for (let level = 0; level < 30; level++) {
      const next = { $ref: `#/$defs/d${level + 1}` }
      $defs[`d${level}`] = { type: 'object', properties: { a: next, b: next } }
    }

    expect(() => convert({ $ref: '#/$defs/d0', $defs })).toThrow(
      expect.objectContaining({ code: 'invalid_request', status: 400, param: 'tools[0].function.parameters' }),
    )
  })

  test('a chain of 10,000 references ends without exhausting the stack', () => {
    const $defs: Record<string, unknown> = { d10000: { type: 'string' } }
    for (let level = 0; level < 10_000; level++) $defs[`d${level}`] = { $ref: `#/$defs/d${level + 1}` }

    expect(convert({ $ref: '#/$defs/d0', $defs })).toEqual({ type: 'OBJECT' })
  })
})

describe('parameters of a function', () => {
  const parameters = (schema: unknown) => parametersToWire(schema, 'tools[0].function.parameters', new WorkBudget())

  test.each([
    ['no properties', { type: 'object', properties: {} }],
    ['only a type', { type: 'object', additionalProperties: true }],
  ])('are left out when there are %s, because the vendor refuses an empty object', (_case, schema) => {
    expect(parameters(schema)).toBeUndefined()
  })

  test('become one object if there are alternatives at the top', () => {
    const schema = {
      oneOf: [
        { type: 'object', properties: { kind: { const: 'a' }, x: { type: 'string' } }, required: ['kind', 'x'] },
        { type: 'object', properties: { kind: { type: 'string' }, y: { type: 'integer' } }, required: ['kind'] },
      ],
    }

    expect(parameters(schema)).toEqual({
      type: 'OBJECT',
      properties: { kind: { type: 'STRING' }, x: { type: 'STRING' }, y: { type: 'INTEGER' } },
      required: ['kind'],
    })
  })
})
