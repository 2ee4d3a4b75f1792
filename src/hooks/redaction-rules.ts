import { isIP } from 'node:net'

/** One kind of text that is taken out. */
export interface RedactionRule {
  /** Stands in place of what is found, in upper case and brackets: `[EMAIL]`. */
  readonly name: string
  /** What it looks like. Flags `g` and `y` are ignored. */
  readonly pattern: RegExp
  /** Longest match in characters. At most so much of a stream is held back. */
  readonly maxLength: number
  /**
   * Matches every single character that a match may contain. A stream is held back only while it ends with such characters. Absent:
   * always the last `maxLength` characters are.
   */
  readonly within?: RegExp
  /** Text without which there can be no match; skips the search. */
  readonly needs?: string
  /**
   * Matches single characters, of which every match contains at least one, such as `/@/`. A stream is searched only where one of them has
   * come. Absent: all of it is.
   */
  readonly containsOneOf?: RegExp
  /** How many characters of a match are one, from its beginning; 0: none. Absent: all. */
  accept?(match: string): number
}

/** Most digits of a card, and of a phone number. */
const MAX_PHONE_DIGITS = 15
const MIN_PHONE_DIGITS = 8

/** Shortest IBAN without spaces: Norway's. */
const SHORTEST_IBAN = 15

/** Rules for personal data and keys. Names of people need a model: use a hook of your own. */
export const pii = {
  /** Addresses of e-mail, also with letters beyond ASCII. */
  email: {
    name: 'email',
    pattern: /[\p{L}\p{N}._%+'-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,4}/u,
    maxLength: 384,
    within: /[\p{L}\p{N}._%+'@-]/u,
    containsOneOf: /@/,
    needs: '@',
  },
  /** Numbers of payment cards: 13 to 19 digits, in one piece or in groups, with a right check digit (Luhn). */
  card: {
    name: 'card',
    pattern: /(?<!\d)(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})(?!\d)/,
    maxLength: 23,
    within: /[\d -]/,
    containsOneOf: /\d/,
    accept: (match) => (passesLuhn(match.replace(/\D/g, '')) ? match.length : 0),
  },
  /** Bank accounts with right check digits, with or without spaces. */
  iban: {
    name: 'iban',
    pattern: /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/,
    maxLength: 42,
    within: /[A-Z0-9 ]/,
    containsOneOf: /\d/,
    accept: ibanLength,
  },
  /** Social security numbers of the United States, with hyphens or spaces. */
  ssn: {
    name: 'ssn',
    pattern: /(?<!\d)(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?!\d)/,
    maxLength: 11,
    within: /[\d -]/,
    containsOneOf: /\d/,
  },
  /** Phone numbers with a country code, and North American ones with separators. */
  phone: {
    name: 'phone',
    pattern:
      /(?<![\w+])(?:\+\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}|\(\d{3}\) ?\d{3}[-. ]\d{4}|\d{3}[-. ]\d{3}[-. ]\d{4})(?!\d)/,
    maxLength: 52,
    within: /[\d ().+/-]/,
    containsOneOf: /\d/,
    accept(match) {
      const { length } = match.replace(/\D/g, '')
      return length >= MIN_PHONE_DIGITS && length <= MAX_PHONE_DIGITS ? match.length : 0
    },
  },
  /** Addresses of IPv4 and IPv6. */
  ip: {
    name: 'ip',
    pattern: /(?<![\w:.])[0-9A-Fa-f:.]{3,46}(?![\w:])/,
    maxLength: 46,
    within: /[0-9A-Fa-f:.]/,
    containsOneOf: /[\d:]/,
    accept(match) {
      const address = match.replace(/[.:]$/, '')
      return isIP(match) !== 0 ? match.length : isIP(address) !== 0 ? address.length : 0
    },
  },
  /** Keys of common services, and JSON Web Tokens. */
  keys: {
    name: 'key',
    pattern:
      /(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_][\w-]{16,256}|AKIA[0-9A-Z]{16}|AIza[\w-]{35}|gh[opsur]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255}|xox[abeprs]-[\w-]{10,255}|eyJ[\w-]{8,680}\.[\w-]{8,680}\.[\w-]{8,680})/,
    maxLength: 2_048,
    within: /[\w.-]/,
    containsOneOf: /[-_AJ]/,
  },
} as const satisfies Readonly<Record<string, RedactionRule>>

function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - 0x30
    const doubled = index % 2 === 0 ? digit : digit * 2
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0 && /[1-9]/.test(digits)
}

/** A word in capitals may follow an account, so shorter beginnings are tried too. */
function ibanLength(match: string): number {
  for (let length = match.length; length >= SHORTEST_IBAN; length--) {
    const isWordEnd = length === match.length || match[length] === ' '
    if (isWordEnd && isIban(match.slice(0, length).replaceAll(' ', ''))) return length
  }
  return 0
}

function isIban(account: string): boolean {
  if (account.length < SHORTEST_IBAN || account.length > 34) return false
  let remainder = 0
  for (const character of account.slice(4) + account.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder === 1
}
