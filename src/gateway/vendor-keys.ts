import { GatewayError } from '../core/errors.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import { CLOSED, ejected } from '../routing/circuit-breaker.ts'
import type { VendorKey } from '../routing/vendor-key.ts'

/** Options of `eject`. */
export interface EjectOptions {
  /** How long the key is not used, in milliseconds: above 0, at most 30 days. Default one hour. */
  readonly forMs?: number | undefined
}

const EJECT_OPTIONS = {
  forMs: true,
} satisfies MemberNames<EjectOptions>

/**
 * Operator's keys at the vendors, as this process uses them. Other processes are not notified. Both methods throw a GatewayError
 * `invalid_request` for a credential id that `gateway.routes()` does not contain.
 */
export interface VendorKeys {
  /**
   * Opens the circuit of a key manually: for this time, other keys and vendors take precedence; then one request probes the key. If
   * it is the only one left, it is still used.
   * @returns the end of that time in Unix milliseconds.
   */
  eject(credentialId: string, options?: EjectOptions): number
  /** Closes the circuit of a key, whatever opened it, and the circuits of its models. */
  restore(credentialId: string): void
}

const DEFAULT_EJECTION_MS = 60 * 60_000
const LONGEST_EJECTION_MS = 30 * 24 * 60 * 60_000

/** Creates the administration of a gateway's vendor keys. */
export function vendorKeysOf(context: PipelineContext): VendorKeys {
  const { routes, clock } = context
  return {
    eject(credentialId, options = {}) {
      checkMembers(options, EJECT_OPTIONS, 'vendorKeys.eject')
      const { forMs = DEFAULT_EJECTION_MS } = options
      const key = keyOf(context, credentialId)
      if (!(forMs > 0 && forMs <= LONGEST_EJECTION_MS)) {
        const message = `forMs must be above 0 and at most ${LONGEST_EJECTION_MS}, not ${forMs}`
        throw new GatewayError('invalid_request', { message, param: 'forMs' })
      }
      key.circuit = ejected(key.circuit, clock.now(), forMs)
      const { openUntilMs: untilMs } = key.circuit
      const opened = { vendor: key.vendorId, credentialId, model: undefined, reason: 'operator', untilMs } as const
      emit(context, { type: 'circuit-opened', ...opened })
      return untilMs
    },
    restore(credentialId) {
      const key = keyOf(context, credentialId)
      const isOpen = key.circuit !== CLOSED
      key.circuit = CLOSED
      for (const candidate of routes.candidates()) if (candidate.key === key) candidate.restore()
      if (isOpen) emit(context, { type: 'circuit-closed', vendor: key.vendorId, credentialId, model: undefined })
    },
  }
}

function keyOf({ routes }: PipelineContext, credentialId: string): VendorKey {
  for (const { keys } of routes.vendors) {
    const key = keys.find((candidate) => candidate.credentialId === credentialId)
    if (key !== undefined) return key
  }
  const message = `no vendor has a key with the credential id ${JSON.stringify(credentialId)}`
  throw new GatewayError('invalid_request', { message, param: 'credentialId' })
}
