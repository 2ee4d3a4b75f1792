import { credentialOf, type SandboxCall } from '../sandbox-operation.ts'
import { checkAwsSignature } from './aws-signature-check.ts'
import { awsRefusal } from './bedrock-errors.ts'

/** Below the stand-in's origin, so that no path meets those of another vendor. */
export const BEDROCK_PREFIX = '/bedrock'

/** Models that are reached by an inference profile only. */
const PROFILE_ONLY = /^anthropic\.claude-(?:opus|sonnet|haiku|fable)-\d/

/** Refuses a call without a bearer and without a right signature. A bearer goes first, as at the service. */
export function checkAccess(call: SandboxCall, nowMs: number): void {
  const { authorization } = call.headers
  if (authorization === undefined)
    throw awsRefusal(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token', nowMs)
  if (/^Bearer /i.test(authorization)) {
    if (credentialOf(call) === 'expired') throw awsRefusal(403, 'ExpiredTokenException', 'The token has expired', nowMs)
    return
  }
  checkAwsSignature(call, nowMs)
}

/** Refuses ids that are no model's, and models that want a profile. */
export function checkModelId(id: string): void {
  if (/^arn:aws:bedrock:/.test(id)) return
  if (!/^[a-z0-9-]+\.[\w.:-]+$/.test(id))
    throw awsRefusal(400, 'ValidationException', 'The provided model identifier is invalid.')
  if (PROFILE_ONLY.test(id)) {
    const message = `Invocation of model ID ${id} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`
    throw awsRefusal(400, 'ValidationException', message)
  }
}
