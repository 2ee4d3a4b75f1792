// First character that counts double at some vendors: ideographs, kana, Hangul, full-width forms, and higher planes.
const FIRST_WIDE = 0x2e80

/** A boundary before this share of the limit would make a part too short. */
const EARLIEST_SHARE = 1 / 3

// An ASCII mark ends a sentence or clause only before white space: not in 3.14, 10,000 or example.com. Other marks are written as
// numbers, because one such character in a built file makes V8 store the file with two bytes per character: 。！？… and ”’）」』, then
// ，、；：
const SENTENCE_END =
  /[\u3002\uff01\uff1f\u2026\n]["'\u201d\u2019\uff09)\u300d\u300f]*|[.!?]+["'\u201d\u2019)\]]*(?=\s|$)/g
const CLAUSE_END = /[\uff0c\u3001\uff1b\uff1a]|[,;:](?=\s|$)/g
const SPACE = /\s+/g
const BORDERS = [SENTENCE_END, CLAUSE_END, SPACE]

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Splits a text into parts that a vendor accepts, in order: at the end of a sentence, else of a clause, else at a space, else
 * between two characters. A text within the limit stays unchanged; otherwise parts are trimmed. Vendors bill an ideograph as two
 * characters and do not document how their limits count it, so it counts twice here.
 * @param maxCharacters Maximum characters per part, or `undefined` for no limit.
 */
export function splitSpeechText(text: string, maxCharacters: number | undefined): readonly string[] {
  if (maxCharacters === undefined) return [text]
  const parts: string[] = []
  let start = 0
  while (start < text.length) {
    const end = endOfRoom(text, start, maxCharacters)
    if (start === 0 && end === text.length) return [text]
    const border = end === text.length ? end : borderBefore(text, start, end)
    const part = text.slice(start, border).trim()
    if (part !== '') parts.push(part)
    start = border
  }
  return parts
}

/** Returns the index after the last character within the limit. Always greater than `start`. */
function endOfRoom(text: string, start: number, maxCharacters: number): number {
  let room = maxCharacters
  let index = start
  while (index < text.length) {
    const character = text.codePointAt(index) ?? 0
    room -= character >= FIRST_WIDE ? 2 : 1
    if (room < 0 && index > start) break
    index += character > 0xffff ? 2 : 1
  }
  return index
}

function borderBefore(text: string, start: number, end: number): number {
  const earliest = start + Math.ceil((end - start) * EARLIEST_SHARE)
  // Includes one more unit to see the character after a mark at the very end.
  const room = text.slice(start, end + 1)
  for (const pattern of BORDERS) {
    let border = 0
    for (const match of room.matchAll(pattern)) {
      const behind = start + match.index + match[0].length
      if (behind <= end) border = behind
    }
    if (border >= earliest) return border
  }
  return signBorder(text, start, end)
}

// Longer than any written sign. Boundaries are searched in this range.
const SIGN_UNITS = 64

/** Returns the last boundary between two visible characters, unless a single one exceeds the limit. */
function signBorder(text: string, start: number, end: number): number {
  const from = Math.max(start, end - SIGN_UNITS)
  const sign = graphemes.segment(text.slice(from, end + SIGN_UNITS)).containing(end - from)
  const border = sign === undefined ? end : from + sign.index
  return border > from ? border : end
}
