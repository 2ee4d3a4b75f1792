import { GatewayError } from './errors.ts'

/** Maximum depth of arrays and objects in a caller's JSON. */
export const MAX_JSON_DEPTH = 64

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
// Not a Buffer, because the request builders import this file and run in browsers.
const encoder = new TextEncoder()

const COLON = 0x3a
const SPACE = 0x20

/** A caller's JSON body. */
export interface CallerJson {
  readonly value: unknown
  /**
   * JSON text of `value` that every parser reads the same way. The original bytes, or `value` serialized again if an object in
   * them repeats a member name: other parsers may use the first of the repeated members, while `value` has the last.
   */
  readonly bytes: Uint8Array
}

/**
 * Reads a caller's JSON body.
 * @param onText Receives the text of the body after it was parsed.
 * @throws GatewayError `invalid_json` if it does not parse, `json_too_deep` beyond 64 levels, `invalid_request` for a `__proto__`
 *   member, which would reach copied objects, and for more values or members than {@link membersWithinBounds} allows.
 */
export function readCallerJson(bytes: Uint8Array, onText?: (text: string) => void): CallerJson {
  let text: string
  let value: unknown
  let names: number | undefined
  try {
    text = decoder.decode(bytes)
    if (text.length > ALWAYS_FITTING_LENGTH) names = membersWithinBounds(text)
    value = JSON.parse(text)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('invalid_json', { cause })
  }
  onText?.(text)
  // The parser keeps one member of each name, so a text with more names than members repeats some names.
  const repeatsNames = (names ?? countWrittenNames(text)) !== checkedMembers(value, MAX_JSON_DEPTH)
  return { value, bytes: repeatsNames ? encoder.encode(JSON.stringify(value)) : bytes }
}

/** Returns the `value` of {@link readCallerJson}, without the bytes. Throws the same errors. */
export function parseCallerJson(bytes: Uint8Array): unknown {
  return readCallerJson(bytes).value
}

/**
 * Checks an already parsed JSON value for depth and forbidden member names.
 * @throws GatewayError `json_too_deep` or `invalid_request`.
 */
export function assertPlainJson(value: unknown, levelsLeft: number = MAX_JSON_DEPTH): void {
  checkedMembers(value, levelsLeft)
}

/** Checks a value, and counts the members of all objects in it. */
function checkedMembers(value: unknown, levelsLeft: number): number {
  if (typeof value !== 'object' || value === null) return 0
  if (levelsLeft === 0) throw new GatewayError('json_too_deep')
  if (Array.isArray(value)) {
    let count = 0
    for (const item of value) {
      if (typeof item === 'object' && item !== null) count += checkedMembers(item, levelsLeft - 1)
    }
    return count
  }
  let count = 0
  // `for in` needs no list of names and is safe here, because parsed JSON inherits no members.
  for (const name in value) {
    count += 1
    if (name === '__proto__') {
      throw new GatewayError('invalid_request', { message: 'The member name __proto__ is not allowed.', param: name })
    }
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object' && member !== null) count += checkedMembers(member, levelsLeft - 1)
  }
  return count
}

/** Returns whether a value is a JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is neither undefined nor null. */
export function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null
}

/** Returns a JSON object, or an empty one for any other value. */
export function objectOf(value: unknown): Record<string, unknown> {
  return isJsonObject(value) ? value : {}
}

/** Returns the objects in a list, or an empty list for any other value. */
export function objectsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** Returns the numbers in a JSON object, named by their paths: `details.cached_tokens`. Absent ones and other values are omitted. */
export function numbersAt<Name extends string>(
  value: unknown,
  paths: Readonly<Record<Name, string>>,
): Partial<Record<Name, number>> {
  const numbers: Partial<Record<Name, number>> = {}
  for (const name in paths) {
    let found = value
    for (const step of paths[name].split('.')) found = isJsonObject(found) ? found[step] : undefined
    if (typeof found === 'number') numbers[name] = found
  }
  return numbers
}

/** Returns a string, or an empty one for any other value. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Returns a string that is not empty, or `undefined` for any other value. */
export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Parses JSON that a vendor sent; returns `undefined` if it is not JSON. */
export function parseVendorJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/**
 * Counts the member names in a valid JSON text at all depths, including repeated ones. Checks only quotes: in valid JSON a string
 * is a name if a colon follows it. Takes linear time.
 */
