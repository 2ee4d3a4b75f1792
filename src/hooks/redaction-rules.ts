import { isIP } from 'node:net'

/** Kind of data to remove from texts. */
export interface RedactionRule {
  /** Name of the replacement, which is in upper case and brackets: `[EMAIL]`. */
  readonly name: string
  /**
   * Pattern of a match. Flags `g` and `y` are ignored. A rule has either `pattern` or `find`. All patterns together have 100 ms
   * for the texts of a call or for a piece of a stream, and 50 ms more per million characters. A hook that takes longer fails.
   */
  readonly pattern?: RegExp | undefined
  /** Finds all matches in a text, in any order, in time that is linear in its length. Has no time limit. */
  find?(text: string): Iterable<TextSpan>
  /** Maximum length of a match in characters, and of the part of a stream that is held back. */
  readonly maxLength: number
  /**
   * Matches every single character that a match may contain. A stream is held back only while it ends with such characters. If
   * omitted, the last `maxLength` characters are always held back.
   */
  readonly within?: RegExp
  /** Text that every match of the pattern contains. Without it, the search is skipped. */
  readonly needs?: string
  /**
   * Matches single characters, of which every match contains at least one, such as `/@/`. A stream is searched only if it
   * contains one of them. If omitted, all of it is searched.
   */
  readonly containsOneOf?: RegExp
  /** Returns how many characters of a match of `pattern` count, from its beginning; 0 for none. If omitted, all count. */
  accept?(match: string): number
}

/** Rules for personal data and keys. Names of people need a model; use your own hook for them. */
export const pii = {
  /** E-mail addresses, also with letters beyond ASCII. */
  email: {
    name: 'email',
    find: emails,
    maxLength: 384,
    within: /[\p{L}\p{N}._%+'@-]/u,
    containsOneOf: /@/,
  },
  /** Payment card numbers: 13 to 19 digits, in one piece or in groups, with a valid check digit (Luhn). */
  card: { name: 'card', find: cards, maxLength: 23, within: /[\d -]/, containsOneOf: /\d/ },
  /** IBANs with valid check digits, with or without spaces. */
  iban: { name: 'iban', find: ibans, maxLength: 42, within: /[A-Z0-9 ]/, containsOneOf: /\d/ },
  /** Social security numbers of the United States, with hyphens or spaces. */
  ssn: {
    name: 'ssn',
    pattern: /(?<!\d)(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?!\d)/,
    maxLength: 11,
    within: /[\d -]/,
    containsOneOf: /\d/,
  },
  /** Phone numbers with a country code and 8 to 15 digits, and North American ones with separators. */
  phone: {
    name: 'phone',
    // Separators between two digits match in one way only, so a failed search does not try others.
    pattern:
      /(?<![\w+])(?:\+\d(?:\)?[ ./-]?\(?\d){7,14}\)?|\(\d{3}\) ?\d{3}[-. ]\d{4}|\d{3}[-. ]\d{3}[-. ]\d{4})(?!\d)/,
    maxLength: 59,
    within: /[\d ().+/-]/,
    containsOneOf: /\d/,
  },
  /** IPv4 and IPv6 addresses. */
  ip: { name: 'ip', find: addresses, maxLength: 46, within: /[0-9A-Fa-f:.]/, containsOneOf: /[\d:]/ },
  /** Keys of common services, and JSON Web Tokens. */
  keys: { name: 'key', find: keys, maxLength: 2_048, within: /[\w.-]/, containsOneOf: /[-_AJ]/ },
} as const satisfies Readonly<Record<string, RedactionRule>>

/** Built-in patterns. They run in linear time, so they need no limit. */
export const LINEAR_PATTERNS: ReadonlySet<RegExp> = new Set([pii.ssn.pattern, pii.phone.pattern])

/** Position of a match in a text; `end` is exclusive. */
type TextSpan = readonly [start: number, end: number]

/*
 * Each scanner reads a character a fixed number of times, whatever the text is: expressions for the same would search again
 * from every position.
 */

const DIGIT = 1
const CAPITAL = 2
const SMALL = 4
const WORD = 8
const HEX = 16
const ADDRESS = 32
const ZERO = 0x30
/** Character classes by code. Characters beyond ASCII have none. */
const CLASSES = new Uint8Array(0x10000)
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code)
  const has = (pattern: RegExp, bit: number): number => (pattern.test(character) ? bit : 0)
  const letter = has(/[A-Z]/, CAPITAL) | has(/[a-z]/, SMALL) | has(/\d/, DIGIT)
  CLASSES[code] = letter | has(/[\w-]/, WORD) | has(/[\dA-Fa-f]/, HEX) | has(/[\dA-Fa-f:.]/, ADDRESS)
}
const LETTER_OR_DIGIT = DIGIT | CAPITAL | SMALL

