import { GatewayError } from '../core/errors.ts'
import type { StageContext } from '../stages/stage-context.ts'
import type { Principal } from '../stores/principal.ts'

/** Questions about tasks for each request of the key's limit. */
const QUESTIONS_PER_REQUEST = 10

/**
 * Counts a request about tasks. These have a bucket of their own, ten times the key's requests per minute, so that whoever
 * polls takes nothing from what he may generate, and still cannot ask without end. A key without a limit of requests has none
 * here either.
 * @throws GatewayError `rate_limited` with the seconds after which the same request could pass.
 */
export async function countTaskRequest(context: StageContext, { keyId, limits }: Principal): Promise<void> {
  const requestsPerMinute = limits?.requestsPerMinute ?? context.limits.requestsPerMinute
  if (requestsPerMinute === undefined) return
  const take = { bucket: `tasks:${keyId}`, amount: 1, perMinute: requestsPerMinute * QUESTIONS_PER_REQUEST }
  const decision = await context.rateLimiter.take([take], context.clock.now())
  if (!decision.allowed) throw new GatewayError('rate_limited', { retryAfterSeconds: decision.retryAfterMs / 1000 })
}
