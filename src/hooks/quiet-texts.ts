import type { TextKind } from '../endpoints/texts.ts'
import type { TextHook } from './hook.ts'
import type { RedactionRule } from './redaction-rules.ts'

/** Marks what a text hook of this package has for passing texts by without a check. */
export const QUIET_TEXTS: unique symbol = Symbol('signalbox quiet texts')

/** A text hook that says by the characters of a text that its check would leave it as it is. */
export interface QuietTextHook extends TextHook {
  readonly [QUIET_TEXTS]?: QuietTexts | undefined
}

/** What is known of texts without a search. */
export interface QuietTexts {
  /** Can this be no part of what the check looks for, but for its beginning? Quiet texts in a row are one quiet text. */
  isQuiet(text: string, kind: TextKind): boolean
  /** How many of the last characters of a quiet text, given in pieces, may be such a beginning. The check would hold these back. */
  tailOf(pieces: readonly string[], kind: TextKind): number
}

/** Bit of a character that a match may need; the lower bits are of the rules whose matches may contain it. */
const DECIDING = 1 << 30
const MOST_RULES = 30
const UNKNOWN = -1
const CODES_OF_ASCII = 128
const ALL_CODES = 65_536

type QuietRule = Pick<RedactionRule, 'within' | 'containsOneOf' | 'maxLength'>

/**
 * Texts in which rules find nothing, because none of the characters is there of which every match contains one. Undefined where a rule
 * does not name such characters.
 * @param takes Texts of other kinds are never looked at. Arguments of tools are looked at as a whole only.
 */
export function quietTexts(rules: readonly QuietRule[], takes: (kind: TextKind) => boolean): QuietTexts | undefined {
  if (rules.length > MOST_RULES || rules.some(({ containsOneOf }) => containsOneOf === undefined)) return undefined
  return new RuleCharacters(rules, takes)
}

class RuleCharacters implements QuietTexts {
  readonly #rules: readonly QuietRule[]
  readonly #takes: (kind: TextKind) => boolean
  readonly #ascii: Int32Array
  /** Of all others; made for the first one. */
  #further: Int32Array | undefined
  /** Bits of the rules by the length of their longest match, the shortest first. */
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
    // Half of a pair may belong to any character.
    const isHalf = code >= 0xd800 && code <= 0xdfff
    let bits = 0
    for (const [index, { within, containsOneOf }] of this.#rules.entries()) {
      if (within === undefined || isHalf || within.test(character)) bits |= 1 << index
      if (isHalf || containsOneOf?.test(character) === true) bits |= DECIDING
    }
    return bits
  }
}
