/** What happens at the vendor when the caller leaves: stop the call, or read it to the end within a bounded time. */
export type DisconnectPolicy = 'cancel' | 'drain'

/** A policy for everything, or one for each endpoint by its id; endpoints that are not named get `default`, or `cancel`. */
export type DisconnectPolicies = DisconnectPolicy | Readonly<Record<string, DisconnectPolicy>>

/** Most abandoned calls that are read on at the same time; further ones are stopped whatever the policy. */
const MAX_DRAINING = 100

/** Decides what to do about callers who leave, and bounds how much is read for nobody. */
export class Disconnects {
  readonly drainMs: number
  readonly #policies: DisconnectPolicies
  #draining = 0

  constructor(policies: DisconnectPolicies, drainMs: number) {
    this.#policies = policies
    this.drainMs = drainMs
  }

  /** Asks whether an abandoned call may be read on; when it may, `release` must be called once it is over. */
  mayDrain(endpointId: string): boolean {
    if (policyOf(this.#policies, endpointId) === 'cancel' || this.#draining >= MAX_DRAINING) return false
    this.#draining += 1
    return true
  }

  release(): void {
    this.#draining -= 1
  }
}

function policyOf(policies: DisconnectPolicies, endpointId: string): DisconnectPolicy {
  if (typeof policies === 'string') return policies
  const own = Object.hasOwn(policies, endpointId) ? policies[endpointId] : policies['default']
  return own ?? 'cancel'
}
