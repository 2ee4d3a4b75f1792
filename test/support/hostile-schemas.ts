/** Schema that makes a translation do far more work than its size suggests, and a name for test titles. */
export interface HostileSchema {
  readonly name: string
  readonly schema: Record<string, unknown>
}

type Schema = Record<string, unknown>

function named(count: number, value: (index: number) => unknown = () => ({ type: 'string' })): Schema {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`member_${index}`, value(index)]))
}

function list<Value>(count: number, value: (index: number) => Value): Value[] {
  return Array.from({ length: count }, (_, index) => value(index))
}

function nested(levels: number, inner: Schema, around: (inner: Schema) => Schema): Schema {
  return levels === 0 ? inner : around(nested(levels - 1, inner, around))
}

/**
 * Creates schemas of about `kilobytes` kB each: deep, wide, repeated by reference, circular, and products of combinations. All of them
 * respect the gateway's bounds on depth, values and members of a body.
 */
export function hostileSchemas(kilobytes: number): HostileSchema[] {
  const many = Math.min(kilobytes * 20, 45_000)
  const names = list(many, (index) => `member_${index}`)
  const object = { type: 'object', properties: named(many), required: names }
  const alternatives = list(Math.min(many, 4_000), (index) => ({ required: [`member_${index}`] }))
  const half = Math.min(many, 20_000)
  const text = 'x'.repeat(kilobytes * 500)
  const reference = { $ref: '#/$defs/big' }
  const repeated = (big: unknown): Schema => ({
    type: 'object',
    properties: named(400, () => reference),
    $defs: { big },
  })
  const doubling = Object.fromEntries(
    list(40, (index) => [`level_${index}`, { type: 'object', properties: { a: next(index), b: next(index) } }]),
  )
  return [
    { name: 'wide object under anyOf', schema: { ...object, anyOf: alternatives } },
    { name: 'wide object under oneOf', schema: { ...object, oneOf: alternatives } },
    { name: 'wide object under allOf', schema: { ...object, allOf: alternatives } },
    { name: 'many alternatives that require much', schema: { ...tall(half), anyOf: list(40, () => tall(half / 40)) } },
    { name: 'values under anyOf', schema: { enum: names, anyOf: list(2_000, () => ({ type: 'string' })) } },
    { name: 'a product of anyOf', schema: { type: 'object', ...product(12, kilobytes) } },
    {
      name: 'a product of allOf and oneOf',
      schema: nested(9, { ...object }, (inner) => ({ allOf: [inner, { oneOf: [{ title: 'a' }, { title: 'b' }] }] })),
    },
    {
      name: 'anyOf at every level',
      schema: nested(20, { ...object }, (inner) => ({
        anyOf: [{ type: 'object', properties: { inner } }, { title: 'b' }],
      })),
    },
    {
      name: 'typed anyOf at every level',
      schema: nested(28, { ...object }, (inner) => ({ type: 'object', anyOf: [inner] })),
    },
    {
      name: 'untyped anyOf at every level',
      schema: nested(14, { anyOf: list(half, () => ({ title: 'a' })) }, (inner) => ({
        type: 'object',
        anyOf: [{ anyOf: [inner] }],
      })),
    },
    {
      name: 'a list of types over many branches',
      schema: { type: list(half, () => 'string'), anyOf: list(half, () => ({})) },
    },
    { name: 'a long type over many branches', schema: { type: text, anyOf: list(half, () => ({})) } },
    { name: 'a repeated wide object', schema: repeated(object) },
    { name: 'a repeated list of values', schema: repeated({ type: 'string', enum: names }) },
    { name: 'a repeated description', schema: repeated({ type: 'string', description: text }) },
    { name: 'a repeated default', schema: repeated({ type: 'object', default: named(many), examples: [names] }) },
    { name: 'a repeated long name', schema: repeated({ type: 'object', properties: { [text]: { type: 'string' } } }) },
    { name: 'repeated parts', schema: { ...repeated(object), allOf: list(2_000, () => reference) } },
    { name: 'references that double', schema: { ...doubling['level_0'], $defs: doubling } },
    {
      name: 'circular references',
      schema: {
        type: 'object',
        properties: named(many, (index) => ({ $ref: `#/properties/member_${(index * 7) % many}` })),
      },
    },
    { name: 'references to the root', schema: { ...object, allOf: list(2_000, () => ({ $ref: '#' })) } },
    {
      name: 'distinct references in allOf',
      schema: {
        type: 'object',
        allOf: list(half, (index) => ({ $ref: `#/$defs/member_${index}` })),
        $defs: named(half),
      },
    },
    { name: 'a long reference', schema: { allOf: list(100, () => ({ $ref: `#${'/a'.repeat(kilobytes * 5)}` })) } },
    { name: 'a long chain of references', schema: { ...chain(half) } },
  ]
}

function next(index: number): Schema {
  return { $ref: `#/$defs/level_${index + 1}` }
}

function tall(count: number): Schema {
  return { type: 'object', properties: named(count), required: list(count, (index) => `member_${index}`) }
}

function product(levels: number, kilobytes: number): Schema {
  const branches = ['a', 'b', 'c'].map((name) => ({ properties: named(kilobytes, () => ({ const: name })) }))
  return levels === 0
    ? {}
    : { anyOf: branches.map((branch) => ({ ...branch })), allOf: [product(levels - 1, kilobytes)] }
}

function chain(count: number): Schema {
  const $defs = named(count, (index) => ({ $ref: `#/$defs/member_${index + 1}`, [`keyword_${index}`]: index }))
  return { type: 'object', properties: named(100, (index) => ({ $ref: `#/$defs/member_${index * 30}` })), $defs }
}
