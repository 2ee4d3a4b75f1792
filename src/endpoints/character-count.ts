/** How many characters (code points) a text has; a surrogate without its other half counts as one. */
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

/** Does a text have at most so many characters? Reads at most twice as many units of a longer one. */
export function hasAtMost(text: string, characters: number): boolean {
  // A character takes at most two units, so what is longer need not be counted.
  return text.length <= characters || (text.length <= 2 * characters && countCharacters(text) <= characters)
}