function countWrittenNames(text: string): number {
  let count = 0
  let open = text.indexOf('"')
  while (open !== -1) {
    let behind = closingQuoteOf(text, open) + 1
    while (text.charCodeAt(behind) <= SPACE) behind += 1
    if (text.charCodeAt(behind) === COLON) count += 1
    open = text.indexOf('"', behind)
  }
  return count
}

/**
 * Maximum number of values in a caller's JSON: strings, numbers, lists, objects. Parsing blocks all other requests of the process: 32 MiB
 * of empty lists would block it for seconds. The longest legitimate lists are tokens to embed; OpenAI accepts 300,000 per request.
 */
const MAX_JSON_VALUES = 500_000

/** Maximum number of members of all objects in a caller's JSON together. A member costs several times as much as a number. */
const MAX_JSON_MEMBERS = 50_000

/** Length up to which every text is within both limits. */
const ALWAYS_FITTING_LENGTH = MAX_JSON_MEMBERS

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b

/**
 * Distance in characters up to which a loop is faster than a search. A search is faster for the data of an image, for example.
 */
const NEAR_CHARACTERS = 32

/** Counts of values and members in JSON texts. */
interface JsonCounts {
  values: number
  /** Names of members, repeated ones included. */
  members: number
}

const LARGEST: Readonly<JsonCounts> = { values: MAX_JSON_VALUES, members: MAX_JSON_MEMBERS }

/**
 * Counts the member names of a JSON text before it is parsed.
 * @throws GatewayError `invalid_request` if the text exceeds {@link MAX_JSON_VALUES} or {@link MAX_JSON_MEMBERS}.
 */
function membersWithinBounds(text: string): number {
  const counts = { values: 0, members: 0 }
  assertAdded(text, counts)
  return counts.members
}

/**
 * Checks the total size of the JSON texts that are strings in a request and are parsed for its vendor.
 * @throws GatewayError `invalid_request` under the conditions of {@link membersWithinBounds}.
 */
export function assertFittingTexts(texts: readonly string[]): void {
  let length = 0
  for (const text of texts) length += text.length
  if (length <= ALWAYS_FITTING_LENGTH) return
  const counts = { values: 0, members: 0 }
  for (const text of texts) assertAdded(text, counts)
}

/**
 * Whether a JSON text can be state that the gateway wrote for a later turn: long strings in few members. Callers can replace it
 * with any other text, and in many places.
 */
export function isSparse(text: string): boolean {
  const most = FEW_VALUES + text.length / CHARACTERS_PER_STATE_VALUE
  return addWithin(text, { values: 0, members: 0 }, { values: most, members: most }) === undefined
}

const FEW_VALUES = 20
const CHARACTERS_PER_STATE_VALUE = 16

function assertAdded(text: string, counts: JsonCounts): void {
  const exceeded = addWithin(text, counts, LARGEST)
  if (exceeded === undefined) return
  const [most, what] = exceeded === 'members' ? [MAX_JSON_MEMBERS, 'members of objects'] : [MAX_JSON_VALUES, 'values']
  throw new GatewayError('invalid_request', {
    message: `The request body has more than ${most.toLocaleString('en-US')} ${what}.`,
  })
}

/**
 * Adds the counts of a text, up to a limit, and returns which limit it exceeds. Takes linear time for any text. Up to the first
 * error in an invalid text, it counts the values that a parser would create.
 */
function addWithin(text: string, counts: JsonCounts, most: Readonly<JsonCounts>): keyof JsonCounts | undefined {
  let values = counts.values + 1
  let { members } = counts
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at)
    if (character === QUOTE) at = closingQuoteOf(text, at)
    else if (character === COLON) {
      members += 1
      if (members > most.members) return 'members'
    } else if (character === COMMA || character === OPEN_LIST || character === OPEN_OBJECT) {
      values += 1
      if (values > most.values) return 'values'
    }
  }
  counts.values = values
  counts.members = members
  return undefined
}

/** Returns the position of the quote that closes the string opened at `open`, or the end of the text if there is none. */
export function closingQuoteOf(text: string, open: number): number {
  let at = open + 1
  while (at < text.length) {
    const near = Math.min(at + NEAR_CHARACTERS, text.length)
    for (; at < near; at += 1) {
      const character = text.charCodeAt(at)
      if (character === QUOTE) return at
      if (character === BACKSLASH) at += 1
    }
    const quote = text.indexOf('"', at)
    if (quote === -1) break
    let first = quote
    while (first > at && text.charCodeAt(first - 1) === BACKSLASH) first -= 1
    if ((quote - first) % 2 === 0) return quote
    at = quote + 1
  }
  return text.length
}
