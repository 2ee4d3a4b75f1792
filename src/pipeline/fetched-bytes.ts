import { GatewayError } from '../core/errors.ts'
import type { HeldBytes } from '../core/held-bytes.ts'

/** Bytes of fetched media that count for one request. */
export interface FetchedBytesClaim {
  /**
   * Counts bytes that have arrived.
   * @throws GatewayError `rate_limited` above the limit of the account, and `overloaded` above that of the process.
   */
  add(bytes: number): void
  /** Ends the claim. Its bytes no longer count; later calls have no effect. */
  release(): void
}

/** Counts the bytes of media that are fetched for requests in progress, by account and for the process. */
export class FetchedBytes {
  readonly #maxPerAccount: number
  readonly #heldBytes: HeldBytes
  readonly #byAccount = new Map<string, number>()

  constructor(maxPerAccount: number, heldBytes: HeldBytes) {
    this.#maxPerAccount = maxPerAccount
    this.#heldBytes = heldBytes
  }

  /** Starts counting for a request of an account. */
  claim(accountId: string): FetchedBytesClaim {
    let claimed = 0
    let isReleased = false
    const change = (bytes: number): void => {
      if (isReleased) return
      const sum = (this.#byAccount.get(accountId) ?? 0) + bytes
      if (bytes > 0 && sum > this.#maxPerAccount)
        throw new GatewayError('rate_limited', {
          message: `The media that are fetched for the requests of this account have more than ${this.#maxPerAccount} bytes together. Wait until one of them is answered, or send smaller media.`,
          retryAfterSeconds: 1,
        })
      this.#heldBytes.add(bytes)
      claimed += bytes
      if (sum > 0) this.#byAccount.set(accountId, sum)
      else this.#byAccount.delete(accountId)
    }
    return {
      add: change,
      release() {
        change(-claimed)
        isReleased = true
      },
    }
  }
}
