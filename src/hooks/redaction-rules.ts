import { addresses, cards, emails, ibans, keys, type TextSpan } from './redaction-scanners.ts'

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
