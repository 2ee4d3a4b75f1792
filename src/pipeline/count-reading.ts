import { GatewayError } from '../core/errors.ts'
import type { Principal } from '../stores/principal.ts'
import { limitsOf } from './limits.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Number of requests about tasks and stored answers per request of the key's limit. */
const READINGS_PER_REQUEST = 10

/**
 * Counts a request about tasks or stored answers. These have their own bucket with ten times the key's requests per minute:
 * polling does not use generation quota, but is still limited. Unlimited for keys without a request limit.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export async function countReading(context: PipelineContext, principal: Principal): Promise<void> {
  const { keyId } = principal
  const { requestsPerMinute } = (await limitsOf(context, principal)).perKey
  if (requestsPerMinute === undefined) return
  const take = { bucket: `tasks:${keyId}`, amount: 1, perMinute: requestsPerMinute * READINGS_PER_REQUEST }
  const decision = await context.rateLimiter.take([take], context.clock.now())
  if (!decision.allowed) throw new GatewayError('rate_limited', { retryAfterSeconds: decision.retryAfterMs / 1000 })
}
