/** Returns the number of characters (code points) of a text. A lone surrogate counts as one. */
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

/** Whether a text has at most `characters` characters. Reads at most `2 * characters` units of it. */
export function hasAtMost(text: string, characters: number): boolean {
  // A character has at most two units, so longer texts need no count.
  return text.length <= characters || (text.length <= 2 * characters && countCharacters(text) <= characters)
}
