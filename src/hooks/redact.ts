import { Buffer } from 'node:buffer'
import { createContext, Script } from 'node:vm'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { TextKind, TextPart } from '../endpoints/texts.ts'
import { closingQuote } from '../wire/json-cursor.ts'
import type { EndpointId, Hook, TextVerdict, TextWindow } from './hook.ts'
import { TEXT_KINDS } from './hook-table.ts'
import { QUIET_TEXTS, type QuietTextHook, quietTexts } from './quiet-texts.ts'
import { LINEAR_PATTERNS, type RedactionRule } from './redaction-rules.ts'

/** Where and how texts are redacted. */
export interface RedactionOptions<Id extends EndpointId = EndpointId> {
  /** Said in events. Default `redact`. */
  readonly name?: string
  /** Default: all whose texts can be read. */
  readonly endpoints?: readonly Id[]
  /** Default: requests and answers. */
  readonly on?: readonly ('request' | 'answer')[]
  /** Default: all kinds. Reasoning that is changed can no longer be sent back to a vendor that signs it. */
  readonly kinds?: readonly TextKind[]
}

const REDACTION_OPTIONS = {
  name: true,
  endpoints: true,
  on: true,
  kinds: true,
} satisfies MemberNames<RedactionOptions>

/** A rule, ready to search with. */
interface CompiledRule {
  readonly rule: RedactionRule
  readonly pattern: RegExp | undefined
  readonly mark: string
  /** By character code below 128: may a match contain it? */
  readonly within: Uint8Array | undefined
}

/** A match of a rule. */
interface Found {
  readonly start: number
  readonly end: number
  readonly mark: string
}

const ALL_POINTS = ['request', 'answer'] as const

/**
 * A hook that takes out what its rules find, in requests before a vendor reads them and in answers before their callers do. A value
 * that a stream cuts into pieces is found too: the end of the text stays behind as long as a match may begin in it. Arguments of
 * tool calls are read as the JSON that they are, when they are whole.
 * @throws TypeError for a rule or an option that cannot be used and an unknown member, naming it.
 */
export function redact<Id extends EndpointId = EndpointId>(
  rules: readonly RedactionRule[],
  options: RedactionOptions<Id> = {},
): Hook<Id> {
  checkMembers(options, REDACTION_OPTIONS, 'redact')
  const { name = 'redact', endpoints, on = ALL_POINTS, kinds } = options
  checkList('on', on, ALL_POINTS)
  if (kinds !== undefined) checkList('kinds', kinds, TEXT_KINDS)
  const redactor = new Redactor(rules)
  const takes = (kind: TextKind): boolean => kinds?.includes(kind) !== false
  const changed = (parts: readonly TextPart[]): { texts: ReadonlyMap<string, string> } | undefined => {
    const read = parts.filter(({ kind }) => takes(kind))
    const redacted = redactor.all(read)
    const texts = new Map(redacted.flatMap((text, at) => (text === read[at]!.text ? [] : [[read[at]!.id, text]])))
    return texts.size === 0 ? undefined : { texts }
  }
  const text: QuietTextHook = {
    holdBack: { chars: redactor.maxLength },
    // Nobody can use half of the arguments, and what an escape is depends on what comes before it.
    holdAll: ['tool_arguments'],
    [QUIET_TEXTS]: quietTexts(rules, takes),
    check: (window: TextWindow) =>
      takes(window.kind) ? redactor.window(window) : { replace: window.held + window.fresh },
  }
  const hook: Hook = {
    name,
    ...(endpoints && { endpoints }),
    version: [
      ...rules.map(({ name: mark, pattern, find }) => `${mark}=${pattern ?? String(find)}`),
      kinds?.join() ?? '',
    ].join('\n'),
    ...(on.includes('request') && { request: (call) => changed(call.texts()) }),
    ...(on.includes('answer') && { answer: (answer) => changed(answer.texts()), text }),
  }
  return hook as unknown as Hook<Id>
}

/** @throws TypeError for what would redact nothing: no entry, or one that there is not. */
function checkList(member: string, list: readonly string[], known: readonly string[]): void {
  if (!Array.isArray(list) || list.length === 0 || !list.every((entry) => known.includes(entry)))
    throw new TypeError(`redact: ${member} must be a list of ${known.join(', ')}`)
}

