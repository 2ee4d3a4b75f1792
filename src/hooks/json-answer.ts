// See docs/decisions/0013-json-answers.md.

import { type Context, createContext, Script } from 'node:vm'
import { isJsonObject } from '../core/json.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { TextPart } from '../endpoints/texts.ts'
import type { AnswerResult, EndpointId, Hook, HookAnswer } from './hook.ts'

/** Treatment of answers that should match a JSON schema. */
export interface JsonAnswerOptions<Id extends EndpointId = EndpointId> {
  /** `syntax`: code fences and syntax faults are repaired (default). `none`: answers are only checked. */
  readonly repair?: 'none' | 'syntax'
  /** `mark`: the caller gets the answer with `x-signalbox-schema: invalid` (default). `error`: 502 `answer_invalid`. */
  readonly invalid?: 'mark' | 'error'
  /** Ids of the covered endpoints. Default: all whose requests may specify a schema. */
  readonly endpoints?: readonly Id[]
  /** Name of the hook in events. Default `json-answer`. */
  readonly name?: string
}

const JSON_ANSWER_OPTIONS = memberNames<JsonAnswerOptions>()('repair invalid endpoints name')

/** Loaded packages. Only gateways with this hook need them. */
let loading: Promise<JsonTools> | undefined

function loadedTools(): Promise<JsonTools> {
  loading ??= loadTools().catch((error: unknown) => {
    loading = undefined
    throw error
  })
  return loading
}

async function loadTools(): Promise<JsonTools> {
  const [{ Validator }, { jsonrepair }] = await Promise.all([
    optionalPackage<typeof import('@cfworker/json-schema')>('@cfworker/json-schema'),
    optionalPackage<typeof import('jsonrepair')>('jsonrepair'),
  ])
  return {
    matches: (schema, value) => new Validator(schema, '2020-12').validate(value).valid,
    repaired: jsonrepair,
  }
}

