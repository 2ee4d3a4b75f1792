import type { StageContext } from '../stages/stage-context.ts'

/** A call that can be given up. */
export interface AbortableCall {
  abort(): void
}

/**
 * Calls about tasks that no submission waits for: questions to vendors, and downloads. A gateway that closes waits for them
 * for a while and gives up the rest; otherwise one caller who has stopped reading could keep it open for ever.
 */
export class CallsUnderWay {
  readonly #calls = new Set<AbortableCall>()
  #onEmpty: (() => void)[] = []
  #isGivingUp = false

  /** Takes up a call that has begun. */
  add(call: AbortableCall): void {
    this.#calls.add(call)
    if (this.#isGivingUp) call.abort()
  }

  delete(call: AbortableCall): void {
    this.#calls.delete(call)
    if (this.#calls.size > 0) return
    for (const tell of this.#onEmpty.splice(0)) tell()
  }

  /** Resolves once there is none. */
  ended(): Promise<void> {
    return this.#calls.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onEmpty.push(resolve))
  }

  /** Gives up all of them, and every one that begins from now on. */
  giveUp(): void {
    this.#isGivingUp = true
    for (const call of [...this.#calls]) call.abort()
  }
}

const callsByContext = new WeakMap<StageContext, CallsUnderWay>()

/** The calls of one gateway. */
export function callsUnderWay(context: StageContext): CallsUnderWay {
  const known = callsByContext.get(context)
  if (known !== undefined) return known
  const calls = new CallsUnderWay()
  callsByContext.set(context, calls)
  return calls
}
