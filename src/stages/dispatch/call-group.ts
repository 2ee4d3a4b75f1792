/** Ends every vendor call of a request at once. */
export class CallGroup {
  readonly #calls = new Set<{ abort(): void }>()
  #aborted = false

  /** Adds a call before it begins; false when the group is over and the call must not begin. */
  add(call: { abort(): void }): boolean {
    if (this.#aborted) return false
    this.#calls.add(call)
    return true
  }

  delete(call: { abort(): void }): void {
    this.#calls.delete(call)
  }

  get isAborted(): boolean {
    return this.#aborted
  }

  abort(): void {
    this.#aborted = true
    for (const call of this.#calls) call.abort()
    this.#calls.clear()
  }
}