/** Whether the character at `index` is of one of these classes; false before and after the text. */
function isOf(text: string, index: number, classes: number): boolean {
  // Without the bounds check, one lookup with NaN would slow down all others.
  return index >= 0 && index < text.length && (CLASSES[text.charCodeAt(index)]! & classes) !== 0
}

/** Returns the first position at `index` or later that is not of the class, at most `most` characters later. */
function endOf(text: string, index: number, classes: number, most = Number.POSITIVE_INFINITY): number {
  let end = index
  while (end - index < most && isOf(text, end, classes)) end += 1
  return end
}

/** Classes of the code points in e-mail addresses, 0 while unknown. */
const mailClasses = new Uint8Array(0x110000)
const OTHER = 1
const LABEL = 2
const LOCAL = 4

function mailClass(codePoint: number): number {
  const known = mailClasses[codePoint]!
  if (known !== 0) return known
  const character = String.fromCodePoint(codePoint)
  const isLabel = /[\p{L}\p{N}-]/u.test(character)
  const found = isLabel ? LABEL | LOCAL : /[._%+']/.test(character) ? LOCAL : OTHER
  mailClasses[codePoint] = found
  return found
}

const MAX_LOCAL = 64
const MAX_LABEL = 63
const MAX_LABELS = 5

/** Finds e-mail addresses: the text around each `@`. */
function* emails(text: string): Iterable<TextSpan> {
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let start = at
    while (start > 0) {
      const isPair = start > 1 && text.charCodeAt(start - 1) >> 10 === 0x37 && text.charCodeAt(start - 2) >> 10 === 0x36
      const before = start - (isPair ? 2 : 1)
      if (at - before > MAX_LOCAL || (mailClass(text.codePointAt(before)!) & LOCAL) === 0) break
      start = before
    }
    const end = start === at ? undefined : domainEnd(text, at + 1)
    if (end !== undefined) yield [start, end]
  }
}

/** Returns the end of a domain name of at least two labels that begins at `start`, if there is one. */
function domainEnd(text: string, start: number): number | undefined {
  let end: number | undefined
  let index = start
  for (let label = 1; label <= MAX_LABELS; label++) {
    const from = index
    while (index < text.length && index - from < MAX_LABEL) {
      const code = text.codePointAt(index)!
      if ((mailClass(code) & LABEL) === 0) break
      index += code > 0xffff ? 2 : 1
    }
    if (index === from) break
    if (label > 1) end = index
    if (text[index] !== '.') break
    index += 1
  }
  return end
}

const GROUPS = /\d{4}([ -])(?:\d{4}\1\d{4}\1\d{1,7}|\d{6}\1\d{4,5})(?!\d)/y

/** Finds payment card numbers with a valid check digit. */
function* cards(text: string): Iterable<TextSpan> {
  for (let start = 0; start < text.length; start++) {
    if (!isOf(text, start, DIGIT)) continue
    const run = endOf(text, start, DIGIT)
    let end = run
    if (run - start === 4) {
      GROUPS.lastIndex = start
      if (GROUPS.test(text)) end = GROUPS.lastIndex
    }
    const isOneOrGroups = end > run || (run - start >= 13 && run - start <= 19)
    if (isOneOrGroups && passesLuhn(text, start, end)) {
      yield [start, end]
      start = end
    } else start = run
  }
}

/** Digit sums of the doubles of 0 to 9. */
const DOUBLED = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9] as const

function passesLuhn(text: string, start: number, end: number): boolean {
  let sum = 0
  let isDoubled = false
  for (let index = end - 1; index >= start; index--) {
    const digit = text.charCodeAt(index) - ZERO
    if (digit < 0) continue
    sum += isDoubled ? DOUBLED[digit]! : digit
    isDoubled = !isDoubled
  }
  return sum > 0 && sum % 10 === 0
}

/** Length of the shortest IBAN without spaces: Norway's. */
const MIN_IBAN_LENGTH = 15
const MAX_IBAN_LENGTH = 34
const SPACE = 0x20

/** Finds IBANs with valid check digits. */
function* ibans(text: string): Iterable<TextSpan> {
  for (let start = 0; start + MIN_IBAN_LENGTH <= text.length; start++) {
    if (!isOf(text, start, CAPITAL) || isOf(text, start - 1, LETTER_OR_DIGIT)) continue
    if (!isOf(text, start + 1, CAPITAL) || endOf(text, start + 2, DIGIT, 2) !== start + 4) continue
    const end = ibanEnd(text, start)
    if (end === undefined) continue
    yield [start, end]
    start = end - 1
  }
}

/** Values of characters: 0 to 9 for digits, 10 to 35 for capitals, and -1 for all others. */
const IBAN_VALUES = Int8Array.from(CLASSES, (classes, code) =>
  (classes & (CAPITAL | DIGIT)) === 0 ? -1 : (classes & DIGIT) === 0 ? code - 0x37 : code - ZERO,
)

