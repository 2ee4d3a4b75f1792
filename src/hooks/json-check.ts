import { isJsonObject } from '../core/json.ts'
import { ProcessorLimit } from './processor-limit.ts'

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

/** Above this length, formats and unique items are not checked, and repairs and checks have a time limit. */
const MAX_DEAR_CHARACTERS = 1_024

/** Steps of one check: a visit of a schema counts its members and their entries, each time. */
const MAX_STEPS = 100_000

const FENCED = /^\s*```[a-zA-Z]*[ \t]*\r?\n([\s\S]*?)\r?\n?```\s*$/

/** Processor time for repairing and checking all texts of one answer, in milliseconds. Texts and schemas come from models and callers. */
const MAX_CHECK_MS = 50

/** Checks the texts of one answer against schemas that callers wrote, in bounded time. */
export class JsonCheck {
  readonly #tools: JsonTools
  readonly #limit = new ProcessorLimit(MAX_CHECK_MS)
  #untimedLeft = MAX_DEAR_CHARACTERS

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
      return this.#limited(text.length, () => {
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

  /** Work on short texts is bounded by their length and by the steps, so a busy machine cannot change its result. */
  #limited<Result>(length: number, step: () => Result): Result {
    this.#untimedLeft -= length
    return this.#untimedLeft >= 0 ? step() : this.#limit.run(step)
  }

  #verdictOn(value: unknown, schema: unknown, length: number): Verdict {
    if (typeof schema === 'boolean') return schema ? VALID : { state: 'invalid', fault: 'the schema allows nothing' }
    if (!isJsonObject(schema)) return UNCHECKED
    try {
      const bounded = new BoundedSchema(length <= MAX_DEAR_CHARACTERS)
      const faults = this.#limited(length, () => this.#tools.faults(bounded.copyOf(schema) as JsonSchema, value))
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

function entriesOf(value: unknown): number {
  if (Array.isArray(value)) return value.length
  return isJsonObject(value) ? Object.keys(value).length : 0
}

const SCHEMAS: ReadonlySet<string> = new Set([
  ...['additionalItems', 'unevaluatedItems', 'items', 'contains', 'additionalProperties', 'unevaluatedProperties'],
  ...['propertyNames', 'not', 'if', 'then', 'else', 'prefixItems', 'allOf', 'anyOf', 'oneOf'],
])
const MAPS_OF_SCHEMAS: ReadonlySet<string> = new Set(['$defs', 'definitions', 'properties', 'dependentSchemas'])

/**
 * A copy of a schema that allows a limited number of steps. Its patterns are left out: an expression that a caller wrote can stop the
 * process with a text of thirty characters.
 */
class BoundedSchema {
  readonly #checksDear: boolean
  #steps = 0

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
    const steps = Object.values(copy).reduce((sum: number, value) => sum + 1 + entriesOf(value), 1)
    // The validator reads it at each visit.
    Object.defineProperty(copy, '$ref', { enumerable: true, get: () => this.#visited(steps, schema['$ref']) })
    return copy
  }

  #visited(steps: number, reference: unknown): unknown {
    this.#steps += steps
    if (this.#steps > MAX_STEPS) throw new RangeError('checking this schema takes too long')
    return reference
  }
}
