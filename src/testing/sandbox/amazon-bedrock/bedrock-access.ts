import { credentialOf, type SandboxCall } from '../sandbox-operation.ts'
import { checkAwsSignature } from './aws-signature-check.ts'
import { awsRefusal } from './bedrock-errors.ts'

/** Path prefix below the stand-in's origin, so that paths of other vendors do not collide. */
export const BEDROCK_PREFIX = '/bedrock'

/** Models that can only be called through an inference profile. */
const PROFILE_ONLY = /^anthropic\.claude-(?:opus|sonnet|haiku|fable)-\d/

/** Rejects a call without a bearer token or a valid signature. A bearer token takes precedence, as in the service. */
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

/** Rejects ids of unknown models, and of models that need a profile. */
export function checkModelId(id: string): void {
  if (/^arn:aws:bedrock:/.test(id)) return
  if (!/^[a-z0-9-]+\.[\w.:-]+$/.test(id))
    throw awsRefusal(400, 'ValidationException', 'The provided model identifier is invalid.')
  if (PROFILE_ONLY.test(id)) {
    const message = `Invocation of model ID ${id} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`
    throw awsRefusal(400, 'ValidationException', message)
  }
}
