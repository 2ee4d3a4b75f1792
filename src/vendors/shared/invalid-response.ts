import type { VendorFailure } from '../vendor.ts'

/** The failure of a stream with malformed vendor data. */
export function invalidResponse(message: string): VendorFailure {
  return { kind: 'invalid_response', status: 0, message }
}
