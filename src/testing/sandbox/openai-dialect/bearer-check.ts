import { credentialOf, type SandboxCall } from '../sandbox-call.ts'
import { RefusedCall, type VendorErrors } from '../sandbox-operation.ts'

/** Refuses a call without a bearer token; any token will do. */
export function checkBearer(call: SandboxCall, errors: VendorErrors): void {
  const hasBearer = call.headers['authorization'] !== undefined && credentialOf(call) !== ''
  if (!hasBearer) throw new RefusedCall(errors.badKey())
}
