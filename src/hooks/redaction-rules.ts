import { addresses, cards, emails, ibans, keys, type TextSpan } from './redaction-scanners.ts'

/** One kind of text that is taken out. */
export interface RedactionRule {
  /** Stands in place of what is found, in upper case and brackets: `[EMAIL]`. */
  readonly name: string
  /**
   * What it looks like. Flags `g` and `y` are ignored. A rule has either `pattern` or `find`. All patterns together have 100 ms for
   * the texts of a call or for a piece of a stream, and 50 ms more for each million characters. A hook that takes longer fails.
   */
  readonly pattern?: RegExp | undefined
  /** Finds all matches in a text, in any order, in time that is linear in its length. Has no time limit. */
  find?(text: string): Iterable<TextSpan>
  /** Longest match in characters. At most so much of a stream is held back. */
  readonly maxLength: number
  /**
   * Matches every single character that a match may contain. A stream is held back only while it ends with such characters. Absent:
   * always the last `maxLength` characters are.
   */
  readonly within?: RegExp
  /** Text without which a pattern cannot match; skips the search. */
  readonly needs?: string
  /**
   * Matches single characters, of which every match contains at least one, such as `/@/`. A stream is searched only where one of them has
   * come. Absent: all of it is.
   */
  readonly containsOneOf?: RegExp
  /** Number of characters of a match of `pattern` that count, from its beginning; 0 for none. If omitted, all do. */
  accept?(match: string): number
}

/** Rules for personal data and keys. Names of people need a model: use a hook of your own. */
export const pii = {
  /** Addresses of e-mail, also with letters beyond ASCII. */
  email: {
    name: 'email',
    find: emails,
    maxLength: 384,
    within: /[\p{L}\p{N}._%+'@-]/u,
    containsOneOf: /@/,
  },
  /** Numbers of payment cards: 13 to 19 digits, in one piece or in groups, with a right check digit (Luhn). */
  card: { name: 'card', find: cards, maxLength: 23, within: /[\d -]/, containsOneOf: /\d/ },
  /** Bank accounts with right check digits, with or without spaces. */
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
    // What may stand between two digits is unambiguous, so that no place is tried in several ways.
    pattern:
      /(?<![\w+])(?:\+\d(?:\)?[ ./-]?\(?\d){7,14}\)?|\(\d{3}\) ?\d{3}[-. ]\d{4}|\d{3}[-. ]\d{3}[-. ]\d{4})(?!\d)/,
    maxLength: 59,
    within: /[\d ().+/-]/,
    containsOneOf: /\d/,
  },
  /** Addresses of IPv4 and IPv6. */
  ip: { name: 'ip', find: addresses, maxLength: 46, within: /[0-9A-Fa-f:.]/, containsOneOf: /[\d:]/ },
  /** Keys of common services, and JSON Web Tokens. */
  keys: { name: 'key', find: keys, maxLength: 2_048, within: /[\w.-]/, containsOneOf: /[-_AJ]/ },
} as const satisfies Readonly<Record<string, RedactionRule>>

/** Built-in patterns. Their time is linear, so they need no limit. */
export const LINEAR_PATTERNS: ReadonlySet<RegExp> = new Set([pii.ssn.pattern, pii.phone.pattern])
