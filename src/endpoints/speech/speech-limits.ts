/**
 * Longest text of one request, in characters (code points). The specification names no bound; this one is more than twice
 * OpenAI's, and a vendor that speaks a few times faster than it is listened to is done with it in the usual total time.
 */
export const MAX_SPEECH_CHARACTERS = 10_000

/** Longest instructions, in characters: they go along with every part of a text. Vendors allow 1600 tokens. */
export const MAX_INSTRUCTION_CHARACTERS = 8_000

/** How many characters (code points) a text has: what speech is billed by. */
export function countCharacters(text: string): number {
  let count = text.length
  for (let index = 0; index < text.length - 1; index++) {
    const isHigh = (text.charCodeAt(index) & 0xfc00) === 0xd800
    if (!isHigh || (text.charCodeAt(index + 1) & 0xfc00) !== 0xdc00) continue
    count--
    index++
  }
  return count
}
