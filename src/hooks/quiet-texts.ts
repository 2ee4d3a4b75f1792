import type { TextKind } from '../endpoints/texts.ts'
import type { TextHook } from './hook.ts'
import type { RedactionRule } from './redaction-rules.ts'

/** Key for the part of a text hook of this package that passes texts without a check. */
export const QUIET_TEXTS: unique symbol = Symbol('signalbox quiet texts')

/** Text hook that detects by the characters of a text that its check would change nothing. */
export interface QuietTextHook extends TextHook {
  readonly [QUIET_TEXTS]?: QuietTexts | undefined
}

/** Facts about texts that need no search. */
export interface QuietTexts {
  /** Whether a text can contain at most the beginning of a match. Consecutive quiet texts count as one quiet text. */
  isQuiet(text: string, kind: TextKind): boolean
  /** Returns how many characters at the end of a quiet text, given in pieces, may begin a match. The check would hold these back. */
  tailOf(pieces: readonly string[], kind: TextKind): number
}

/** Bit of a character that a match may need. The lower bits mark the rules whose matches may contain the character. */
const DECIDING = 1 << 30
const MOST_RULES = 30
const UNKNOWN = -1
const CODES_OF_ASCII = 128
const ALL_CODES = 65_536

type QuietRule = Pick<RedactionRule, 'within' | 'containsOneOf' | 'maxLength'>

/**
 * Detects texts in which no rule can match, because they lack the characters of which every match contains one. Returns undefined
 * if a rule does not name such characters.
 * @param takes Whether texts of a kind are checked at all. Arguments of tools are only checked as a whole.
 */
export function quietTexts(rules: readonly QuietRule[], takes: (kind: TextKind) => boolean): QuietTexts | undefined {
  if (rules.length > MOST_RULES || rules.some(({ containsOneOf }) => containsOneOf === undefined)) return undefined
  return new RuleCharacters(rules, takes)
}

class RuleCharacters implements QuietTexts {
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
