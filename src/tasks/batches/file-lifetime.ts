import { GatewayError } from '../../core/errors.ts'

const SHORTEST_SECONDS = 3_600
const LONGEST_SECONDS = 30 * 24 * 3_600

/** Lifetime of a file in the form of the request. `undefined` if the caller sets none. */
interface AskedLifetime {
  readonly anchor: unknown
  readonly seconds: unknown
}

/**
 * Returns the requested lifetime of a file, in milliseconds (OpenAI API reference, `expires_after`).
 * @param nameOf Name of a member in errors: `expires_after[seconds]`.
 * @throws GatewayError `invalid_request`.
 */
export function askedLifetimeMs({ anchor, seconds }: AskedLifetime, nameOf: (member: string) => string): number {
  if (anchor !== 'created_at') throw invalid(nameOf('anchor'), 'must be created_at')
  if (Number.isSafeInteger(seconds)) {
    const given = seconds as number
    if (given >= SHORTEST_SECONDS && given <= LONGEST_SECONDS) return given * 1_000
  }
  throw invalid(nameOf('seconds'), `must be a whole number from ${SHORTEST_SECONDS} to ${LONGEST_SECONDS}`)
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}
