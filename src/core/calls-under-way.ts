/** A call that can be aborted. */
export interface AbortableCall {
  abort(): void
}

/**
 * Calls in progress. A cancellation, which arrives separately, finds its call here. An owner that closes can wait for the calls
 * and abort the rest.
 */
export class CallsUnderWay {
  /** Calls, each with the name that cancels it. */
  readonly #calls = new Map<AbortableCall, string | undefined>()
  #onEmpty: (() => void)[] = []
  #isAborting = false

  /** Adds a call that has begun. */
  add(call: AbortableCall, name?: string): void {
    this.#calls.set(call, name)
    if (this.#isAborting) call.abort()
  }

  delete(call: AbortableCall): void {
    this.#calls.delete(call)
    if (this.#calls.size > 0) return
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  /** Aborts the oldest call of that name, if there is one. */
  cancel(name: string): void {
    for (const [call, itsName] of this.#calls) {
      if (itsName !== name) continue
      call.abort()
      return
    }
  }

  /** Resolves when no call remains. */
  ended(): Promise<void> {
    return this.#calls.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onEmpty.push(resolve))
  }

  /** Aborts all calls, and every call added from now on. */
  abortAll(): void {
    this.#isAborting = true
    for (const call of [...this.#calls.keys()]) call.abort()
  }
}
