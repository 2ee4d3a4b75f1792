const OPEN = '<think>'
const CLOSE = '</think>'

/** A piece of an answer, taken apart. */
export interface SplitText {
  readonly text: string
  readonly reasoning: string
}

/**
 * Takes `<think>…</think>` at the beginning of an answer out of its text, however the text is cut into chunks. Tags anywhere
 * else belong to the answer.
 */
export class ThinkTagSplitter {
  #state: 'start' | 'reasoning' | 'gap' | 'text' = 'start'
  #held = ''

  push(chunk: string): SplitText {
    let rest = this.#held + chunk
    this.#held = ''
    let reasoning = ''
    if (this.#state === 'start') {
      const begun = rest.trimStart()
      if (begun.startsWith(OPEN)) {
        this.#state = 'reasoning'
        rest = begun.slice(OPEN.length)
      } else if (OPEN.startsWith(begun)) return this.#hold(rest, '')
      else this.#state = 'text'
    }
    if (this.#state === 'reasoning') {
      const end = rest.indexOf(CLOSE)
      if (end === -1) {
        const kept = longestStart(rest, CLOSE)
        return this.#hold(rest.slice(rest.length - kept), rest.slice(0, rest.length - kept))
      }
      reasoning = rest.slice(0, end)
      rest = rest.slice(end + CLOSE.length)
      this.#state = 'gap'
    }
    if (this.#state === 'gap') {
      rest = rest.trimStart()
      if (rest !== '') this.#state = 'text'
    }
    return { text: rest, reasoning }
  }

  /** The answer has ended: gives what was held back. */
  end(): SplitText {
    const held = this.#held
    this.#held = ''
    return this.#state === 'reasoning' ? { text: '', reasoning: held } : { text: held, reasoning: '' }
  }

  #hold(held: string, reasoning: string): SplitText {
    this.#held = held
    return { text: '', reasoning }
  }
}

/** Length of the longest end of `text` with which `tag` may begin. */
function longestStart(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length--)
    if (tag.startsWith(text.slice(text.length - length))) return length
  return 0
}
