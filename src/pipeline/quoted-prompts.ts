import { isJsonObject } from '../core/json.ts'
import type { AttemptFailure } from './error-classification.ts'

/** Text of an event that replaces a vendor's text that may quote a prompt. */
export const TEXT_LEFT_OUT = "The vendor's text is left out, because it may quote the prompt."

/** Maximum length of a request that is searched, in characters. If it is longer, the vendor's text is dropped. */
const MAX_SEARCHED = 4 * 1024 * 1024
/** Minimum length of a part of a longer text that counts as a quote, in letters and digits. */
const QUOTE_LENGTH = 12
/** Minimum length of a whole text of a request that counts as a quote. */
const MIN_TEXT_LENGTH = 4
const SHORT_TEXT_COST = 32

/** Members whose values are names that operators need to read. */
const NAMES: ReadonlySet<string> = new Set(['model', 'type', 'role'])

/** Returns the part of a failure that the operator may read. Pass `undefined` if the body was released and cannot be searched. */
export function toldWithoutQuotes(
  { report, operatorProblem }: AttemptFailure,
  request: object | undefined,
): { readonly message: string | undefined; readonly problem: string } {
  const problem = operatorProblem?.message ?? ''
  if (report.isVendorText !== true) return { message: report.message, problem }
  const cut = (text: string) => (request === undefined ? undefined : withoutQuotes(text, request))
  const message = report.message === undefined ? undefined : cut(report.message)
  // The report is the beginning of the same text.
  return { message, problem: problem === '' ? problem : (message ?? TEXT_LEFT_OUT) }
}

/**
 * Returns a vendor's text in which each quote of the request is replaced by `[redacted]`, whatever its case, blanks and escapes.
 * Returns `undefined` if the request is too large to be searched.
 */
export function withoutQuotes(text: string, request: object): string | undefined {
  const quotes = new QuoteFinder(text)
  const pending: (string | object)[] = [request]
  let left = MAX_SEARCHED
  for (let value = pending.pop(); value !== undefined && left > 0; value = pending.pop()) {
    if (typeof value === 'string') {
      left -= Math.max(value.length, SHORT_TEXT_COST)
      if (left > 0) quotes.search(value)
      continue
    }
    const members: Iterable<[string | number, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value)
    for (const [name, member] of members) {
      left -= 1
      if (left <= 0) break
      if (typeof member === 'string' ? !NAMES.has(String(name)) : isTree(member))
        pending.push(member as string | object)
    }
  }
  return left > 0 ? quotes.redacted() : undefined
}

/** Whether the value can contain texts. Bytes of a file cannot. */
function isTree(value: unknown): boolean {
  return Array.isArray(value) || (isJsonObject(value) && !ArrayBuffer.isView(value))
}

const FACTOR = 0x01000193
/** Weight of the character that leaves the window. */
const LEAVING = Array.from({ length: QUOTE_LENGTH }).reduce<number>((power) => Math.imul(power, FACTOR), 1)

/** Finds quotes by a rolling hash over letters and digits, so that each text is read once. */
class QuoteFinder {
  readonly #text: string
  readonly #hidden: Uint8Array
  /** First and last place of each window of the text, by its hash. */
  readonly #windows = new Map<number, [begin: number, end: number][]>()

  constructor(text: string) {
    this.#text = text
    this.#hidden = new Uint8Array(text.length)
    const places: number[] = []
    eachWindow(
      text,
      (hash) => {
        const ends = this.#windows.get(hash)
        const window: [number, number] = [places.at(-QUOTE_LENGTH)!, places.at(-1)!]
        if (ends === undefined) this.#windows.set(hash, [window])
        else ends.push(window)
      },
      places,
    )
  }

  search(quoted: string): void {
    const trimmed = quoted.trim()
    if (trimmed.length >= MIN_TEXT_LENGTH && trimmed.length <= 2 * QUOTE_LENGTH)
      for (let at = this.#text.indexOf(trimmed); at !== -1; at = this.#text.indexOf(trimmed, at + trimmed.length))
        this.#hidden.fill(1, at, at + trimmed.length)
    eachWindow(quoted, (hash) => {
      for (const [begin, end] of this.#windows.get(hash) ?? []) this.#hidden.fill(1, begin, end + 1)
    })
  }

  redacted(): string {
    let shown = ''
    for (let at = 0; at < this.#text.length; at++) {
      if (this.#hidden[at] === 0) shown += this.#text[at]
      else if (this.#hidden[at - 1] !== 1) shown += '[redacted]'
    }
    return shown
  }
}

/** Calls `found` with the hash of each window of letters and digits, and adds their positions in the text to `places`. */
function eachWindow(text: string, found: (hash: number) => void, places?: number[]): void {
  const window = new Uint16Array(QUOTE_LENGTH)
  let hash = 0
  let count = 0
  for (let at = 0; at < text.length; at++) {
    let code = text.charCodeAt(at)
    // The letter after a backslash belongs to an escape.
    if (code === 92) at += 1
    if (code >= 65 && code <= 90) code += 32
    const isLetter = (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code > 127
    if (!isLetter) continue
    const place = count % QUOTE_LENGTH
    hash = (Math.imul(hash, FACTOR) + code - Math.imul(window[place]!, LEAVING)) | 0
    window[place] = code
    places?.push(at)
    count += 1
    if (count >= QUOTE_LENGTH) found(hash)
  }
}
