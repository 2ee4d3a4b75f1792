import { expect, test } from 'vitest'
import { sampleValue } from '../../../../src/testing/sandbox/model/chat-turn.ts'

test.each<[string, Record<string, unknown>, unknown]>([
  [
    'required members only',
    { type: 'object', properties: { a: { type: 'string' }, b: {} }, required: ['a'] },
    { a: 'sample a' },
  ],
  ['an object named by its properties alone', { properties: { a: { type: 'null' } }, required: ['a'] }, { a: null }],
  [
    "Google's upper-case types",
    { type: 'OBJECT', properties: { a: { type: 'BOOLEAN' } }, required: ['a'] },
    { a: true },
  ],
  ['constants and enumerations', { type: 'array', items: { enum: ['x', 'y'] }, minItems: 2 }, ['x', 'x']],
  ['a constant', { const: { k: 1 } }, { k: 1 }],
  ['a default', { type: 'string', default: 'usual' }, 'usual'],
  ['a nullable type', { type: ['null', 'integer'] }, 1],
  ['bounds of integers', { type: 'integer', minimum: 7, maximum: 9 }, 7],
  ['exclusive bounds', { type: 'integer', exclusiveMinimum: 4 }, 5],
  ['an upper bound below the usual number', { type: 'number', maximum: -2 }, -2],
  ['lengths of texts', { type: 'string', minLength: 14, maxLength: 20 }, 'sample value..'],
  ['formats', { type: 'string', format: 'date' }, '2026-01-15'],
  ['the first alternative', { anyOf: [{ type: 'integer' }, { type: 'string' }] }, 1],
  [
    'all parts together',
    {
      allOf: [
        { type: 'object', properties: { a: { const: 1 } }, required: ['a'] },
        { properties: { b: { const: 2 } }, required: ['b'] },
      ],
    },
    { a: 1, b: 2 },
  ],
  [
    'references',
    {
      type: 'object',
      properties: { a: { $ref: '#/$defs/thing~1one' } },
      required: ['a'],
      $defs: { 'thing/one': { const: 3 } },
    },
    { a: 3 },
  ],
])('fits %s', (_, schema, expected) => {
  expect(sampleValue(schema)).toEqual(expected)
})

test('comes to an end with a schema that contains itself', () => {
  const value = sampleValue({ type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] })

  expect(JSON.stringify(value)).toMatch(/^(\{"next":)+null\}+$/)
})
