import { GatewayError } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'

/** Most reasons that are remembered; ids of accounts stand in them, so there is no end to them. */
const MAX_TOLD = 1_000

/** Tells the operator why callers cannot be served as the principals that the host named: each reason once. */
export class PrincipalFaults {
  readonly #logger: Logger
  readonly #onFault: (error: Error) => void
  readonly #told = new Set<string>()

  constructor(logger: Logger, onFault: (error: Error) => void) {
    this.#logger = logger
    this.#onFault = onFault
  }

  /** The error for the caller, who does not read the reason. */
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

  /** The error for a principal whose account the store does not have. */
  unknownAccount(accountId: string): GatewayError {
    return this.error(
      `there is no account ${JSON.stringify(accountId)}: make it with gateway.accounts.create before its first call`,
    )
  }
}