const NOT_FOUND: ReadonlySet<string | undefined> = new Set(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'])

/**
 * Loads an optional peer of the package.
 * @throws Error with the installation command if it is not installed.
 */
export async function optionalPackage<Module>(name: string): Promise<Module> {
  try {
    // A variable and comments, so that bundlers leave this import of an optional package to Node.
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as Module
  } catch (cause) {
    if (!NOT_FOUND.has((cause as NodeJS.ErrnoException).code)) throw cause
    const command = 'npm install @cfworker/json-schema jsonrepair'
    throw new Error(`jsonAnswer: needs the package ${name}; install it next to signalbox (${command})`, { cause })
  }
}

/**
 * Creates a hook that checks answers against the JSON schema of their requests, for vendors that do not enforce it, and repairs
 * their syntax. Headers report the result: `x-signalbox-repaired: syntax`, `x-signalbox-schema: invalid` or `unchecked`. Holds
 * streams of such requests back to their end, and ignores answers with tool calls. Needs the packages `@cfworker/json-schema` and
 * `jsonrepair`; without them `createGateway` logs an error, and such answers fail.
 * @throws TypeError with the unknown or unusable member.
 */
export function jsonAnswer<Id extends EndpointId = EndpointId>(options: JsonAnswerOptions<Id> = {}): Hook<Id> {
  checkMembers(options, JSON_ANSWER_OPTIONS, 'jsonAnswer')
  const { name = 'json-answer', endpoints, repair = 'syntax', invalid = 'mark' } = options
  if (repair !== 'none' && repair !== 'syntax') throw new TypeError('jsonAnswer: repair must be none or syntax')
  if (invalid !== 'mark' && invalid !== 'error') throw new TypeError('jsonAnswer: invalid must be mark or error')
  const hook: Hook = {
    name,
    ...(endpoints && { endpoints }),
    appliesTo: ({ jsonSchema }) => jsonSchema !== undefined,
    start({ logger }) {
      loadedTools().catch((error: unknown) => logger.error('answers cannot be checked', { hook: name, error }))
    },
    async answer(answer): Promise<AnswerResult | undefined> {
      const parts = checkedParts(answer)
      if (parts.length === 0) return undefined
      const check = new JsonCheck(await loadedTools())
      const checked = parts.map(({ text }) => check.of(text, answer.jsonSchema, repair !== 'none'))
      if (invalid === 'error' && checked.some(({ state }) => state === 'invalid')) return { deny: UNUSABLE }
      return withRepairs(parts, checked)
    },
  }
  return hook as unknown as Hook<Id>
}

/** Returns the repaired texts, and headers with the state of all texts. */
function withRepairs(parts: readonly TextPart[], checked: readonly CheckedJson[]): AnswerResult | undefined {
  const texts = new Map<string, string>()
  let state: CheckedJson['state'] = 'valid'
  for (const [index, found] of checked.entries()) {
    if (found.state === 'invalid' || (found.state === 'unchecked' && state === 'valid')) state = found.state
    if (found.text !== undefined) texts.set(parts[index]!.id, found.text)
  }
  const headers: Record<string, string> = {}
  if (texts.size > 0) headers['x-signalbox-repaired'] = 'syntax'
  if (state !== 'valid') headers['x-signalbox-schema'] = state
  return Object.keys(headers).length === 0 ? undefined : { ...(texts.size > 0 && { texts }), headers }
}

const UNUSABLE = {
  as: 'error',
  status: 502,
  code: 'answer_invalid',
  message: 'The model did not answer with JSON that matches the schema.',
} as const

/** Texts that are not the answer itself: a refusal, and sources of the answer. */
const NON_ANSWER_TEXT_ID = /^(?:citations|search_results|related_questions)\[|\.(?:refusal$|annotations\[)/

/**
 * Returns the texts of the answer: no reasoning, refusal or title of a source, and none next to a tool call, which precedes the
 * answer.
 */
function checkedParts(answer: HookAnswer): readonly TextPart[] {
  const parts = answer.texts()
  if (parts.some(({ kind }) => kind === 'tool_arguments')) return []
  return parts.filter(({ kind, id }) => kind === 'text' && !NON_ANSWER_TEXT_ID.test(id))
}

/** Tools of a check; both are pure. */
export interface JsonTools {
  /** Returns whether a value matches. Throws for an unusable schema. */
  matches(schema: JsonSchema, value: unknown): boolean
  /** Returns the JSON of a text that is nearly JSON. Throws if the text is not. */
  repaired(text: string): string
}

/** Result of checking a text. */
interface CheckedJson {
  /** State of the text. `unchecked`: its schema cannot be used, or checking it would take too long. */
  readonly state: 'valid' | 'invalid' | 'unchecked'
  /** Repaired text, or `undefined` if the text stays unchanged. */
  readonly text: string | undefined
}

type JsonSchema = Record<string, unknown>

const NO_JSON: CheckedJson = { state: 'invalid', text: undefined }

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
    if (value !== undefined) return { state: this.#stateOf(value.json, schema, text.length), text: undefined }
    const mended = mends && text.length <= MAX_REPAIRED_CHARACTERS ? this.#mended(text) : undefined
    if (mended === undefined) return NO_JSON
    const state = this.#stateOf(mended.json, schema, text.length)
    // A repaired text that still does not match is discarded; the model's text stays.
    return { state, text: state === 'invalid' ? undefined : mended.text }
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

  #stateOf(value: unknown, schema: unknown, length: number): CheckedJson['state'] {
    if (typeof schema === 'boolean') return schema ? 'valid' : 'invalid'
    if (!isJsonObject(schema)) return 'unchecked'
    try {
      const bounded = new BoundedSchema(length <= MAX_DEAR_CHARACTERS)
      const isMatch = this.#limited(length, () => this.#tools.matches(bounded.copyOf(schema) as JsonSchema, value))
      return isMatch ? 'valid' : 'invalid'
    } catch {
      // An unknown reference, infinite recursion, or too much work or time: a fault of the caller's schema, not of the model's answer.
      return 'unchecked'
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

const box: { run?: (() => unknown) | undefined } = {}
let prepared: { readonly script: Script; readonly context: Context } | undefined

/** Limit of processor time for synchronous functions that cannot count their own work. Several functions can share it. */
class ProcessorLimit {
  #leftMs: number

  constructor(limitMs: number) {
    this.#leftMs = limitMs
  }

  /**
   * Runs a function, and stops it when the time is used up.
   * @param run Pure function, because it may be stopped at any point and started again.
   * @throws Error if no time is left, and the exceptions of the function.
   */
  run<Result>(run: () => Result): Result {
    prepared ??= { script: new Script('run()'), context: createContext(box) }
    const startedAt = process.cpuUsage()
    const limitMs = this.#leftMs
    while (this.#leftMs >= 1) {
      box.run = run
      try {
        return prepared.script.runInContext(prepared.context, { timeout: Math.ceil(limitMs) }) as Result
      } catch (error) {
        // The timer includes other processes, so on a busy machine the function restarts until it has used its own time.
        if (!isTimeout(error)) throw error
      } finally {
        box.run = undefined
        const { user, system } = process.cpuUsage(startedAt)
        this.#leftMs = limitMs - (user + system) / 1_000
      }
    }
    throw new RangeError('the processor time is used up')
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}
