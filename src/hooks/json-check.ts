import { isJsonObject } from '../core/json.ts'
import { ProcessorLimit } from './processor-limit.ts'

/** Tools of a check; both are pure. */
export interface JsonTools {
  /** Returns the places where a value does not match, with reasons; empty if it matches. Throws for an unusable schema. */
  faults(schema: JsonSchema, value: unknown): readonly string[]
  /** Returns the JSON of a text that is nearly JSON. Throws if the text is not. */
  repaired(text: string): string
}

/** Result of checking a text. */
export interface CheckedJson {
  /** State of the text. `unchecked`: its schema cannot be used, or checking it would take too long. */
  readonly state: 'valid' | 'invalid' | 'unchecked'
  /** Repaired text, or `undefined` if the text stays unchanged. */
  readonly text: string | undefined
  /** Short description of the fault in an invalid text, otherwise undefined. */
  readonly fault: string | undefined
}

type JsonSchema = Record<string, unknown>

/** Result of checking a value. */
type Verdict = Pick<CheckedJson, 'state' | 'fault'>

const VALID: Verdict = { state: 'valid', fault: undefined }
const UNCHECKED: Verdict = { state: 'unchecked', fault: undefined }
const NO_JSON: CheckedJson = { state: 'invalid', text: undefined, fault: 'it is not JSON' }

/** Maximum number of reported faults. The first ones name the place, the last ones the reason. */
const MOST_FAULTS = 4

/** Maximum length of a text that is repaired. */
const MAX_REPAIRED_CHARACTERS = 256 * 1024

/** Length above which formats and unique items are not checked, and repairs and checks have a time limit. */
const MAX_DEAR_CHARACTERS = 1_024

/** Maximum number of steps per check. A visit of a schema counts its members and their entries, each time. */
const MAX_STEPS = 100_000

const FENCED = /^\s*```[a-zA-Z]*[ \t]*\r?\n([\s\S]*?)\r?\n?```\s*$/

/** Processor time for repairing and checking all texts of one answer, in milliseconds. Texts and schemas come from models and callers. */
const MAX_CHECK_MS = 50

/** Checks the texts of one answer against schemas of callers, in limited time. */
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
    // A repaired text that still does not match is discarded; the model's text stays.
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
      // Not repairable, or not in time.
      return undefined
    }
  }

  /** The length of short texts and the steps limit the work, so a busy machine cannot change its result. */
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
      // An unknown reference, infinite recursion, or too much work or time: a fault of the caller's schema, not of the model's answer.
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
 * Copies a schema so that it allows a limited number of steps. Drops its patterns: a caller's regular expression can block the
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
      // Without patterns, the members that they allow would count as forbidden.
      const isOfPatterns = name === 'additionalProperties' || name === 'unevaluatedProperties'
      if (isOfPatterns && schema['patternProperties'] !== undefined) continue
      if (MAPS_OF_SCHEMAS.has(name) && isJsonObject(value))
        copy[name] = Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, this.copyOf(entry)]))
      else copy[name] = SCHEMAS.has(name) ? this.copyOf(value) : value
    }
    const steps = Object.values(copy).reduce((sum: number, value) => sum + 1 + entriesOf(value), 1)
    // The validator reads it at each visit, which counts the steps.
    Object.defineProperty(copy, '$ref', { enumerable: true, get: () => this.#visited(steps, schema['$ref']) })
    return copy
  }

  #visited(steps: number, reference: unknown): unknown {
    this.#steps += steps
    if (this.#steps > MAX_STEPS) throw new RangeError('checking this schema takes too long')
    return reference
  }
}
