import { Buffer } from 'node:buffer'
import { createContext, Script } from 'node:vm'
import { endOfTurn } from '../core/calls-in-flight.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { TextKind, TextPart } from '../endpoints/texts.ts'
import { closingQuote } from '../wire/json-cursor.ts'
import type { EndpointId, Hook, TextHook, TextVerdict, TextWindow } from './hook.ts'
import { TEXT_KINDS } from './hook-table.ts'
import { LINEAR_PATTERNS, type RedactionRule } from './redaction-rules.ts'

/** Settings of the redaction. */
export interface RedactionOptions<Id extends EndpointId = EndpointId> {
  /** Name of the hook in events. Default `redact`. */
  readonly name?: string
  /** Ids of the covered endpoints. Default: all whose texts can be read. */
  readonly endpoints?: readonly Id[]
  /** Redacted messages. Default: requests and answers. */
  readonly on?: readonly ('request' | 'answer')[]
  /** Redacted kinds of text. Default all. Changed reasoning cannot be sent back to a vendor that signs it. */
  readonly kinds?: readonly TextKind[]
}

const REDACTION_OPTIONS = memberNames<RedactionOptions>()('name endpoints on kinds')

/** Compiled rule. */
interface CompiledRule {
  readonly rule: RedactionRule
  readonly pattern: RegExp | undefined
  readonly mark: string
  /** Whether a match may contain a character, by character code below 128. */
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
 * Creates a hook that removes the matches of its rules, in requests before a vendor reads them and in answers before their
 * callers do. It also finds a value that a stream splits: the end of the text is held back while a match may begin in it.
 * Arguments of tool calls are parsed as JSON when they are complete.
 * @throws TypeError with the unusable rule or option, or the unknown member.
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
  const changed = (parts: readonly TextPart[]): MaybePromise<ChangedTexts | undefined> => {
    const read = parts.filter(({ kind }) => takes(kind))
    const isLong = read.reduce((sum, { text }) => sum + text.length, 0) > MAX_CHARACTERS_PER_TURN
    return isLong
      ? redactor.allInTurns(read).then((texts) => differing(read, texts))
      : differing(read, redactor.all(read))
  }
  const text: QuietTextHook = {
    holdBack: { chars: redactor.maxLength },
    // Incomplete arguments are useless, and the meaning of an escape depends on the characters before it.
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

interface ChangedTexts {
  readonly texts: ReadonlyMap<string, string>
}

/** Returns the changed texts by their ids, or `undefined` if there are none. */
function differing(parts: readonly TextPart[], redacted: readonly string[]): ChangedTexts | undefined {
  const texts = new Map(redacted.flatMap((text, at) => (text === parts[at]!.text ? [] : [[parts[at]!.id, text]])))
  return texts.size === 0 ? undefined : { texts }
}

/** Number of characters searched in one turn of the event loop. */
const MAX_CHARACTERS_PER_TURN = 256 * 1024

/** Number of characters in which no pattern can search for long. Measuring the time takes longer than searching them. */
const MAX_UNWATCHED_CHARACTERS = 12

/** Number of characters before a window that a rule may read. */
const LOOKBEHIND_CHARACTERS = 64

/** @throws TypeError for a list that would redact nothing: an empty one, or one with an unknown entry. */
function checkList(member: string, list: readonly string[], known: readonly string[]): void {
  if (!Array.isArray(list) || list.length === 0 || !list.every((entry) => known.includes(entry)))
    throw new TypeError(`redact: ${member} must be a list of ${known.join(', ')}`)
}

type SearchedWindow = Pick<TextWindow, 'kind' | 'before' | 'held' | 'fresh' | 'isLast'>

interface RedactedWindow {
  readonly replace: string
  /** End of the window, which is searched again with the next one. */
  readonly hold: string
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

  /** Redacts texts in several turns of the event loop. A long text is searched window by window, as in a stream. */
  async allInTurns(parts: readonly Pick<TextPart, 'text' | 'kind'>[]): Promise<readonly string[]> {
    const redacted: string[] = []
    let waiting: Pick<TextPart, 'text' | 'kind'>[] = []
    let count = 0
    const search = async (): Promise<void> => {
      redacted.push(...this.all(waiting))
      waiting = []
      count = 0
      await endOfTurn()
    }
    for (const part of parts) {
      const { text, kind } = part
      if (count + text.length > MAX_CHARACTERS_PER_TURN) await search()
      if (text.length > MAX_CHARACTERS_PER_TURN && kind !== 'tool_arguments')
        redacted.push(await this.#inWindows(text, kind))
      else {
        waiting.push(part)
        count += text.length
      }
    }
    await search()
    return redacted
  }

  async #inWindows(text: string, kind: TextKind): Promise<string> {
    let redacted = ''
    let start = 0
    for (let end = 0; end < text.length; await endOfTurn()) {
      const held = text.slice(start, end)
      const fresh = text.slice(end, end + MAX_CHARACTERS_PER_TURN)
      end += fresh.length
      const before = text.slice(Math.max(0, start - LOOKBEHIND_CHARACTERS), start)
      const { replace, hold } = this.#limited({ kind, before, held, fresh, isLast: end === text.length })
      redacted += replace
      start = end - hold.length
    }
    return redacted
  }

  /** @throws Error if patterns of the host exceed their time. */
  window(window: TextWindow): TextVerdict {
    return this.#limited(window)
  }

  #limited(window: SearchedWindow): RedactedWindow {
    const { before, held, fresh } = window
    // Many texts of a stream end without new characters, and measuring the time takes longer than a short search.
    if (held === '' && fresh === '') return { replace: '', hold: '' }
    const characters = before.length + held.length + fresh.length
    if (this.#limit === undefined || characters <= MAX_UNWATCHED_CHARACTERS) return this.#verdict(window)
    return this.#limit.run(characters, () => this.#verdict(window))
  }

  #whole(text: string, kind: TextKind): string {
    return kind === 'tool_arguments' ? this.#json(text) : this.#replaced(text, this.#find(text, 0), 0, text.length)
  }

  #verdict({ kind, before, held, fresh, isLast }: SearchedWindow): RedactedWindow {
    const text = held + fresh
    if (kind === 'tool_arguments') return { replace: this.#json(text), hold: '' }
    const all = before + text
    const found = this.#find(all, before.length)
    const end = isLast ? all.length : this.#safeEnd(all, before.length, found)
    return { replace: this.#replaced(all, found, before.length, end), hold: all.slice(end) }
  }

  /** Returns the position where an incomplete match may begin. */
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

  /** Returns matches that begin at `from` or later, in order and without overlaps: the earlier one counts, then the longer one. */
  #find(text: string, from: number): readonly Found[] {
    let found: Found[] | undefined
    let lastEnd = 0
    let isOrdered = true
    const add = (start: number, end: number, mark: string): void => {
      if (start < from) return
      isOrdered &&= start >= lastEnd
      lastEnd = end
      found ??= []
      found.push({ start, end, mark })
    }
    for (const { rule, pattern, mark } of this.#rules) {
      // Destructuring a span would take longer than finding it.
      for (const span of rule.find?.(text) ?? []) add(span[0], span[1], mark)
      if (pattern === undefined || (rule.needs !== undefined && !text.includes(rule.needs))) continue
      pattern.lastIndex = 0
      for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
        const length = rule.accept === undefined ? match[0].length : rule.accept(match[0])
        if (match[0] === '') pattern.lastIndex += 1
        else if (length < match[0].length) pattern.lastIndex = match.index + Math.max(1, length)
        if (length > 0) add(match.index, match.index + length, mark)
      }
    }
    if (found === undefined || isOrdered) return found ?? NOTHING
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

  /** Redacts JSON so that it stays JSON: each string separately, and a matching number becomes a string. */
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

/** Returns the spans of strings, names and numbers in JSON. Numbers may have more digits than JavaScript keeps. */
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

/** Matches digits, and `.`, `e`, `E`, `+` and `-`. */
function isOfNumber(byte: number | undefined): boolean {
  return isDigit(byte) || byte === 0x2e || byte === 0x65 || byte === 0x45 || byte === 0x2b || byte === MINUS
}

const NOTHING: readonly Found[] = []

function isWithin({ within }: RedactionRule, table: Uint8Array, code: number): boolean {
  if (code < 128) return table[code] === 1
  // Half of a surrogate pair may belong to a letter.
  return (code >= 0xd800 && code <= 0xdfff) || within?.test(String.fromCharCode(code)) === true
}

function compiled(rule: RedactionRule): CompiledRule {
  // An unknown rule name, such as `pii.mail`, is undefined if no compiler reports it.
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

/** Stops a search if a regular expression of the host takes too long. Nothing else can interrupt a regular expression. */
class TimeLimit {
  readonly #held: { work: (() => unknown) | undefined } = { work: undefined }
  readonly #context = createContext(this.#held)
  readonly #script = new Script('work()')

  /** @throws Error if `work` takes longer than the limit for this number of characters. */
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

/** Key for the part of a text hook of this package that passes texts without a check. */
export const QUIET_TEXTS: unique symbol = Symbol('signalbox quiet texts')

/** Text hook that detects by the characters of a text that its check would change nothing. */
export interface QuietTextHook extends TextHook {
  readonly [QUIET_TEXTS]?: SkippableText | undefined
}

/** Facts about texts that need no search. */
export interface SkippableText {
  /** Whether a text can contain at most the beginning of a match. Consecutive quiet texts count as one quiet text. */
  isQuiet(text: string, kind: TextKind): boolean
  /** Returns how many characters at the end of a quiet text, given in pieces, may begin a match. The check would hold these back. */
  tailOf(pieces: readonly string[], kind: TextKind): number
}

/** Bit of a character that a match may need. The lower bits mark the rules whose matches may contain the character. */
const DECIDING = 1 << 30
const MAX_RULES = 30
const UNKNOWN = -1
const CODES_OF_ASCII = 128
const ALL_CODES = 65_536

type QuietRule = Pick<RedactionRule, 'within' | 'containsOneOf' | 'maxLength'>

/**
 * Detects texts in which no rule can match, because they lack the characters of which every match contains one. Returns undefined
 * if a rule does not name such characters.
 * @param takes Whether texts of a kind are checked at all. Arguments of tools are only checked as a whole.
 */
function quietTexts(rules: readonly QuietRule[], takes: (kind: TextKind) => boolean): SkippableText | undefined {
  if (rules.length > MAX_RULES || rules.some(({ containsOneOf }) => containsOneOf === undefined)) return undefined
  return new RuleCharacters(rules, takes)
}

class RuleCharacters implements SkippableText {
  readonly #rules: readonly QuietRule[]
  readonly #takes: (kind: TextKind) => boolean
  readonly #ascii: Int32Array
  /** Bits of all other characters; created for the first one. */
  #further: Int32Array | undefined
  /** Bits of the rules by the length of their longest match, shortest first. */
  readonly #ends: readonly { readonly maxLength: number; readonly bit: number }[]

  constructor(rules: readonly QuietRule[], takes: (kind: TextKind) => boolean) {
    this.#rules = rules
    this.#takes = takes
    this.#ascii = Int32Array.from({ length: CODES_OF_ASCII }, (_, code) => this.#bitsOf(code))
    this.#ends = rules
      .map(({ maxLength }, index) => ({ maxLength, bit: 1 << index }))
      .sort((one, other) => one.maxLength - other.maxLength)
  }

  isQuiet(text: string, kind: TextKind): boolean {
    if (!this.#takes(kind)) return true
    if (kind === 'tool_arguments') return false
    for (let index = 0; index < text.length; index++)
      if ((this.#bits(text.charCodeAt(index)) & DECIDING) !== 0) return false
    return true
  }

  tailOf(pieces: readonly string[], kind: TextKind): number {
    if (!this.#takes(kind)) return 0
    let alive = DECIDING - 1
    let length = 0
    let next = 0
    for (let piece = pieces.length - 1; piece >= 0; piece--) {
      const text = pieces[piece]!
      for (let index = text.length - 1; index >= 0; index--) {
        while (next < this.#ends.length && this.#ends[next]!.maxLength <= length) alive &= ~this.#ends[next++]!.bit
        alive &= this.#bits(text.charCodeAt(index))
        if (alive === 0) return length
        length += 1
      }
    }
    return length
  }

  #bits(code: number): number {
    if (code < CODES_OF_ASCII) return this.#ascii[code]!
    this.#further ??= new Int32Array(ALL_CODES).fill(UNKNOWN)
    const known = this.#further[code]!
    if (known !== UNKNOWN) return known
    const bits = this.#bitsOf(code)
    this.#further[code] = bits
    return bits
  }

  #bitsOf(code: number): number {
    const character = String.fromCharCode(code)
    // Half of a surrogate pair may belong to any character.
    const isHalf = code >= 0xd800 && code <= 0xdfff
    let bits = 0
    for (const [index, { within, containsOneOf }] of this.#rules.entries()) {
      if (within === undefined || isHalf || within.test(character)) bits |= 1 << index
      if (isHalf || containsOneOf?.test(character) === true) bits |= DECIDING
    }
    return bits
  }
}