/** Finds and replaces by rules. */
export class Redactor {
  readonly maxLength: number
  readonly #rules: readonly CompiledRule[]
  readonly #limit: TimeLimit | undefined

  constructor(rules: readonly RedactionRule[]) {
    if (!Array.isArray(rules) || rules.length === 0) throw new TypeError('redact: give at least one rule')
    this.#rules = rules.map(compiled)
    this.maxLength = Math.max(...rules.map(({ maxLength }) => maxLength))
    const isLinear = rules.every(({ pattern }) => pattern === undefined || LINEAR_PATTERNS.has(pattern))
    if (!isLinear) this.#limit = new TimeLimit()
  }

  /**
   * Returns the texts without what the rules find, in the same order.
   * @throws Error if patterns of the host exceed their time.
   */
  all(parts: readonly Pick<TextPart, 'text' | 'kind'>[]): readonly string[] {
    const redacted = (): readonly string[] => parts.map(({ text, kind }) => this.#whole(text, kind))
    if (this.#limit === undefined) return redacted()
    return this.#limit.run(
      parts.reduce((sum, { text }) => sum + text.length, 0),
      redacted,
    )
  }

  /** @throws Error if patterns of the host exceed their time. */
  window(window: TextWindow): TextVerdict {
    const { before, held, fresh } = window
    if (this.#limit === undefined) return this.#verdict(window)
    return this.#limit.run(before.length + held.length + fresh.length, () => this.#verdict(window))
  }

  #whole(text: string, kind: TextKind): string {
    return kind === 'tool_arguments' ? this.#json(text) : this.#replaced(text, this.#find(text, 0), 0, text.length)
  }

  #verdict({ kind, before, held, fresh, isLast }: TextWindow): TextVerdict {
    const text = held + fresh
    if (kind === 'tool_arguments') return { replace: this.#json(text) }
    const all = before + text
    const found = this.#find(all, before.length)
    const end = isLast ? all.length : this.#safeEnd(all, before.length, found)
    return { replace: this.#replaced(all, found, before.length, end), hold: all.slice(end) }
  }

  /** Where a match may begin that is not over yet. */
  #safeEnd(text: string, from: number, found: readonly Found[]): number {
    let end = text.length
    for (const { rule, within } of this.#rules) {
      const least = Math.max(from, text.length - rule.maxLength)
      let start = text.length
      if (within === undefined) start = least
      else while (start > least && isWithin(rule, within, text.charCodeAt(start - 1))) start -= 1
      if (start < end) end = start
    }
    for (let index = found.length - 1; index >= 0; index--) {
      const match = found[index]!
      if (match.start < end && match.end > end) end = match.start
    }
    return end
  }

  /** Matches that begin at `from` or later, in order, without overlaps: the earlier one counts, then the longer one. */
  #find(text: string, from: number): readonly Found[] {
    let found: Found[] | undefined
    for (const { rule, pattern, mark } of this.#rules) {
      for (const [start, end] of rule.find?.(text) ?? []) {
        if (start < from) continue
        found ??= []
        found.push({ start, end, mark })
      }
      if (pattern === undefined || (rule.needs !== undefined && !text.includes(rule.needs))) continue
      pattern.lastIndex = 0
      for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
        const length = rule.accept === undefined ? match[0].length : rule.accept(match[0])
        if (match[0] === '') pattern.lastIndex += 1
        else if (length < match[0].length) pattern.lastIndex = match.index + Math.max(1, length)
        if (length === 0 || match.index < from) continue
        found ??= []
        found.push({ start: match.index, end: match.index + length, mark })
      }
    }
    if (found === undefined) return NOTHING
    found.sort((one, other) => one.start - other.start || other.end - one.end)
    let end = 0
    return found.filter((match) => {
      if (match.start < end) return false
      end = match.end
      return true
    })
  }

  #replaced(text: string, found: readonly Found[], from: number, to: number): string {
    if (found.length === 0) return text.slice(from, to)
    let replaced = ''
    let read = from
    for (const { start, end, mark } of found) {
      if (end > to) break
      replaced += text.slice(read, start) + mark
      read = end
    }
    return replaced + text.slice(read, to)
  }

  /** JSON stays JSON: its texts are redacted one by one, and a number that is one of a kind becomes a text. The rest is not touched. */
  #json(text: string): string {
    try {
      JSON.parse(text)
    } catch {
      return this.#replaced(text, this.#find(text, 0), 0, text.length)
    }
    const bytes = Buffer.from(text)
    let redacted = ''
    let copied = 0
    for (const { start, end } of valuesOf(bytes)) {
      const value = bytes.toString('utf8', start, end)
      const read = bytes[start] === QUOTE ? (JSON.parse(value) as string) : value
      const other = this.#whole(read, 'text')
      if (other === read) continue
      redacted += bytes.toString('utf8', copied, start) + JSON.stringify(other)
      copied = end
    }
    return copied === 0 ? text : redacted + bytes.toString('utf8', copied)
  }
}