/** Returns the end of the longest IBAN that begins here. A word in capitals may follow it, so every end of a word is tried. */
function ibanEnd(text: string, start: number): number | undefined {
  const valueAt = (index: number): number => (index < text.length ? IBAN_VALUES[text.charCodeAt(index)]! : -1)
  let head = 0
  for (let index = 0; index < 4; index++) head = head * (index < 2 ? 100 : 10) + valueAt(start + index)
  let end: number | undefined
  let number = 0
  let index = start + 4
  for (let length = 4; length <= MAX_IBAN_LENGTH; length++) {
    let value = valueAt(index)
    if (value < 0) {
      const isEnd = length >= MIN_IBAN_LENGTH && !isOf(text, index, SMALL)
      if (isEnd && ((number % 97) * 1_000_000 + head) % 97 === 1) end = index
      if ((length & 3) !== 0 || text.charCodeAt(index) !== SPACE) break
      index += 1
      value = valueAt(index)
      if (value < 0) break
    }
    number = value > 9 ? number * 100 + value : number * 10 + value
    // Division is slow, so it is deferred until the number would exceed 31 bits.
    if (number > 10_000_000) number %= 97
    index += 1
  }
  return end
}

const MAX_ADDRESS_LENGTH = 46
const POINT = 0x2e
const COLON = 0x3a

/** Finds IPv4 and IPv6 addresses. */
function* addresses(text: string): Iterable<TextSpan> {
  for (let start = 0; start < text.length; start++) {
    if (!isOf(text, start, ADDRESS)) continue
    const end = endOf(text, start, ADDRESS)
    const length = isIsolated(text, start, end) ? addressLength(text, start, end) : 0
    if (length > 0) yield [start, start + length]
    start = end
  }
}

function isIsolated(text: string, start: number, end: number): boolean {
  const isWord = (index: number): boolean => isOf(text, index, WORD) && text[index] !== '-'
  return end - start <= MAX_ADDRESS_LENGTH && !isWord(start - 1) && !isWord(end)
}

/** Returns the length of the address in a run of its characters, without a point or colon that ends a sentence; 0 for other text. */
function addressLength(text: string, start: number, end: number): number {
  let points = 0
  let colons = 0
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index)
    if (code === POINT) points += 1
    else if (code === COLON) colons += 1
  }
  if (colons < 2 && points < 3) return 0
  const isAddress = (to: number): boolean =>
    points > 0 ? isIP(text.slice(start, to)) !== 0 : isHexAddress(text, start, to)
  // No address ends with a point, but `::` ends with a colon.
  if (text.charCodeAt(end - 1) !== POINT && isAddress(end)) return end - start
  return !isOf(text, end - 1, HEX) && isAddress(end - 1) ? end - 1 - start : 0
}

/** Whether a run of hexadecimal digits and colons is an IPv6 address: eight groups, or fewer with one `::`. */
function isHexAddress(text: string, start: number, end: number): boolean {
  let groups = 0
  let length = 0
  let isShortened = false
  for (let index = start; index <= end; index++) {
    if (index < end && text.charCodeAt(index) !== COLON) {
      length += 1
      if (length > 4) return false
      continue
    }
    if (length > 0) groups += 1
    else if (index === start) {
      if (text.charCodeAt(index + 1) !== COLON) return false
    } else if (index < end) {
      if (isShortened) return false
      isShortened = true
    } else if (!isShortened || text.charCodeAt(index - 2) !== COLON) return false
    length = 0
  }
  return isShortened ? groups < 8 : groups === 8
}

const KEY =
  /(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_][\w-]{16,256}|AKIA[0-9A-Z]{16}|AIza[\w-]{35}|gh[opsur]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255}|xox[abeprs]-[\w-]{10,255})/g
const JWT_MARK = 'eyJ'
const MIN_JWT_PART = 8
const MAX_JWT_PART = 680

/** Finds keys of common services, and JSON Web Tokens. */
function* keys(text: string): Iterable<TextSpan> {
  for (const match of text.matchAll(KEY)) yield [match.index, match.index + match[0].length]
  let header = 0
  let end: number | undefined
  for (let start = text.indexOf(JWT_MARK); start !== -1; start = text.indexOf(JWT_MARK, start + 1)) {
    if (isOf(text, start - 1, LETTER_OR_DIGIT)) continue
    if (start >= header) {
      header = endOf(text, start, WORD)
      const payload = jwtPartEnd(text, header)
      end = payload && jwtPartEnd(text, payload)
    }
    const length = header - start - JWT_MARK.length
    if (end === undefined || length < MIN_JWT_PART || length > MAX_JWT_PART) continue
    yield [start, end]
    start = end - 1
  }
}

/** Returns the end of the part of a token after the point at `index`, if there is one. */
function jwtPartEnd(text: string, index: number): number | undefined {
  if (text[index] !== '.') return undefined
  const end = endOf(text, index + 1, WORD, MAX_JWT_PART)
  return end - index - 1 < MIN_JWT_PART ? undefined : end
}
