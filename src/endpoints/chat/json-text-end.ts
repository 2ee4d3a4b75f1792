/** Detects when the chunked JSON text of an object or array is complete. Reads every character once. */
export class JsonTextEnd {
  #depth = 0
  #isInString = false
  #isEscaped = false
  #isWhole = false

  /** True once the outermost bracket was closed. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Reads the next chunk. */
  push(text: string): void {
    for (let index = 0; index < text.length && !this.#isWhole; index++) this.#take(text[index]!)
  }

  #take(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isInString) {
      if (character === '\\') this.#isEscaped = true
      else if (character === '"') this.#isInString = false
    } else if (character === '"') this.#isInString = true
    else if (character === '{' || character === '[') this.#depth += 1
    else if (character === '}' || character === ']') {
      this.#depth -= 1
      this.#isWhole = this.#depth <= 0
    }
  }
}
