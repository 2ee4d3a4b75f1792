import { isJsonObject } from '../core/json.ts'
import { withTimeLimit } from './time-limit.ts'

/** The tools of a check; both are pure. */
export interface JsonTools {
  /** Where a value does not match, and why; empty: it does. Throws for a schema that cannot be used. */
  faults(schema: JsonSchema, value: unknown): readonly string[]
  /** JSON in place of a text that is nearly JSON. Throws where it is not. */
  repaired(text: string): string
}

/** What a text is worth. */
export interface CheckedJson {
  /** `unchecked`: its schema cannot be used, or checking it would take too long. */
  readonly state: 'valid' | 'invalid' | 'unchecked'
  /** The mended text; undefined: it stays. */
  readonly text: string | undefined
  /** What is wrong with an invalid text, in a few words; else undefined. */
  readonly fault: string | undefined
}

type JsonSchema = Record<string, unknown>

/** What a value is worth. */
type Verdict = Pick<CheckedJson, 'state' | 'fault'>

const VALID: Verdict = { state: 'valid', fault: undefined }
const UNCHECKED: Verdict = { state: 'unchecked', fault: undefined }
const NO_JSON: CheckedJson = { state: 'invalid', text: undefined, fault: 'it is not JSON' }

/** Most faults that are told; the first ones name the place, the last ones the reason. */
const MOST_FAULTS = 4

/** Longest text that is mended. */
const MAX_REPAIRED_CHARACTERS = 256 * 1024

/** Above this length what takes more than one look at a text is not checked: formats, and whether items are unique. */
const MAX_DEAR_CHARACTERS = 1_024

/** Parts of a schema that one check may visit, all repetitions counted: about a tenth of a second. */
const MAX_VISITS = 100_000

const FENCED = /^\s*```[a-zA-Z]*[ \t]*\r?\n([\s\S]*?)\r?\n?```\s*$/

/** Time for repairing and checking all texts of one answer, in milliseconds. Texts and schemas come from models and callers. */
const MAX_CHECK_MS = 50

/** Checks the texts of one answer against schemas that callers wrote, in bounded time. */
export class JsonCheck {
  readonly #tools: JsonTools
  #msLeft = MAX_CHECK_MS

  constructor(tools: JsonTools) {
    this.#tools = tools
  }

  of(text: string, schema: unknown, mends: boolean): CheckedJson {
    const value = parsed(text)
    if (value !== undefined) return { ...this.#verdictOn(value.json, schema, text.length), text: undefined }
    const mended = mends && text.length <= MAX_REPAIRED_CHARACTERS ? this.#mended(text) : undefined
    if (mended === undefined) return NO_JSON
    const verdict = this.#verdictOn(mended.json, schema, text.length)
    // What does not match all the same is left as the model wrote it.
    return { ...verdict, text: verdict.state === 'invalid' ? undefined : mended.text }
  }

  #mended(text: string): { readonly text: string; readonly json: unknown } | undefined {
    try {
      return this.#limited(() => {
        const bare = FENCED.exec(text)?.[1] ?? text
        const value = parsed(bare)
        if (value !== undefined) return { text: bare, json: value.json }
        const repaired = this.#tools.repaired(bare)
        return { text: repaired, json: JSON.parse(repaired) }
      })
    } catch {
      // It cannot be repaired, or not in time.
      return undefined
    }
  }

  /** Runs a step within the time that is left for the answer. Throws if it takes longer. */
  #limited<Result>(step: () => Result): Result {
    if (this.#msLeft < 1) throw new RangeError('checking this answer takes too long')
    const startedAt = performance.now()
    try {
      return withTimeLimit(Math.ceil(this.#msLeft), step)
    } finally {
      this.#msLeft -= performance.now() - startedAt
    }
  }

  #verdictOn(value: unknown, schema: unknown, length: number): Verdict {
    if (typeof schema === 'boolean') return schema ? VALID : { state: 'invalid', fault: 'the schema allows nothing' }
    if (!isJsonObject(schema)) return UNCHECKED
    try {
      const bounded = new BoundedSchema(length <= MAX_DEAR_CHARACTERS)
      const faults = this.#limited(() => this.#tools.faults(bounded.copyOf(schema) as JsonSchema, value))
      return faults.length === 0 ? VALID : { state: 'invalid', fault: faults.slice(0, MOST_FAULTS).join(' ') }
    } catch {
      // An unknown reference, recursion without end, or more work or time than is allowed: the caller's schema, not the model's answer.
      return UNCHECKED
    }
  }
}

function parsed(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const SCHEMAS: ReadonlySet<string> = new Set([
  ...['additionalItems', 'unevaluatedItems', 'items', 'contains', 'additionalProperties', 'unevaluatedProperties'],
  ...['propertyNames', 'not', 'if', 'then', 'else', 'prefixItems', 'allOf', 'anyOf', 'oneOf'],
])
const MAPS_OF_SCHEMAS: ReadonlySet<string> = new Set(['$defs', 'definitions', 'properties', 'dependentSchemas'])

/**
 * A copy of a schema that can be visited only so often. Its patterns are left out: an expression that a caller wrote can stop the
 * process with a text of thirty characters.
 */
class BoundedSchema {
  readonly #checksDear: boolean
  #visits = 0

  constructor(checksDear: boolean) {
    this.#checksDear = checksDear
  }

  copyOf(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((entry) => this.copyOf(entry))
    if (!isJsonObject(schema)) return schema
    const copy: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(schema)) {
      if (name === '$ref' || name === 'pattern' || name === 'patternProperties') continue
      if (!this.#checksDear && (name === 'format' || name === 'uniqueItems')) continue
      // What patterns allow would be taken for forbidden.
      const isOfPatterns = name === 'additionalProperties' || name === 'unevaluatedProperties'
      if (isOfPatterns && schema['patternProperties'] !== undefined) continue
      if (MAPS_OF_SCHEMAS.has(name) && isJsonObject(value))
        copy[name] = Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, this.copyOf(entry)]))
      else copy[name] = SCHEMAS.has(name) ? this.copyOf(value) : value
    }
    // The validator reads it at each visit.
    Object.defineProperty(copy, '$ref', { enumerable: true, get: () => this.#visited(schema['$ref']) })
    return copy
  }

  #visited(reference: unknown): unknown {
    this.#visits += 1
    if (this.#visits > MAX_VISITS) throw new RangeError('checking this schema takes too long')
    return reference
  }
}
