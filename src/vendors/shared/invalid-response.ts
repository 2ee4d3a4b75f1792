import type { VendorFailure } from '../vendor.ts'

/** The failure of a stream in which the vendor sent something that it does not promise. */
export function invalidResponse(message: string): VendorFailure {
  return { kind: 'invalid_response', status: 0, message }
}
