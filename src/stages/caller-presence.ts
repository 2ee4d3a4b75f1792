import type { ByteSink } from '../core/exchange.ts'

/** Is the caller still there? Watches the sink from the first moment, so that a caller who leaves while a vendor thinks is noticed at once. */
export class CallerPresence {
  #hasLeft = false
  #listener: (() => void) | undefined

  constructor(sink: ByteSink) {
    sink.onClose(() => {
      this.#hasLeft = true
      this.#listener?.()
    })
  }

  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Sets the one listener; it is called at once if the caller has left already. Undefined removes it. */
  set onLeave(listener: (() => void) | undefined) {
    this.#listener = listener
    if (this.#hasLeft) listener?.()
  }
}
