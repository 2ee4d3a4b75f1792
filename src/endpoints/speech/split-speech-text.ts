// What counts double at some vendors: ideographs, kana, Hangul, full-width forms, and the planes beyond.
const FIRST_WIDE = 0x2e80

/** A border before this share of the limit would make a part too short. */
const EARLIEST_SHARE = 1 / 3

// An ASCII mark ends something only before white space: not in 3.14, 10,000 or example.com.
// Written by number, as one of these characters in a built file has V8 keep all of it in two bytes a character:
// 。！？… and ”’）」』, then ，、；：
const SENTENCE_END =
  /[\u3002\uff01\uff1f\u2026\n]["'\u201d\u2019\uff09)\u300d\u300f]*|[.!?]+["'\u201d\u2019)\]]*(?=\s|$)/g
const CLAUSE_END = /[\uff0c\u3001\uff1b\uff1a]|[,;:](?=\s|$)/g
const SPACE = /\s+/g
const BORDERS = [SENTENCE_END, CLAUSE_END, SPACE]

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Splits a text into parts that a vendor accepts, in order: at the end of a sentence, else of a clause, else at a space,
 * else between two characters. A text within the limit stays unchanged; otherwise parts lose the white space around them.
 * Vendors bill an ideograph as two characters and do not say how their limits count it, so it counts twice here.
 * @param maxCharacters Most characters of a part; undefined: no limit.
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

/** Index after the last character within the limit; always greater than `start`. */
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
  // One more unit, so that what follows a mark at the very end is seen.
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

// Longer than any sign that people write; a border is looked for in this neighbourhood.
const SIGN_UNITS = 64

/** The last border between two visible characters, unless a single one exceeds the limit. */
function signBorder(text: string, start: number, end: number): number {
  const from = Math.max(start, end - SIGN_UNITS)
  const sign = graphemes.segment(text.slice(from, end + SIGN_UNITS)).containing(end - from)
  const border = sign === undefined ? end : from + sign.index
  return border > from ? border : end
}
