import { GatewayError } from './errors.ts'

/**
 * Most values that a caller's JSON may have: texts, numbers, lists, objects. Reading them blocks every other request of the process:
 * 32 MiB of empty lists would for seconds. The longest honest lists are tokens to embed, of which OpenAI takes 300,000 a request.
 */
const MAX_JSON_VALUES = 500_000

/** Most members that all objects of a caller's JSON may have together. Each costs several times what a number does. */
const MAX_JSON_MEMBERS = 100_000

/** A text that is no longer than this is within both bounds. */
export const ALWAYS_FITTING_LENGTH = MAX_JSON_MEMBERS

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b

/** So far a loop is faster than a search, which skips a picture at once. */
const NEAR_CHARACTERS = 32

/** How much there is in JSON texts. */
interface JsonCounts {
  values: number
  /** Names of members, repeated ones included. */
  members: number
}

const LARGEST: Readonly<JsonCounts> = { values: MAX_JSON_VALUES, members: MAX_JSON_MEMBERS }

/**
 * Counts the member names of a JSON text before it is parsed.
 * @throws GatewayError `invalid_request` for a text of more than {@link MAX_JSON_VALUES} or {@link MAX_JSON_MEMBERS}.
 */
export function membersWithinBounds(text: string): number {
  const counts = { values: 0, members: 0 }
  assertAdded(text, counts)
  return counts.members
}

/**
 * Checks the JSON texts that stand in a request as strings and are parsed for its vendor, all together.
 * @throws GatewayError `invalid_request` as {@link membersWithinBounds} does.
 */
export function assertFittingTexts(texts: readonly string[]): void {
  let length = 0
  for (const text of texts) length += text.length
  if (length <= ALWAYS_FITTING_LENGTH) return
  const counts = { values: 0, members: 0 }
  for (const text of texts) assertAdded(text, counts)
}

/**
 * Can a JSON text be state that the gateway has written for a later turn? That is long texts in few members. Callers can write
 * anything in its place, and in many places.
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
 * Adds what a text has, up to a bound, and says which bound it exceeds. Linear, whatever the text is; up to the first fault of one
 * that is no JSON, it counts what a parser would make.
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

/** Position of the quote that closes the string opened at `open`; the end of the text when there is none. */
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
