import type { Principal } from '../stores/principal.ts'

/** Names one request of one client, for cancelling it. */
export interface CallName {
  readonly principal: Principal
  /** The session that the client was given; ids are unique within it. */
  readonly session: string
  /** The JSON-RPC id. */
  readonly id: string | number
}

/**
 * Requests under way, so that a cancellation, which comes in an exchange of its own, finds them. A session is nothing but
 * the name that keeps clients of one key apart: nothing else is kept for it, and any process answers any session.
 */
export class CallsUnderWay {
  readonly #calls = new Map<string, AbortController>()

  /** Enters a request; the result takes it out again. A second one under the same name is not entered. */
  enter(name: CallName, call: AbortController): () => void {
    const key = keyOf(name)
    if (this.#calls.has(key)) return () => undefined
    this.#calls.set(key, call)
    return () => void this.#calls.delete(key)
  }

  /** Ends a request, if it is there and the caller's own. */
  cancel(name: CallName): void {
    this.#calls.get(keyOf(name))?.abort()
  }
}

function keyOf({ principal, session, id }: CallName): string {
  return JSON.stringify([principal.accountId, principal.keyId, session, id])
}
