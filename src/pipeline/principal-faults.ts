import { GatewayError } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'

/** Maximum number of remembered reasons. They contain account ids, so their number is otherwise unlimited. */
const MAX_TOLD = 1_000

/** Reports to the operator why callers cannot be served with the principals of the host; once per reason. */
export class PrincipalFaults {
  readonly #logger: Logger
  readonly #onFault: (error: Error) => void
  readonly #told = new Set<string>()

  constructor(logger: Logger, onFault: (error: Error) => void) {
    this.#logger = logger
    this.#onFault = onFault
  }

  /** Returns the error for the caller, without the reason. */
  error(reason: string): GatewayError {
    const cause = new TypeError(reason)
    if (!this.#told.has(reason)) {
      if (this.#told.size >= MAX_TOLD) this.#told.clear()
      this.#told.add(reason)
      this.#logger.error('a principal cannot be used', { reason })
      this.#onFault(cause)
    }
    return new GatewayError('invalid_principal', { cause })
  }

  /** Returns the error for a principal whose account is not in the store. */
  unknownAccount(accountId: string): GatewayError {
    return this.error(
      `there is no account ${JSON.stringify(accountId)}: create it with gateway.accounts.create before its first call`,
    )
  }
}
