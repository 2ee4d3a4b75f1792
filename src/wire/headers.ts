/** Looks up response headers on demand. The `Headers` of a fetch response are one implementation. */
export interface HeaderReader {
  /** Returns the first value of a header, given its lower-case name. */
  get(name: string): string | null | undefined
}

/** Response headers of a transport: a record with lower-case names, or a reader of headers that are not decoded yet. */
export type HeaderMap = HeaderReader | Readonly<Record<string, string | readonly string[] | undefined>>

export const NO_HEADERS: HeaderMap = {}

/** Returns the first value of a header, given its lower-case name. */
export function firstHeader(headers: HeaderMap, name: string): string | undefined {
  if (isReader(headers)) return headers.get(name) ?? undefined
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** A record has no functions, so a record with a header called `get` is not mistaken for a reader. */
function isReader(headers: HeaderMap): headers is HeaderReader {
  return typeof headers.get === 'function'
}

/** Returns the vendor's id of the request, from any of the headers that vendors use for it. */
export function requestIdOf(headers: HeaderMap): string | undefined {
  return firstHeader(headers, 'x-request-id') ?? firstHeader(headers, 'request-id')
}

/** Returns the media type of a `content-type` value in lower case without parameters: `application/json`. */
export function mediaType(contentType: string | undefined): string {
  if (contentType === undefined) return ''
  const semicolon = contentType.indexOf(';')
  return (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}

/**
 * Returns the delay in seconds that a vendor requests: `retry-after-ms`, or else `retry-after` as seconds or as an HTTP date.
 * Undefined if absent or malformed; never negative.
 */
export function retryAfterSeconds(headers: HeaderMap, nowMs: number): number | undefined {
  const milliseconds = Number(firstHeader(headers, 'retry-after-ms') ?? Number.NaN)
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return milliseconds / 1000
  const text = firstHeader(headers, 'retry-after')
  if (text === undefined || text.trim() === '') return undefined
  const seconds = Number(text)
  if (Number.isFinite(seconds)) return seconds >= 0 ? seconds : undefined
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - nowMs) / 1000)
}

/** A header value with parameters: `form-data; name="a"`. */
interface ParameterizedValue {
  /** The text before the first semicolon, trimmed, in lower case. */
  readonly value: string
  /** Parameters by lower-case name. A Map, because the names come from outside. */
  readonly parameters: ReadonlyMap<string, string>
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

/**
 * Splits `value; name=token; name="text"`. Returns undefined if a parameter has no `=`, has an invalid name or an open quote, or
 * is repeated, because a repeated parameter is ambiguous.
 *
 * A backslash is literal, as browsers write it; only `\"` means a quote, as curl and Go write it. A quote ends the text if a
 * semicolon or the end follows, so a text may also end with a backslash.
 */
export function headerParameters(text: string): ParameterizedValue | undefined {
  const semicolon = text.indexOf(';')
  const value = (semicolon === -1 ? text : text.slice(0, semicolon)).trim().toLowerCase()
  const parameters = new Map<string, string>()
  let position = semicolon === -1 ? text.length : semicolon + 1
  while (position < text.length) {
    position = skipWhile(text, position, isSpaceOrSemicolon)
    if (position === text.length) break
    const equals = text.indexOf('=', position)
    if (equals === -1) return undefined
    const name = text.slice(position, equals).trim().toLowerCase()
    if (!TOKEN.test(name) || parameters.has(name)) return undefined
    const start = skipWhile(text, equals + 1, isSpace)
    const isQuoted = text[start] === '"'
    const end = isQuoted ? closingQuote(text, start + 1) : indexOrEnd(text, ';', start)
    if (end === -1) return undefined
    parameters.set(name, isQuoted ? text.slice(start + 1, end).replaceAll('\\"', '"') : text.slice(start, end).trim())
    position = isQuoted ? end + 1 : end
  }
  return { value, parameters }
}

function closingQuote(text: string, from: number): number {
  let quote = text.indexOf('"', from)
  while (quote !== -1) {
    const after = skipWhile(text, quote + 1, isSpace)
    if (after === text.length || text[after] === ';') return quote
    quote = text.indexOf('"', quote + 1)
  }
  return -1
}

function indexOrEnd(text: string, mark: string, from: number): number {
  const index = text.indexOf(mark, from)
  return index === -1 ? text.length : index
}

function skipWhile(text: string, from: number, matches: (character: string | undefined) => boolean): number {
  let position = from
  while (position < text.length && matches(text[position])) position++
  return position
}

const isSpace = (character: string | undefined): boolean => character === ' ' || character === '\t'
const isSpaceOrSemicolon = (character: string | undefined): boolean => isSpace(character) || character === ';'
