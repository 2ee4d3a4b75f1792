/** Longest word, in code points; what is longer (a data URL, Chinese text) counts as several words. */
const WORD = /\s*\S{1,24}|\s+$/gu

/** Cuts a text into words, each with the white space before it. Joined they are the text again. */
export function words(text: string): string[] {
  return text.match(WORD) ?? []
}

/** Tokens of texts as the stand-ins count them: a quarter of the UTF-8 bytes, rounded up, at least 1. */
export function countTokens(texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return Math.max(1, Math.ceil(bytes / 4))
}
