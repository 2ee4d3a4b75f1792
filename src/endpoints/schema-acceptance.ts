import type * as z from 'zod'

/** Returns whether a schema accepts a value. Changes nothing. */
export type Acceptance = (value: unknown) => boolean

const compiled = new WeakMap<z.core.$ZodType, Acceptance>()

/** Item schemas of lists whose own check validates their items; see `listOf`. */
const listItems = new WeakMap<object, z.core.$ZodType>()

/** Records that a check validates each item of a list, up to the first invalid one. */
export function checksItems(check: object, item: z.core.$ZodType): void {
  listItems.set(check, item)
}

/** Returns the item schema of a list made with `listOf`, or `undefined` for other schemas. */
export function itemOf(list: z.core.$ZodType): z.core.$ZodType | undefined {
  for (const check of list._zod.def.checks ?? []) {
    const item = listItems.get(check._zod.check)
    if (item !== undefined) return item
  }
  return undefined
}

/**
 * Returns a schema's yes or no without the copy that `safeParse` makes of every object, a tenth of the allocations of a small chat.
 * It is derived from the schema itself, so rules are written once. Unknown kinds of schemas use `safeParse`, which also reports the
 * reasons of a no.
 */
export function acceptanceOf(schema: z.core.$ZodType): Acceptance {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const acceptance = compile(schema as z.core.$ZodTypes)
  compiled.set(schema, acceptance)
  return acceptance
}

function compile(schema: z.core.$ZodTypes): Acceptance {
  const ofType = acceptanceOfType(schema)
  const schemaChecks = schema._zod.def.checks ?? []
  if (ofType === undefined || schemaChecks.some(changesValues))
    return (value) => (schema as unknown as z.ZodType).safeParse(value).success
  const checks = schemaChecks.map(acceptanceOfCheck)
  if (checks.length === 0) return ofType
  return (value) => {
    if (!ofType(value)) return false
    for (const check of checks) if (!check(value)) return false
    return true
  }
}

/** Returns `undefined` for an unknown kind of schema. */
function acceptanceOfType({ _zod: { def } }: z.core.$ZodTypes): Acceptance | undefined {
  switch (def.type) {
    case 'any':
    case 'unknown':
      return () => true
    case 'null':
      return (value) => value === null
    case 'boolean':
      return isUncoerced(def) ? (value) => typeof value === 'boolean' : undefined
    case 'string':
      return isUncoerced(def) && !('format' in def) ? (value) => typeof value === 'string' : undefined
    case 'number':
      return isUncoerced(def) ? acceptanceOfNumber(def) : undefined
    case 'enum':
      return acceptanceOfValues(Object.values(def.entries))
    case 'literal':
      return acceptanceOfValues(def.values)
    case 'optional': {
      const inner = acceptanceOf(def.innerType)
      return (value) => value === undefined || inner(value)
    }
    case 'nullable': {
      const inner = acceptanceOf(def.innerType)
      return (value) => value === null || inner(value)
    }
    case 'union':
      return acceptanceOfUnion(def)
    case 'array': {
      const item = acceptanceOf(def.element)
      return (value) => Array.isArray(value) && areAccepted(value, item)
    }
    case 'object':
      return acceptanceOfObject(def)
    default:
      return undefined
  }
}

function isUncoerced(def: { readonly coerce?: boolean }): boolean {
  return def.coerce !== true
}

function acceptanceOfNumber(def: z.core.$ZodNumberDef & { readonly format?: string }): Acceptance | undefined {
  if (def.format === undefined) return (value) => typeof value === 'number' && Number.isFinite(value)
  return def.format === 'safeint' ? Number.isSafeInteger : undefined
}

function acceptanceOfValues(values: readonly unknown[]): Acceptance {
  const accepted = new Set(values)
  return (value) => accepted.has(value)
}

function acceptanceOfUnion(def: z.core.$ZodUnionDef): Acceptance | undefined {
  // An exclusive union accepts a value that exactly one of its options accepts.
  if ('inclusive' in def && def.inclusive === false) return undefined
  const options = def.options.map(acceptanceOf)
  return (value) => {
    for (const option of options) if (option(value)) return true
    return false
  }
}

function acceptanceOfObject({ shape, catchall }: z.core.$ZodObjectDef): Acceptance | undefined {
  if (catchall !== undefined && catchall._zod.def.type !== 'unknown') return undefined
  const members = new Map(Object.entries(shape).map(([name, member]) => [name, acceptanceOf(member)]))
  // A name that all objects inherit would be read from the prototype.
  if ([...members.keys()].some((name) => name in Object.prototype)) return undefined
  const required = Object.keys(shape).filter((name) => shape[name]?._zod.optin !== 'optional')
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    const object = value as Readonly<Record<string, unknown>>
    for (const name of required) if (!(name in object)) return false
    // Requests have few of the many members of a schema.
    for (const name in object) {
      const accepts = members.get(name)
      if (accepts !== undefined && !accepts(object[name])) return false
    }
    return true
  }
}

function areAccepted(items: readonly unknown[], accepts: Acceptance): boolean {
  for (const item of items) if (!accepts(item)) return false
  return true
}

function changesValues({ _zod: { def } }: z.core.$ZodCheck<never>): boolean {
  return def.check === 'overwrite'
}

function acceptanceOfCheck(schemaCheck: z.core.$ZodCheck<never>): Acceptance {
  const check = schemaCheck as z.core.$ZodChecks
  const { def } = check._zod
  const item = listItems.get(check._zod.check)
  if (item !== undefined) {
    const accepts = acceptanceOf(item)
    return (value) => areAccepted(value as readonly unknown[], accepts)
  }
  switch (def.check) {
    case 'min_length':
      return (value) => (value as string | readonly unknown[]).length >= def.minimum
    case 'max_length':
      return (value) => (value as string | readonly unknown[]).length <= def.maximum
    case 'greater_than':
      return (value) =>
        def.inclusive ? (value as number) >= (def.value as number) : (value as number) > (def.value as number)
    case 'less_than':
      return (value) =>
        def.inclusive ? (value as number) <= (def.value as number) : (value as number) < (def.value as number)
    default:
      return acceptanceByRunning(schemaCheck)
  }
}

/** Runs any other check. Checks that change the value or are asynchronous never pass here. */
function acceptanceByRunning(check: z.core.$ZodCheck<never>): Acceptance {
  const run = check._zod.check as (payload: z.core.ParsePayload) => unknown
  const when = check._zod.def.when
  return (value) => {
    const payload: z.core.ParsePayload = { value, issues: [] }
    if (when !== undefined && !when(payload)) return true
    const later = run(payload)
    return later === undefined && payload.issues.length === 0 && payload.value === value
  }
}
