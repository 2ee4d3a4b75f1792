import { createHash } from 'node:crypto'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { Candidate, Reserved } from './call-record.ts'

/** Maximum number of remembered states, of a few hundred bytes each. */
const MAX_STATES = 20_000

/**
 * Remembers which credential created state that callers carry and that only this credential can read, such as encrypted
 * reasoning. Only the newest states, in the memory of the process: in another process the vendor decides.
 */
export class StateMakers {
  readonly #makers = new Map<string, Pick<Candidate, 'credentialId'>>()

  /** Notes the state that an answer carries. Does nothing for vendors with one key. */
  note({ endpoint }: Reserved, { vendor, credentialId }: Candidate, answer: Readonly<Record<string, unknown>>): void {
    if (!this.isNeeded(endpoint, vendor)) return
    for (const state of endpoint.carried?.inAnswer(answer) ?? []) this.#makers.set(digestOf(state), { credentialId })
    for (const oldest of this.#makers.keys()) {
      if (this.#makers.size <= MAX_STATES) return
      this.#makers.delete(oldest)
    }
  }

  /** Whether answers of the endpoint at the vendor can carry state that another key of the vendor cannot read. */
  isNeeded({ carried }: Reserved['endpoint'], { apiKeys }: Candidate['vendor']): boolean {
    return carried !== undefined && apiKeys.length > 1
  }

  /**
   * Returns the candidates without other keys of the vendor whose key created the state in the request. Another key would reject
   * it, so it is not tried even if the first one fails. Returns all of them if that key is unknown or not configured.
   */
  able({ endpoint, body }: Reserved, candidates: readonly RouteCandidate[]): readonly RouteCandidate[] {
    if (candidates.length < 2 || this.#makers.size === 0) return candidates
    const state = endpoint.carried?.inRequest(body)
    const maker = state === undefined ? undefined : this.#makers.get(digestOf(state))
    const own = candidates.find(({ credentialId }) => credentialId === maker?.credentialId)
    if (own === undefined) return candidates
    return candidates.filter(
      ({ vendor, credentialId }) => vendor.id !== own.vendor.id || credentialId === own.credentialId,
    )
  }
}

function digestOf(state: string): string {
  return createHash('sha256').update(state).digest('base64url').slice(0, 22)
}