const QUOTE = 0x22
const MINUS = 0x2d

/** Where texts, names and numbers stand in JSON. A number is read as it stands: it may have more digits than JavaScript keeps. */
function* valuesOf(json: Buffer): Iterable<{ readonly start: number; readonly end: number }> {
  for (let start = 0; start < json.length; start++) {
    const isText = json[start] === QUOTE
    if (!isText && json[start] !== MINUS && !isDigit(json[start])) continue
    let end = isText ? closingQuote(json, start, json.length) + 1 : start + 1
    if (!isText) while (isOfNumber(json[end])) end += 1
    yield { start, end }
    start = end - 1
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}

/** Digits, and `.`, `e`, `E`, `+` and `-`. */
function isOfNumber(byte: number | undefined): boolean {
  return isDigit(byte) || byte === 0x2e || byte === 0x65 || byte === 0x45 || byte === 0x2b || byte === MINUS
}

const NOTHING: readonly Found[] = []

function isWithin({ within }: RedactionRule, table: Uint8Array, code: number): boolean {
  if (code < 128) return table[code] === 1
  // Half of a pair may belong to a letter.
  return (code >= 0xd800 && code <= 0xdfff) || within?.test(String.fromCharCode(code)) === true
}

function compiled(rule: RedactionRule): CompiledRule {
  // A name of a rule that there is not, such as `pii.mail`, is undefined where no compiler says so.
  if (typeof rule !== 'object' || rule === null)
    throw new TypeError('redact: every rule must be an object, such as pii.email')
  const { name, pattern, find, maxLength, within, containsOneOf } = rule
  if (typeof name !== 'string' || name === '') throw new TypeError('redact: every rule needs a name')
  if (pattern instanceof RegExp === (typeof find === 'function'))
    throw new TypeError(
      `redact: the rule ${name} needs a pattern, a regular expression, or find, a function, and not both`,
    )
  if (!(Number.isSafeInteger(maxLength) && maxLength > 0))
    throw new TypeError(`redact: the rule ${name} needs maxLength, a whole number of characters`)
  for (const [member, characters] of Object.entries({ within, containsOneOf }))
    if (characters !== undefined && (characters.global || characters.sticky))
      throw new TypeError(`redact: ${member} of the rule ${name} must not have the flags g and y`)
  const flags = `${pattern?.flags.replace(/[gy]/g, '')}g`
  const table =
    within && Uint8Array.from({ length: 128 }, (_, code) => (within.test(String.fromCharCode(code)) ? 1 : 0))
  const search = pattern && new RegExp(pattern.source, flags)
  return { rule, pattern: search, mark: `[${name.toUpperCase()}]`, within: table }
}

const MAX_PATTERN_MS = 100
const CHARACTERS_PER_MS = 20_000

/** Ends a search for which an expression of the host takes too long. Nothing else can interrupt an expression. */
class TimeLimit {
  readonly #held: { work: (() => unknown) | undefined } = { work: undefined }
  readonly #context = createContext(this.#held)
  readonly #script = new Script('work()')

  /** @throws Error if `work` takes longer than texts of so many characters may. */
  run<Result>(characters: number, work: () => Result): Result {
    const timeout = MAX_PATTERN_MS + Math.ceil(characters / CHARACTERS_PER_MS)
    this.#held.work = work
    try {
      return this.#script.runInContext(this.#context, { timeout }) as Result
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw cause
      throw new Error(`redact: the patterns took longer than ${timeout} ms. Simplify them, or use find`, { cause })
    } finally {
      this.#held.work = undefined
    }
  }
}
